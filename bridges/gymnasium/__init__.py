"""Games of Gymnasium and of Gym before it: any registered id, Crafter, Atari."""

from bridges.gymnasium.atari import AtariBridge
from bridges.gymnasium.bridge import GymnasiumBridge
from bridges.gymnasium.crafter import CrafterBridge

__all__ = ["AtariBridge", "CrafterBridge", "GymnasiumBridge"]
