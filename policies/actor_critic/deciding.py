"""The most likely actions of a row of outputs, in operations that an exported network may have."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from policies.actor_critic.distributions import ActionLayout

_TYPES: dict[str, torch.dtype] = {
    np.dtype(name).name: getattr(torch, np.dtype(name).name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")
}


def most_likely(layout: ActionLayout, outputs: Tensor) -> dict[str, Tensor]:
    """Returns the most likely choices and the means, as action columns ``{key: (B, ...)}``.

    The same as ``layout.decode(layout.pick(outputs, None))``, without arrays of NumPy.
    """
    logits, mean, _ = layout.split(outputs)
    columns: dict[str, Tensor] = {}
    at = 0
    for head in layout.discrete.heads if layout.discrete else ():
        own = torch.split(logits[..., at : at + sum(head.sizes)], list(head.sizes), -1)
        chosen = torch.stack([part.argmax(-1) for part in own], -1) + torch.tensor(head.starts)
        columns[head.key] = chosen.reshape(-1, *head.shape).to(_type(head.dtype))
        at += sum(head.sizes)
    if layout.continuous is None:
        return columns
    boxes = layout.continuous
    encoded = mean.double()
    numbers = (encoded.tanh() if boxes.squashed else encoded) * boxes.scale + boxes.offset
    at = 0
    for box in boxes.heads:
        own_numbers = numbers[..., at : at + box.places].to(_type(box.dtype))
        low, high = (torch.from_numpy(bound.copy()) for bound in (box.low, box.high))
        columns[box.key] = own_numbers.clamp(low, high).reshape(-1, *box.shape)
        at += box.places
    return columns


def _type(dtype: np.dtype[Any]) -> torch.dtype:
    """Returns torch's type; games whose actions have one that it lacks get the next larger."""
    return _TYPES.get(dtype.name, torch.int64 if dtype.kind in "iu" else torch.float32)


def best_value(layout: ActionLayout, values: Tensor) -> Tensor:
    """Returns the sum of the highest values of each choice, ``(B,)``."""
    assert layout.discrete is not None
    sizes = [size for head in layout.discrete.heads for size in head.sizes]
    best = [part.amax(-1) for part in torch.split(values, sizes, -1)]
    return torch.stack(best, -1).sum(-1)


def describe(layout: ActionLayout) -> list[dict[str, Any]]:
    """Returns an entry for each action column: its choices or numbers, and where they begin.

    ``first``, ``mean`` and ``log_std`` are places in a row of outputs.
    """
    found: list[dict[str, Any]] = []
    at = 0
    for head in layout.discrete.heads if layout.discrete else ():
        found.append(
            {
                "action": head.key,
                "kind": "choices",
                "first": at,
                "options": list(head.sizes),
                "starts": list(head.starts),
            }
        )
        at += sum(head.sizes)
    place = 0
    for box in layout.continuous.heads if layout.continuous else ():
        assert layout.continuous is not None
        own = slice(place, place + box.places)
        found.append(
            {
                "action": box.key,
                "kind": "numbers",
                "mean": layout.logits + place,
                "log_std": layout.logits + layout.dims + place,
                "count": box.places,
                "squashed": layout.squashed,
                "scale": layout.continuous.scale[own].tolist(),
                "offset": layout.continuous.offset[own].tolist(),
            }
        )
        place += box.places
    return found
