"""What players achieve and what the statistics hold, computed from episodes."""
