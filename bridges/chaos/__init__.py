"""A game that is slow, uneven, hangs, crashes and leaves processes behind, all on request."""

from bridges.chaos.bridge import ChaosBridge

__all__ = ["ChaosBridge"]
