"""Sweeps: many training runs over numbers of training states, on the same held-out states."""
