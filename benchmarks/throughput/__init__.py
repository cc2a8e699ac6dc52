"""How fast the house and its games are."""
