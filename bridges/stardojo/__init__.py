"""StarDojo: Stardew Valley's tasks, in a valley of our own or in the real game."""
