"""Observations as pictures and text for a model."""

from __future__ import annotations

import hashlib
from typing import Any

import cv2
import numpy as np
from gymnasium import spaces

from policies.vlm.options import History, Picture
from policies.vlm.prompt import Prompt
from rollout.api import Array, BridgeSpec, Columns, Details, is_picture, pixels
from rollout.errors import ConfigError, UnknownNameError

_SMALL = 64  # numbers of a column that templates may use
PRIVILEGED = "privileged"  # prefix of columns that players must not see
TEXT, MISSION = "text", "mission"


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
        found = [key for key, leaf in self._leaves.items() if _is_image(leaf)]
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
        image = np.ascontiguousarray(pixels(self._leaves[column], value))
        if image.ndim == 3 and image.shape[2] == 3:
            image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        if self._options.scale > 1:
            side = self._options.scale
            image = np.repeat(np.repeat(image, side, axis=0), side, axis=1)
        extension = ".png" if self._options.codec == "png" else ".jpg"
        return bytes(cv2.imencode(extension, image)[1])


def _is_image(leaf: spaces.Space[Any]) -> bool:
    shape = leaf.shape or ()
    return is_picture(leaf) and len(shape) == 3 and min(shape[:2]) >= 16 and shape[2] in (1, 3)


def observation_values(
    spec: BridgeSpec, observations: Columns, row: int, details: Details
) -> dict[str, Any]:
    """Returns the variables of templates that describe an observation: text and observation."""
    texts, small = [str(details[TEXT])] if details.get(TEXT) else [], {}
    for key, leaf in spec.observation_space.spaces.items():
        if key.startswith(PRIVILEGED):
            continue
        value = observations[key][row]
        if isinstance(leaf, spaces.Text):
            small[key] = str(value)
            if not texts or key != TEXT:
                texts.append(str(value))
        elif np.size(value) <= _SMALL:
            small[key] = np.asarray(value).tolist()
    return {"text": "\n".join(texts), "observation": small}


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
