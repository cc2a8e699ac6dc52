"""Calls of language and vision-language models, for policies and judges."""
