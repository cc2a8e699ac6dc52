"""The picture that the player sees, and the classes of things in view."""
