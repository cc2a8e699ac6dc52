"""Gamut from Python: ``import gamut``; see docs/python.md."""
