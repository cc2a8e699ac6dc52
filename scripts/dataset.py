"""Describes, checks, repairs, exports and imports datasets, and replays episodes."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("dataset")
