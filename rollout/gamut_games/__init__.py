"""The taskset of verifiers, which looks for modules of one name; see its module."""

from rollout.interop.verifiers import (
    GameConfig,
    GameData,
    GameEnv,
    GameEnvConfig,
    GameTask,
    GameTaskset,
)

__all__ = ["GameConfig", "GameData", "GameEnv", "GameEnvConfig", "GameTask", "GameTaskset"]
