"""Everything that names RLlib: module, runner, learner, algorithm. Facts are of Ray 2.60."""
