"""Episodes played again: as a video, as text, and as scripts for a policy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import NO_USAGE, Array, Columns, Usage, is_picture, option, pixels, read_calls
from rollout.api.spaces import describe_action
from rollout.data.calls import COLUMN, describe_calls
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.schema import ACTION, OBSERVATION, Column, column_name
from rollout.errors import DatasetError, UnknownNameError
from rollout.files import open_file

Pixels = NDArray[np.uint8]
Colour: TypeAlias = tuple[int, int, int]
_LINE, _MARGIN, _LEFT = 20, 8, 4  # pixels: of a line of text, below all, and before each
_FONT, _SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.5  # below 0.5, OpenCV draws "-0." in one another
_WHITE, _GREY, _GREEN, _RED = (255, 255, 255), (190, 190, 190), (90, 230, 90), (90, 90, 255)  # BGR
_BLUE = (255, 200, 120)
_SMALLEST = 256  # pixels; smaller frames are enlarged so that the text can be read
_NARROW = 480  # pixels; narrower frames have two lines for an action, and two for the reward
_PIECE = 64  # steps read at once


def images_of(dataset: Dataset) -> tuple[str, ...]:
    """Returns the columns with images that can be shown."""
    leaves = dataset.manifest.observation_space.spaces
    columns = (c for c in dataset.manifest.columns if c.role == OBSERVATION)
    return tuple(c.name for c in columns if is_picture(leaves[c.key]))


@dataclass(frozen=True)
class Mp4:
    """The exporter ``mp4``: an episode as a video, with goal, action and reward below each frame.

    Where a model decided, its thought and its cost are there, too. Frames smaller than 256 pixels
    are enlarged. An action is in words where the bridge names its actions
    (``BridgeSpec.action_labels``); the last frame shows how the episode ended.
    """

    column: str | None = option(None, "The image column; the first by default.")
    fps: float = option(15.0, "Frames per second.", gt=0)

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks that there are images and one episode; see ``rollout.api.Exporter``."""
        valid = images_of(dataset)
        if not valid:
            observed = [c.name for c in dataset.manifest.columns if c.role == OBSERVATION]
            raise DatasetError(
                f"{dataset.layout.root} has no images to make a video of; its observations are "
                f"{', '.join(observed)}. Record with an observation that has images, or show the "
                f"episode as text: play without --out"
            )
        if self.column is not None and self.column not in valid:
            raise UnknownNameError("image column", self.column, valid)
        if len(episodes) != 1:
            raise DatasetError(f"expected one episode for a video, got {len(episodes)}")

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes one episode and returns the number of frames; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        column, [ref] = self.column or images_of(dataset)[0], episodes
        frames = write_video(out, _frames(dataset, ref, column), self.fps)
        if frames == 0:
            raise DatasetError(f"episode {ref.episode} has no steps to show")
        return frames


def write_video(out: Path, frames: Iterable[Pixels], fps: float) -> int:
    """Writes an MP4 that browsers play: H.264 in YUV 4:2:0.

    Args:
        out: the file to write; none is written without frames.
        frames: pictures ``(height, width, 3)`` of one size with even sides, BGR.
        fps: frames per second.

    Returns:
        the number of frames written.

    Raises:
        DatasetError: the file cannot be written.
    """
    import av  # noqa: PLC0415 - 0.1 s, and most commands write no video

    frames = iter(frames)
    first = next(frames, None)
    if first is None:
        return 0
    written = 0
    try:
        with av.open(out, "w", format="mp4") as video:
            # A single thread: the bytes do not depend on the machine.
            options = {"crf": "18", "preset": "veryfast", "threads": "1"}
            stream = video.add_stream("libx264", Fraction(fps).limit_denominator(1000), options)
            stream.height, stream.width = first.shape[:2]
            stream.pix_fmt = "yuv420p"
            for frame in chain([first], frames):
                video.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="bgr24")))
                written += 1
            video.mux(stream.encode(None))
    except OSError as error:
        raise DatasetError(
            f"cannot write a video to {out}: {error.strerror}; is the folder there?"
        ) from error
    return written


def play_text(dataset: Dataset, ref: EpisodeRef) -> Iterator[str]:
    """Yields one line per step of an episode: step, small observations, action, reward."""
    columns = [c for c in dataset.manifest.columns if c.role == OBSERVATION and _is_small(c)]
    calls = [COLUMN] if COLUMN in dataset.columns else []
    names = [*(c.name for c in columns), *action_names(dataset), *calls, "reward"]
    for window in dataset.stream(ref, names, length=_PIECE):
        for t in range(len(window.columns["reward"])):
            values = [f"{c.name}={_short(window.columns[c.name][t])}" for c in columns]
            values.append(f"action={action_text(dataset, window.columns, t)}")
            if calls:
                thought, cost = describe_calls(read_calls(window.columns[COLUMN][t]), NO_USAGE)
                values.append(f"calls=({cost.rsplit('  ', 1)[0]}) thought={thought!r}")
            reward = float(window.columns["reward"][t])
            yield f"step {window.start + t}: {' '.join(values)} reward={reward:g}"


def _is_small(column: Column) -> bool:
    return column.codec.name in ("plain", "list")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        shown = " ".join(f"{v:g}" for v in value[:8].tolist())
        return f"[{shown} ...]" if len(value) > 8 else f"[{shown}]"
    return f"{value:g}" if isinstance(value, np.number | float) else str(value)


def action_names(dataset: Dataset) -> dict[str, str]:
    """Returns the action columns that can be shown, and the name of each in the action space."""
    return {c.name: c.key for c in dataset.manifest.columns if c.role == ACTION and _is_small(c)}


def action_text(dataset: Dataset, columns: Columns, row: int) -> str:
    """Returns an action in words.

    Args:
        dataset: the dataset.
        columns: columns of steps, those of ``action_names`` among them.
        row: which of these steps.
    """
    manifest = dataset.manifest
    action = {key: columns[name][row] for name, key in action_names(dataset).items()}
    return describe_action(manifest.action_space, manifest.action_labels, action)


def _frames(dataset: Dataset, ref: EpisodeRef, column: str) -> Iterator[Pixels]:
    """Frames with their captions, BGR; the last is the final observation."""
    about = next(c for c in dataset.manifest.columns if c.name == column)
    leaf = dataset.manifest.observation_space.spaces[about.key]
    goal = str(dataset.manifest.task.get("goal", ""))
    total = 0.0
    calls = [COLUMN] if COLUMN in dataset.columns else []
    spent, blank = NO_USAGE, [("", _BLUE)] * (2 * len(calls))
    names = [column, "reward", *action_names(dataset), *calls]
    for window in dataset.stream(ref, names, length=_PIECE):
        for t, shown in enumerate(window.columns[column]):
            reward = float(window.columns["reward"][t])
            total += reward
            action = action_text(dataset, window.columns, t)
            colour = _WHITE if reward == 0 else _GREEN if reward > 0 else _RED
            result = f"step={window.start + t}  reward={reward:g}  sum={total:g}"
            thought = []
            if calls:
                made = read_calls(window.columns[COLUMN][t])
                spent += Usage.of(made)
                thought = [(line, _BLUE) for line in describe_calls(made, spent)]
            yield _captioned(
                pixels(leaf, shown), goal, (action, _WHITE), *thought, (result, colour)
            )
    final = dataset.read(ref, []).final_observations.get(about.key)
    if final is not None:
        end = f"end: {ref.end}, {ref.outcome.name.lower()}"
        yield _captioned(
            pixels(leaf, final), goal, (end, _WHITE), *blank, (f"sum={total:g}", _WHITE)
        )


def _captioned(image: Array, goal: str, *lines: tuple[str, Colour]) -> Pixels:
    """The image, with the complete goal and the lines below it, cut where they are too long."""
    picture = to_bgr(image)
    scale = max(1, -(-_SMALLEST // min(picture.shape[:2])))
    picture = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    # The codec requires even sizes.
    height, width = picture.shape[0] + picture.shape[0] % 2, picture.shape[1] + picture.shape[1] % 2
    texts = [(line, _GREY) for line in _wrapped(goal, width)]
    rows = 2 if width < _NARROW else 1  # of each line, however short: all frames have one size
    texts += [(row, colour) for text, colour in lines for row in _rows(text, width, rows)]
    canvas = np.zeros((height + _LINE * len(texts) + _MARGIN, width, 3), np.uint8)
    canvas[: picture.shape[0], : picture.shape[1]] = picture
    for n, (text, colour) in enumerate(texts):
        place = (_LEFT, height + _LINE * (n + 1))
        cv2.putText(canvas, text, place, _FONT, _SIZE, colour, 1, cv2.LINE_AA)
    return canvas


@lru_cache(maxsize=64)
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    """The text in lines that fit, broken at spaces and after plus signs."""
    lines: list[str] = []
    for word in re.findall(r"[^\s+]*(?:\++\s*|\s+|$)", text):
        if lines and _fits((lines[-1] + word).rstrip(), width):
            lines[-1] += word
        else:
            lines.append(word)
    return tuple(_cut(line.rstrip(), width) for line in lines if line.strip())


def _rows(text: str, width: int, count: int) -> list[str]:
    """The text in ``count`` lines, cut if it is longer."""
    lines = list(_wrapped(text, width))
    if len(lines) > count:
        last = " ".join(lines[count - 1 :])
        lines = [*lines[: count - 1], _cut(last, width)]
    return [*lines, *[""] * (count - len(lines))]


@lru_cache(maxsize=1024)
def _cut(text: str, width: int) -> str:
    """The text, cut to fit."""
    if _fits(text, width):
        return text
    while text and not _fits(f"{text}...", width):
        text = text[:-1]
    return f"{text}..."


def _fits(text: str, width: int) -> bool:
    return bool(cv2.getTextSize(text, _FONT, _SIZE, 1)[0][0] <= width - 2 * _LEFT)


def to_bgr(image: Array) -> Pixels:
    """Returns an image as OpenCV draws it; of a stack of frames, the newest."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.shape[2] == 3:
        return np.ascontiguousarray(image[:, :, ::-1])
    return np.repeat(image[:, :, -1:], 3, axis=2)


@dataclass(frozen=True)
class Actions:
    """The exporter ``actions``: the actions of episodes, for the policy ``scripted`` to replay.

    The file is a NumPy archive of arrays ``(T, ...)`` named ``STATE:SEED/COLUMN`` after the start
    of the episode, so that they can only be replayed from the same start.
    """

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the name of the file and that there are actions; see ``rollout.api.Exporter``."""
        count = len(_with_actions(episodes))
        if out.suffix != ".npz" or not count:
            raise DatasetError(
                f"expected a file .npz and at least one episode with a result, got {out} and "
                f"{count} episodes"
            )

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes episodes with a result, returns their number; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        refs = _with_actions(episodes)
        names = {c.key: c.name for c in dataset.manifest.columns if c.role == ACTION}
        arrays: dict[str, Array] = {}
        for ref in refs:
            columns = dataset.read(ref, list(names.values())).columns
            for key, name in names.items():
                column = columns[name]
                text = column.astype(str) if column.dtype == object else column
                arrays[f"{ref.state}:{ref.seed}/{key}"] = text
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type] # numpy's stub misses the arrays
        return len(refs)

    def read(self, path: Path) -> Iterator[Columns]:
        """Yields the actions of each episode; see ``rollout.api.ReadsBack``."""
        with open_file(path) as file, np.lib.npyio.NpzFile(file) as arrays:
            named = (name.partition("/") for name in arrays.files)
            for start, names in groupby(named, lambda name: name[0]):
                keys = [key for _, _, key in names]
                yield {column_name(ACTION, key): arrays[f"{start}/{key}"] for key in keys}


def _with_actions(episodes: Sequence[EpisodeRef]) -> list[EpisodeRef]:
    return [ref for ref in episodes if ref.length and ref.end != "lost"]
