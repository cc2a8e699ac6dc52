"""A test game that can be slow and uneven, hang, crash and leave processes behind, on request."""

from bridges.chaos.bridge import ChaosBridge

__all__ = ["ChaosBridge"]
