"""Code that a run or a dataset names: what may be imported or started because a file says so.

What the user names, in a configuration or with ``--set``, is imported from anywhere. What a run
directory or a dataset names may come from a stranger: its modules are searched where Python itself
looks, i.e. among what is installed and on ``PYTHONPATH``, not in the current folder, and its
programs are not started.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

from rollout.api import NamesCode
from rollout.errors import ConfigError

_added: set[str] = set()  # what is on sys.path for the modules of the user alone


def search_current_folder() -> None:
    """Adds the current folder to the search path of modules, as ``python -m`` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
        _added.add(here)


def check_code(
    recipe: object,
    source: str,
    kind: str = "",
    *,
    given: Collection[str] = (),
    starts: bool = True,
) -> None:
    """Checks the code that options from a file name, before any of it runs.

    Args:
        recipe: the recipe that was built from the options; it has imported nothing yet.
        source: the file, for the message.
        kind: configuration key of the recipe, e.g. ``bridge``; empty if it cannot be configured.
        given: options whose values are the user's own.
        starts: the programs would be started.

    Raises:
        ConfigError: it names a program, or a module of the current folder.
    """
    if not isinstance(recipe, NamesCode):
        return
    for code in recipe.code():
        refused = starts if code.program else _only_here(code.name)
        if code.option in given or not refused:
            continue
        what = f"starts the program {code.name}" if code.program else f"imports {code.name}"
        ways = [f"set {kind}.{code.option} yourself"] if kind else []
        ways += [] if code.program else ["put the folder of the module on PYTHONPATH"]
        advice = f"if you trust it, {', or '.join(ways)}" if ways else "use another"
        raise ConfigError(
            f"{source} {what} ({code.option}), which a file may not decide alone; {advice}"
        )


def _only_here(module: str) -> bool:
    """Returns whether a module is found in the current folder alone; imports nothing."""
    top = module.partition(".")[0]
    if top in sys.modules:
        return False
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False  # what is wrong with it is said where it is imported
    if spec is None:
        return False
    places = spec.submodule_search_locations or filter(None, [spec.origin])
    folders = {Path(place).resolve().parent for place in places}
    own = {Path(place).resolve() for place in sys.path if place and place not in _added}
    return Path.cwd().resolve() in folders - own
