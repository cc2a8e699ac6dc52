"""Metrics, logs and progress of a run. Local files are authoritative."""
