"""Runs commands of Gamut in the process of a test, which imports what they use only once."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pkgutil import resolve_name

from rollout.cli import main
from rollout.commands.gamut import COMMANDS


def called(name, *arguments):
    """Returns the exit status of the command ``gamut NAME ARGUMENTS``, and what it printed."""
    command = COMMANDS[name]
    chosen = resolve_name(command.chosen) if command.chosen else None
    argv = [str(argument) for argument in arguments]
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        job, model = resolve_name(command.main), resolve_name(command.config)
        status = main(job, model, command.doc, argv, chosen=chosen)
    return status, said.getvalue()
