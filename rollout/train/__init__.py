"""Training: PPO on columns. The mathematics is plain torch; RLlib is named under ``rllib`` only."""
