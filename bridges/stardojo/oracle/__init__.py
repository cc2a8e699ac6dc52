"""The expert: scripts that solve the Lite tasks through the public actions of a valley."""
