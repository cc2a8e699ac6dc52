"""A battle in a real window, and the client that plays any window by pixels, clicks and keys."""
