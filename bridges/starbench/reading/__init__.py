"""Reads the screen: numbers, bars, texts, and where enemies are."""
