"""Companions that plan, ask, remember and act by programs; see docs/companion.md."""
