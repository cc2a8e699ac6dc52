"""Actor-critics for any flat observation and action space: MLP, CNN, LSTM, GRU."""

from policies.actor_critic.policy import ActorCriticPlayer, ActorCriticPolicy, QNetworkPolicy

__all__ = ["ActorCriticPlayer", "ActorCriticPolicy", "QNetworkPolicy"]
