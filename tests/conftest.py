"""Set-up shared by all tests."""

import os

# Hermetic: no token file in the user's home, no twenty-second wait for one. Before anything
# imports Ray, which reads it once.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("WANDB_MODE", "disabled")
# Tests call the parts of blockworld's compiled code, not only its entry points.
os.environ.setdefault("GAMUT_CALL_INNER", "1")
