"""The configurations that come with Gamut, from the checkout or as a wheel installs them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

_INSTALLED = Path("share", "gamut", "configs")


def folder() -> Path | None:
    """Returns the folder of the configurations; None if they were not installed."""
    above = Path(__file__).parents[2]
    places = (above / "configs", above / _INSTALLED, Path(sysconfig.get_path("data"), _INSTALLED))
    return next((place for place in places if (place / "sweeps").is_dir()), None)


def find(path: Path) -> Path:
    """Returns a file of the user, or else the configuration of that name that comes with Gamut.

    ``train_hunt_sheep.yaml``, ``configs/train_hunt_sheep.yaml`` and ``hunt_sheep_demo.yaml`` (which
    lies in ``sweeps``) are such names. A path that is neither is returned as it is.
    """
    place = folder()
    if path.exists() or path.is_absolute() or place is None:
        return path
    name = Path(*path.parts[1:]) if path.parts[:1] == ("configs",) else path
    if ".." in name.parts or not name.parts:
        return path
    found = [place / name, *sorted(place.rglob(name.name) if len(name.parts) == 1 else ())]
    return next((each for each in found if each.is_file()), path)
