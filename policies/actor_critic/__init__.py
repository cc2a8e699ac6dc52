"""Actor-critics for any flat observations and any choices: MLP, CNN, LSTM, GRU."""

from policies.actor_critic.policy import ActorCriticPlayer, ActorCriticPolicy

__all__ = ["ActorCriticPlayer", "ActorCriticPolicy"]
