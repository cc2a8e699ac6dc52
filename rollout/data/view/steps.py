"""The steps of one episode as JSON-able data for the page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import cv2
import numpy as np
from gymnasium import spaces

from rollout.api import Array, Call, pixels, read_calls
from rollout.data.calls import COLUMN
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.replay import action_names, action_text, images_of, to_bgr
from rollout.data.schema import DETAILS, EXTRA, OBSERVATION, SIGNAL, Column
from rollout.data.view.transcript import TELEMETRY, Entry, transcript

_MOST_NUMBERS = 256  # of a value that is drawn; larger arrays are named only
_DIGITS = 7  # of floats, as many as float32 has
_EXACT = 2**53  # larger integers lose digits in a browser
_SHOWN = ("progress", "tick", "latency")  # columns of steps, beside the reward
_PNG = (cv2.IMWRITE_PNG_COMPRESSION, 1)
_PIECE = 64  # steps decoded at once
_CALL = (
    *("role", "asked", "reported", "answer", "reasoning", "tools", "finish", "input_tokens"),
    *("cached_tokens", "output_tokens", "reasoning_tokens", "usd", "seconds", "waited_s"),
    *("errors", "earlier", "try", "code", "usable", "action", "fields", "problem"),
)

Data = dict[str, Any]


class Texts:
    """Texts of an episode, each once: prompts repeat most of their messages."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Returns the number of a text."""
        return self.known.setdefault(text, len(self.known))


def steps_data(dataset: Dataset, ref: EpisodeRef, verdicts: Sequence[tuple[str, str]] = ()) -> Data:
    """Returns the steps of an episode without its pictures.

    Args:
        dataset: the dataset.
        ref: the episode.
        verdicts: names and texts of what judges said of it, for the end of its transcript.

    Returns:
        ``step``, ``reward`` and ``action`` of each step; ``series``: columns of numbers;
        ``texts``: columns of texts; ``calls``: pairs of step and call; ``transcript``: step, kind,
        name and text of each entry; ``strings``: the texts that the numbers elsewhere stand for;
        ``not_shown``: columns that are too large.
    """
    pictures = set(images_of(dataset))
    shown: list[Column] = []
    large: list[Column] = []
    for column in dataset.manifest.columns:
        wanted = column.role in (OBSERVATION, SIGNAL, EXTRA, DETAILS) or column.name in _SHOWN
        if column.name in {*pictures, COLUMN} or not wanted or column.name not in dataset.columns:
            continue
        fits = column.dtype == "string" or math.prod(column.shape) <= _MOST_NUMBERS
        (shown if fits and not column.codec.is_image else large).append(column)
    calls = [COLUMN] if COLUMN in dataset.columns else []
    actions = list(action_names(dataset))
    names = [*(c.name for c in shown), "step", "reward", *calls, *actions]
    episode = dataset.read(ref, list(dict.fromkeys(names)))
    steps, texts = episode.columns, Texts()
    made = [read_calls(each) for each in steps[COLUMN]] if calls else []
    told = [*steps.get(DETAILS, ()), episode.final_details]
    data: Data = {
        "step": steps["step"].tolist(),
        "reward": _numbers(steps["reward"]),
        "action": [texts.add(action_text(dataset, steps, t)) for t in range(len(steps["reward"]))],
        "series": [_series(c, steps[c.name]) for c in shown if c.dtype != "string"],
        "texts": [
            {"name": c.name, "values": [texts.add(_text(v)) for v in steps[c.name]]}
            for c in shown
            if c.dtype == "string" and any(steps[c.name])
        ],
        "calls": [[t, _call(call, texts)] for t, each in enumerate(made) for call in each],
        "transcript": [
            [entry.step, entry.kind, entry.who, texts.add(entry.text)]
            for entry in (
                *transcript(told, list(steps.get(TELEMETRY, ())), made),
                *(Entry(len(told) - 1, "verdict", who, text) for who, text in verdicts),
            )
        ],
        "not_shown": [f"{c.name} {c.dtype}{list(c.shape)}" for c in large],
    }
    data["strings"] = list(texts.known)
    return data


def _series(column: Column, values: Array) -> Data:
    flat = values.reshape(len(values), math.prod(column.shape)) if column.shape else values
    return {
        "name": column.name,
        "role": column.role,
        "unit": column.unit,
        "doc": column.doc,
        "width": math.prod(column.shape),
        "values": _numbers(flat),
    }


def _numbers(values: Array) -> list[Any]:
    """Numbers as JSON has them: null for what is not finite, integers beyond 2**53 as text."""
    if values.dtype == bool:
        listed: list[Any] = values.astype(np.uint8).tolist()
        return listed
    if values.dtype.kind in "iu":
        if values.size and max(abs(int(values.max())), abs(int(values.min()))) > _EXACT:
            values = values.astype(str)
        return list(values.tolist())
    numbers = values.astype(np.float64)
    finite = np.isfinite(numbers)
    known = np.where(finite, numbers, 0.0)
    size = np.floor(np.log10(np.abs(known), out=np.zeros_like(known), where=known != 0))
    scale = 10.0 ** np.clip(_DIGITS - 1 - size, 0, 300)
    rounded = np.where(np.abs(known) < 1e-290, known, np.rint(known * scale) / scale)
    objects = rounded.astype(object)
    objects[~finite] = None
    return list(objects.tolist())


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _call(call: Call, texts: Texts) -> Data:
    recorded = call.as_json()
    data = {name: recorded[name] for name in _CALL if recorded.get(name) not in (None, "", [])}
    for name in ("answer", "reasoning", "problem"):
        if name in data:
            data[name] = texts.add(str(data[name]))
    if "fields" in data:
        data["fields"] = [[name, texts.add(_text(v))] for name, v in data["fields"].items()]
    if "tools" in data:
        data["tools"] = [texts.add(" ".join(map(str, tool))) for tool in data["tools"]]
    data["messages"] = [
        [str(message.get("role", "")), texts.add(_content(message.get("content")))]
        for message in call.messages or ()
    ]
    return data


def _content(content: Any) -> str:
    """The text of a message; pictures are named."""
    if not isinstance(content, list):
        return _text(content)
    parts = []
    for part in content:
        if part.get("type") == "text":
            parts.append(_text(part.get("text")))
        else:
            parts.append(f"[{part.get('type')} {part.get('digest', '')}]")
    return "\n".join(parts)


def pictures_data(dataset: Dataset, ref: EpisodeRef, room: int) -> list[Data]:
    """Returns the picture columns of an episode, with at most ``room`` bytes of files in all.

    Returns:
        of each column ``name``, ``height``, ``width``; ``lossy``, its codec if it loses something;
        ``files``: different pictures, each a data URL without its ``data:``; ``at``: the file of
        each step and, where there is one, of the observation after the last action, null where it
        is left out; ``left_out``: how many are.
    """
    names = images_of(dataset)
    final = dataset.read(ref, []).final_observations if names else {}
    return [_pictures(dataset, ref, name, final, room // len(names)) for name in names]


def _pictures(
    dataset: Dataset, ref: EpisodeRef, name: str, final: Mapping[str, Array], room: int
) -> Data:
    column = next(c for c in dataset.manifest.columns if c.name == name)
    leaf = dataset.manifest.observation_space.spaces[column.key]
    assert isinstance(leaf, spaces.Box)
    last = [final[column.key]] if column.key in final else []
    count, every, held = ref.length + len(last), 1, 0
    kept: dict[int, str] = {}
    seen: set[str] = set()
    for t, value in enumerate(chain(_values(dataset, ref, column), last)):
        if t % every:
            continue
        file = _url(column.codec.name, leaf, value)
        held += len(file) if file not in seen else 0
        kept[t] = file
        seen.add(file)
        while held > room and kept:
            every *= 2
            kept = {t: file for t, file in kept.items() if t % every == 0 and every <= count}
            seen = {*kept.values()}
            held = sum(map(len, seen))
    files = {file: n for n, file in enumerate(dict.fromkeys(kept.values()))}
    height, width = pixels(leaf, np.zeros(leaf.shape, leaf.dtype)).shape[:2]
    return {
        "name": name,
        "height": height,
        "width": width,
        "lossy": str(column.codec) if column.codec.is_lossy else None,
        "files": list(files),
        "at": [files[kept[t]] if t in kept else None for t in range(count)],
        "left_out": count - len(kept),
    }


def _values(dataset: Dataset, ref: EpisodeRef, column: Column) -> Iterator[bytes | Array]:
    """The picture of each step: its file where browsers show it as videos do, or its pixels."""
    if column.codec.is_image and column.shape[2:] in ((), (1,), (3,)):
        for start in range(0, ref.length, _PIECE):
            stop = min(start + _PIECE, ref.length)
            yield from dataset.stored(ref, column.name, start, stop).to_pylist()
        return
    for window in dataset.stream(ref, [column.name], length=_PIECE):
        yield from window.columns[column.name]


def _url(codec: str, leaf: spaces.Box, value: bytes | Array) -> str:
    """A data URL without its ``data:``; pixels become a PNG, without loss."""
    kind = f"image/{codec}"
    if not isinstance(value, bytes):
        kind = "image/png"
        value = cv2.imencode(".png", to_bgr(pixels(leaf, value)), _PNG)[1].tobytes()
    return f"{kind};base64,{base64.b64encode(value).decode()}"
