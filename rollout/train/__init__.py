"""Training on columns. Algorithms are plain torch; RLlib is named under ``rllib`` only."""
