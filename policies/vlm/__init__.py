"""Language and vision-language models as policies; see docs/vlm.md."""

from policies.vlm.policy import VlmPolicy

__all__ = ["VlmPolicy"]
