"""Clusters of other machines: how they are found, what they let in, what is sent to them."""
