"""Trains on sets of growing size and reports the generalization gap."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("sweep")
