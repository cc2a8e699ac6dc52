"""The screen of a battle, and how clicks and keys play it."""
