"""Turn-based battles after StarBench, from one rules engine; see ``docs/starbench.md``."""
