"""Language and vision-language models as policies; see docs/vlm.md."""

from policies.vlm.recipe import VlmPolicy

__all__ = ["VlmPolicy"]
