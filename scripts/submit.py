"""Submits a command to a Ray cluster as a job and follows its log."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("submit")
