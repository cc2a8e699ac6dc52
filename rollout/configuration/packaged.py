"""The configurations that come with Gamut, from the checkout or as a wheel installs them."""

from __future__ import annotations

import logging
import sysconfig
from pathlib import Path

log = logging.getLogger(__name__)

_INSTALLED = Path("share", "gamut", "configs")


def folder() -> Path | None:
    """Returns the folder of the configurations; None if they were not installed."""
    above = Path(__file__).parents[2]
    places = (above / "configs", above / _INSTALLED, Path(sysconfig.get_path("data"), _INSTALLED))
    return next((place for place in places if (place / "sweeps").is_dir()), None)


def find(path: Path) -> Path:
    """Returns a file of the user, or else the configuration of that name that comes with Gamut.

    Only a name without a folder is looked up, e.g. ``train_hunt_sheep.yaml``, or
    ``hunt_sheep_demo.yaml``, which lies in ``sweeps``: a path that does not exist was mistyped. Any
    other path is returned as it is.
    """
    place = folder()
    if path.exists() or path.name != str(path) or place is None:
        return path
    found = [place / path, *sorted(place.rglob(path.name))]
    return next((each for each in found if each.is_file()), path)


def log_use(path: Path) -> None:
    """Logs which file is used for a path if it is one that comes with Gamut."""
    if (used := find(path)) != path:
        log.info("%s is not in this folder; using %s, which comes with Gamut", path, used)
