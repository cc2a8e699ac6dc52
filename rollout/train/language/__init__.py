"""Trains language models on recorded steps (``sft``) and by playing (``grpo``)."""
