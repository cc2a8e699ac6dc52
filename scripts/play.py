"""Lets a person play a task in a window, and records it as any other policy's play."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("play")
