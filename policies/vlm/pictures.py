"""Observations as pictures and text for a model."""

from __future__ import annotations

import hashlib

import numpy as np
from gymnasium import spaces

from policies.vlm.options import History, Picture
from policies.vlm.prompt import Prompt
from rollout.api import Array, BridgeSpec, Columns, Details
from rollout.errors import ConfigError, UnknownNameError
from rollout.models.observations import TEXT, is_shown_picture, picture_file


class Pictures:
    """Encodes one observation column; falsy if no pictures are sent.

    Attributes:
        column: the column.
        goal: the column with a picture of the goal; empty for none.
        kind: MIME type of the files.

    Raises:
        ConfigError: there is no such column, or which one is not clear.
    """

    def __init__(self, spec: BridgeSpec, history: History, options: Picture) -> None:
        self._options, self.column, self.goal = options, "", ""
        self.kind = f"image/{options.codec}"
        self._leaves = spec.observation_space.spaces
        found = [key for key, leaf in self._leaves.items() if is_shown_picture(leaf)]
        if not history.images:
            return
        for name in (options.column, options.goal):
            if name and name not in found:
                raise UnknownNameError("picture among the observations", name, found)
        self.goal = options.goal
        found = [key for key in found if key != self.goal]
        if not options.column and len(found) != 1:
            raise ConfigError(
                f"history.images={history.images} needs a picture, and the observations of "
                f"{spec.name} have {len(found)} ({', '.join(found) or 'none'}); name one in "
                f"picture.column, or set history.images=0"
            )
        self.column = options.column or found[0]

    def __bool__(self) -> bool:
        return bool(self.column)

    def encode(self, column: str, value: Array) -> bytes:
        """Returns the file of a value of a picture column, RGB or grey."""
        return picture_file(
            self._leaves[column], value, scale=self._options.scale, codec=self._options.codec
        )


def shows_observation(spec: BridgeSpec, prompt: Prompt) -> bool:
    """Returns whether a prompt shows any part of an observation without pictures.

    Details are known before launch where columns were made from a nested space: they are its texts.
    """
    used = prompt.variables
    if used & {"observation", "details"}:
        return True  # chosen by its author
    if TEXT not in used:
        return False
    texts = any(isinstance(leaf, spaces.Text) for leaf in spec.observation_space.spaces.values())
    original = spec.original_observation_space
    if original is None or texts:
        return True
    return isinstance(original, spaces.Dict) and TEXT in original.spaces


def observation_digest(observations: Columns, row: int, details: Details) -> bytes:
    """Returns a digest of everything that is observed in a row."""
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(observations):
        value = np.asarray(observations[key][row])
        digest.update(repr(value.item()).encode() if value.dtype == object else value.tobytes())
    digest.update(repr(sorted(details.items(), key=lambda item: str(item[0]))).encode())
    return digest.digest()
