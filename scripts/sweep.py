"""Trains on more and more states and shows how the gap to held-out states closes."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("sweep")
