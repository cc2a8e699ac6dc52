"""Writes a package with a game, a policy, an evaluator or an algorithm of your own."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("new")
