"""What a run shows of itself: metrics, logs, progress. Local files are the truth."""
