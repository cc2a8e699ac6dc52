"""Judges: models that look at recorded episodes and rate them, never inside a step."""
