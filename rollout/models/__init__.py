"""Calls of language and vision-language models: what policies and judges share."""
