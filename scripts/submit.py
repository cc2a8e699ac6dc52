"""Sends a command to a Ray cluster as a job, follows it, and ends with its exit status."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("submit")
