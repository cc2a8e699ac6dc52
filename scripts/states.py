"""Counts the states of a task that can be told apart, and names the factors that change nothing."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("states")
