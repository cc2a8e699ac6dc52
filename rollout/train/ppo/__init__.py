"""Proximal policy optimization (Schulman et al., 2017), the algorithm plug-in ``ppo``."""

from rollout.train.ppo.options import Rates
from rollout.train.ppo.recipe import Ppo

__all__ = ["Ppo", "Rates"]
