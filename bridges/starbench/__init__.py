"""Turn-based battles after StarBench, from one rules engine; see ``docs/starbench.md``."""

from bridges.starbench.bridge import StarbenchBridge

__all__ = ["StarbenchBridge"]
