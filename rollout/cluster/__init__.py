"""Clusters: addresses, authentication, resources, and the jobs that are sent to them."""
