"""The commands: ``gamut COMMAND``, and the scripts of a checkout."""
