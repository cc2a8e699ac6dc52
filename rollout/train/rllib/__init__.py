"""Everything that depends on RLlib: module, runner, learner, algorithm. Verified with Ray 2.60."""
