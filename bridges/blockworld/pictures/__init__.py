"""What the eye sees: the picture, and classes of what is in view."""
