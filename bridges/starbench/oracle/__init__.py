"""Programs that play: auto-battle, and a search that knows the random numbers."""
