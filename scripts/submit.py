"""Sends a command to a Ray cluster as a job, follows it, and ends with its exit status."""

import sys

from rollout.cluster.submit import run

if __name__ == "__main__":
    sys.exit(run())
