"""The expert: its next action as a function of a world's record; see ``expert.Oracle``."""

from bridges.blockworld.oracle.expert import Oracle, skill
from bridges.blockworld.oracle.skills import SKILLS

__all__ = ["SKILLS", "Oracle", "skill"]
