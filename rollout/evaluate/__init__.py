"""Evaluation of trained players: paired episodes, scores with intervals, videos."""
