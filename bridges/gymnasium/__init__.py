"""Games of Gymnasium and of Gym before it: any registered id, Crafter, Atari, EnvPool."""

from bridges.gymnasium.atari import AtariBridge
from bridges.gymnasium.bridge import GymnasiumBridge
from bridges.gymnasium.crafter import CrafterBridge
from bridges.gymnasium.envpool import EnvpoolBridge

__all__ = ["AtariBridge", "CrafterBridge", "EnvpoolBridge", "GymnasiumBridge"]
