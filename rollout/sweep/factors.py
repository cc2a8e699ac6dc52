"""Which factors of a sweep's states can be told apart; kept in the folder of the sweep."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from rollout.api.state import digest
from rollout.config import resolved
from rollout.distinguish import distinguishable
from rollout.errors import ContractError, GameError, InputError
from rollout.files import write_atomically
from rollout.observe.run_files import read_json
from rollout.sweep.plan import ArmGame

log = logging.getLogger(__name__)

FILE = "distinguishable.json"


def find_inert(folder: Path, game: ArmGame) -> None:
    """Finds the factors that change nothing for a game's observations, unless that is done.

    Only for games that run in this process and have several factors; see ``rollout.distinguish``.
    """
    space = game.task.state_space
    here = game.shared.host.plays_in_process(game.bridge.spec.process)
    if not here or sum(factor.size > 1 for factor in space) < 2:
        return
    only = game.shared.state_set.only
    key = digest([resolved(game.config), space.digest, resolved(game.shared.state_set)["only"]])
    if read_json(folder / FILE).get("key") == key:
        return
    log.info("finding the factors of the states that change nothing")
    try:
        found = distinguishable(game.bridge, game.task, only=only).describe()
    except (InputError, GameError, ContractError) as error:
        log.warning("it is not known which states can be told apart: %s", error)
        found = {"unknown": str(error)}
    write_atomically(folder / FILE, json.dumps({"key": key, **found}, indent=2) + "\n")


def told(folder: Path, states: int) -> str:
    """Returns the number of states, and of those that can be told apart if that is known."""
    found = read_json(folder / FILE)
    if "states" not in found:
        return f"{states:,}"
    inert, tried = ", ".join(found["inert"]), found["tried"]
    if not inert:
        return f"{states:,}; every factor changes something for these observations"
    return (
        f"{states:,}; with these observations at most {int(found['states']):,} can be told apart: "
        f"{inert} changed nothing in {tried} of {tried} states"
    )
