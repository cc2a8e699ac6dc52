"""Writes the skeleton of a plug-in: bridge, policy, evaluator or algorithm."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("new")
