"""Pictures of the game, drawn on the CPU."""
