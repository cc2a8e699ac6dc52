"""Trains with Gamut and with what a user would pick instead, side by side."""
