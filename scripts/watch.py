"""Shows a job on one screen, running or ended, from its run directory alone."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

    from rollout.commands.gamut import run

    run("watch")
