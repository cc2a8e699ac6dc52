"""Bridges to games: one folder per game or family of games."""
