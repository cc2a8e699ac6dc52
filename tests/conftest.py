"""Set-up shared by all tests."""

import os

# Hermetic: no token file in the user's home, no twenty-second wait for one. Before anything
# imports Ray, which reads it once.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("WANDB_MODE", "disabled")
