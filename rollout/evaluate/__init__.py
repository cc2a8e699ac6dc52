"""Evaluation of trained players: paired episodes, statistics, the generalization experiment."""
