"""What a judge looks at: the episodes of a dataset, or the videos of a folder."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import Array, pixels
from rollout.data import Dataset, EpisodeRef
from rollout.data.remote import is_address
from rollout.data.replay import images_of, to_bgr, write_video
from rollout.data.schema import DETAILS
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.files import replacing
from rollout.judge.config import FramesConfig
from rollout.observe.run_files import SUMMARY, read_json

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"[ _-]*(?:episode[ _-]*)?\d+$")
_DATASET = "dataset.json"
_PIECE = 64  # steps decoded at once
_FPS, _SMALLEST = 20.0, 240  # of a video that is made: frames per second, pixels of its height

Frames = list[tuple[int, bytes]]
"""The number of the step and the PNG file of each chosen frame."""


class UnreadableClip(InputError):  # noqa: N818 - as other events
    """A clip is damaged; the others can be judged."""


@dataclass(frozen=True)
class Clip:
    """An episode or a video.

    Attributes:
        number: number of the episode, or of the video in the order of names.
        name: what ratings call it: the number of the episode, or the name of the file.
        task: name of its task.
        goal: what its agent was asked to do.
        length: number of its steps, or frames.
        ref: the episode; None for a video.
        metadata: of its task.
    """

    number: int
    name: str
    task: str
    goal: str
    length: int
    ref: EpisodeRef | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


GOAL_DETAIL = "goal_detail"
"""Key of a task's metadata: the key of the first frame's details that says what is asked for."""


def _told(dataset: Dataset, ref: EpisodeRef, key: str) -> str:
    """Returns what the details of an episode's first frame say under a key; empty for nothing."""
    for window in dataset.stream(ref, [DETAILS], length=1):
        return str((window.columns[DETAILS][0] or {}).get(key) or "")
    return ""


class Source(Protocol):
    """Clips that can be shown.

    Attributes:
        clips: the clips, in the order of their numbers.
        unreadable: names of the others, each with the reason.
        datasets: the datasets of the clips.
    """

    clips: Sequence[Clip]
    unreadable: Mapping[str, str]
    datasets: Sequence[Dataset]

    def frames(self, clip: Clip) -> Frames:
        """Returns the chosen frames of a clip.

        Raises:
            UnreadableClip: it is damaged.
        """

    def video(self, clip: Clip, folder: Path) -> Path:
        """Returns the file of a clip as a video; one that has to be made is put into a folder.

        Raises:
            UnreadableClip: it is damaged.
        """

    def close(self) -> None:
        """Closes what is open. Idempotent."""


class DatasetSource:
    """The episodes of a dataset that have a result.

    Args:
        dataset: the dataset.
        options: which frames are chosen.
        condition: a filter of episodes; empty for all.
        most: number of the first episodes that are taken; None for all.

    Raises:
        ConfigError: the dataset has no images, or several and none is named.
        UnknownNameError: it has no image column of that name.
    """

    def __init__(
        self,
        dataset: Dataset,
        options: FramesConfig,
        condition: str = "",
        most: int | None = None,
    ) -> None:
        found = images_of(dataset)
        if options.column and options.column not in found:
            raise UnknownNameError("image column", options.column, found)
        if not options.column and len(found) != 1:
            raise ConfigError(
                f"frames.column: {dataset.layout.root} has {len(found)} image columns "
                f"({', '.join(found) or 'none'}); name one, or record with images"
            )
        self._dataset, self._options = dataset, options
        self.datasets: Sequence[Dataset] = (dataset,)
        self._column = options.column or found[0]
        self._key = self._column.partition("/")[2]
        self.unreadable: Mapping[str, str] = {}
        task = dataset.manifest.task
        about: Mapping[str, Any] = task.get("metadata") or {}
        name, goal = str(task["name"]), str(task.get("goal") or "")
        refs = [ref for ref in dataset.episodes(filter=condition) if ref.length]
        refs = sorted(refs, key=lambda ref: ref.episode)[:most]
        own = str(about.get(GOAL_DETAIL) or "") if DETAILS in dataset.columns else ""
        goals = [(own and _told(dataset, ref, own)) or goal for ref in refs]
        self.clips: Sequence[Clip] = [
            Clip(ref.episode, str(ref.episode), ref.task or name, goal, ref.length, ref, about)
            for ref, goal in zip(refs, goals, strict=True)
        ]

    def frames(self, clip: Clip) -> Frames:
        """Returns the chosen frames of an episode; the last one is after the last action."""
        ref = clip.ref
        assert ref is not None
        try:
            steps = self._dataset.read(ref, ["reward", "progress"]).columns
            chosen = chosen_steps(steps["reward"], steps["progress"], self._options)
            images: dict[int, Array] = {}
            for window in self._dataset.stream(ref, [self._column], length=_PIECE):
                column = window.columns[self._column]
                for step in _within(chosen, window.start, window.start + len(column)):
                    images[step] = column[step - window.start].copy()
            final = self._dataset.read(ref, []).final_observations.get(self._key)
        except InputError as error:
            raise UnreadableClip(f"episode {clip.name} cannot be read: {error}") from error
        frames = [(step, self._encode(images[step])) for step in chosen]
        if final is not None:  # the result of the last action
            frames[-1:] = [(ref.length, self._encode(final))]
        return frames

    def video(self, clip: Clip, folder: Path) -> Path:
        """Returns a video of the pictures of an episode, without rewards and actions."""
        file = folder / f"{clip.number}.mp4"
        try:
            if not file.is_file():
                with replacing(file, fsync=False) as new:
                    write_video(new, self._pictures(clip), _FPS)
        except InputError as error:
            raise UnreadableClip(f"episode {clip.name} cannot be read: {error}") from error
        return file

    def _pictures(self, clip: Clip) -> Iterator[Array]:
        """The pictures of an episode with even sides, BGR, small ones enlarged."""
        ref = clip.ref
        assert ref is not None
        leaf = self._dataset.manifest.observation_space[self._key]
        final = self._dataset.read(ref, []).final_observations.get(self._key)
        windows = self._dataset.stream(ref, [self._column], length=_PIECE)
        images = (image for window in windows for image in window.columns[self._column])
        for image in chain(images, () if final is None else (final,)):
            shown = to_bgr(pixels(leaf, image))
            side = max(1, _SMALLEST // max(1, shown.shape[0]))
            shown = np.repeat(np.repeat(shown, side, axis=0), side, axis=1)
            height, width = (2 * ((n + 1) // 2) for n in shown.shape[:2])
            yield cv2.copyMakeBorder(
                *(shown, 0, height - shown.shape[0], 0, width - shown.shape[1]),
                borderType=cv2.BORDER_REPLICATE,
            )

    def close(self) -> None:
        """Closes the dataset."""
        self._dataset.close()

    def _encode(self, image: Array) -> bytes:
        image = pixels(self._dataset.manifest.observation_space[self._key], image)
        if image.ndim == 3 and image.shape[2] >= 3:
            image = image[:, :, 2::-1]
        return png(image, self._options.scale)


class VideoSource:
    """The videos of a folder, ``TASK_NUMBER.mp4`` or ``TASK/NUMBER.mp4``.

    Args:
        folder: the folder.
        options: which frames are chosen.
        most: number of the first videos that are taken; None for all.

        task: the task of all videos; empty for those that their names tell.
        goal: its goal.

    Raises:
        ConfigError: it contains no video that can be read.
    """

    def __init__(
        self,
        folder: Path,
        options: FramesConfig,
        most: int | None = None,
        task: str = "",
        goal: str = "",
    ) -> None:
        self.folder, self._options = folder, options
        self.datasets: Sequence[Dataset] = ()
        files = sorted(folder.rglob("*.mp4"))[:most]
        if not files:
            raise ConfigError(f"{folder}: expected a dataset or videos (.mp4), and there are none")
        found: list[Clip] = []
        unreadable: dict[str, str] = {}
        for number, file in enumerate(files):
            name = file.relative_to(folder).as_posix()
            try:
                length = _frames_in(file)
            except UnreadableClip as error:
                unreadable[name] = str(error)
                continue
            own = task or task_of_video(name)
            found.append(Clip(number, name, own, goal or own.replace("_", " "), length))
        if not found:
            raise ConfigError(f"no video can be read: {'; '.join(unreadable.values())}")
        self.clips: Sequence[Clip] = found
        self.unreadable: Mapping[str, str] = unreadable

    def frames(self, clip: Clip) -> Frames:
        """Returns the chosen frames of a video."""
        nothing = np.zeros(clip.length, np.float32)
        chosen = set(chosen_steps(nothing, nothing, self._options))
        pictures = enumerate(_decoded(self.folder / clip.name))
        frames = [(n, png(image, self._options.scale)) for n, image in pictures if n in chosen]
        if not frames:
            raise UnreadableClip(f"{self.folder / clip.name}: no frame can be decoded")
        return frames

    def video(self, clip: Clip, folder: Path) -> Path:
        """Returns the file."""
        del folder
        return self.folder / clip.name

    def close(self) -> None:
        """Does nothing: no file is kept open."""


class SeveralSources:
    """The episodes of several datasets; a name is that of the dataset, ``/`` and the episode.

    Args:
        sources: the datasets by name, with one task each.
    """

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self.datasets: Sequence[Dataset] = [d for each in sources.values() for d in each.datasets]
        self._of: list[tuple[Source, Clip]] = []
        clips: list[Clip] = []
        for name, source in sources.items():
            for clip in source.clips:
                clips.append(replace(clip, number=len(clips), name=f"{name}/{clip.name}"))
                self._of.append((source, clip))
        self.clips: Sequence[Clip] = clips
        self.unreadable: Mapping[str, str] = {}

    def frames(self, clip: Clip) -> Frames:
        """Returns the chosen frames of an episode."""
        source, own = self._of[clip.number]
        return source.frames(own)

    def video(self, clip: Clip, folder: Path) -> Path:
        """Returns a video of an episode."""
        source, own = self._of[clip.number]
        return source.video(replace(own, number=clip.number), folder)

    def close(self) -> None:
        """Closes the datasets."""
        for source in self._sources.values():
            source.close()


def open_source(path: str, options: FramesConfig, condition: str, most: int | None) -> Source:
    """Returns the episodes of a dataset or of a run, or the videos of a folder.

    A folder of several runs that recorded a dataset each is all of them; the videos of an
    evaluation are of its task.

    Raises:
        InputError: there is nothing that can be shown.
    """
    folder = Path(path).expanduser()
    if is_address(path) or not folder.is_dir() or _is_dataset(folder):
        dataset = Dataset(path)
        # An evaluation may have recorded steps without pictures, and videos.
        if images_of(dataset) or is_address(path) or not (folder / "videos").is_dir():
            return DatasetSource(dataset, options, condition, most)
        dataset.close()
    runs = sorted(found.parent.parent for found in folder.rglob(f"dataset/{_DATASET}"))
    if runs:
        named = {run.relative_to(folder).as_posix(): run for run in runs}
        return SeveralSources(
            {n: DatasetSource(Dataset(r), options, condition, most) for n, r in named.items()}
        )
    if condition:
        raise ConfigError("filter: videos have no columns to filter by; leave it out")
    task = ""
    if (folder / SUMMARY).is_file() and (folder / "videos").is_dir():
        task = str((read_json(folder / SUMMARY).get("protocol") or {}).get("task", ""))
        folder /= "videos"
    return VideoSource(folder, options, most, task)


def _is_dataset(folder: Path) -> bool:
    return any((place / _DATASET).is_file() for place in (folder, folder / "dataset"))


def task_of_video(name: str) -> str:
    """Returns the task that the name of a video tells: ``build_gate_5.mp4`` is ``build_gate``."""
    path = Path(name)
    task = _NUMBER.sub("", path.stem)
    return task or path.parent.name or path.stem


def chosen_steps(
    rewards: NDArray[np.float32], progress: NDArray[np.float32], options: FramesConfig
) -> list[int]:
    """Returns numbers of steps in order: every so many, or those of events (``choose_frames``).

    With ``every``, the last step is one of them, and where there are more than ``budget``, they are
    evenly thinned.
    """
    if options.every is None:
        return choose_frames(rewards, progress, options.budget)
    last = len(rewards) - 1
    chosen = sorted({*range(0, last + 1, options.every), last})
    if len(chosen) <= options.budget:
        return chosen
    return sorted({round(at) for at in np.linspace(0, last, options.budget).tolist()})


def choose_frames(
    rewards: NDArray[np.float32], progress: NDArray[np.float32], budget: int
) -> list[int]:
    """Returns numbers of steps in order: the first, the last, those of events, and others.

    An event is a reward other than 0, or a change of progress. With more events than room, the
    largest are taken; what is left is the middle of the widest gap, again and again.

    Args:
        rewards: reward of each step, ``(T,)``.
        progress: progress after each step, ``(T,)``; may be NaN.
        budget: most frames, 2 or more.
    """
    steps = len(rewards)
    if steps <= budget:
        return list(range(steps))
    chosen = {0, steps - 1}
    known = np.nan_to_num(progress)
    size = np.abs(rewards) + np.abs(np.diff(known, prepend=known[0]))
    # Before the fill, half of the room at most, so that a steady reward does not hide the rest.
    room = max(0, (budget - 2 + 1) // 2)
    order = np.lexsort((np.arange(steps), -size))
    chosen |= {int(step) for step in order[:room] if size[step] > 0}
    while len(chosen) < budget:
        known_steps = sorted(chosen)
        gaps = np.diff(known_steps)
        widest = int(gaps.argmax())
        chosen.add(known_steps[widest] + int(gaps[widest]) // 2)
    return sorted(chosen)


def reference_of(file: str, metadata: Mapping[str, Any]) -> bytes | None:
    """Returns the picture of what is to be matched as a PNG file; None if there is none.

    Args:
        file: the picture's path; empty for the one that the task names in ``metadata.reference``.
        metadata: of the task.

    Raises:
        ConfigError: the picture cannot be read.
    """
    path = file or str(metadata.get("reference", ""))
    if not path:
        return None
    place = Path(path).expanduser()
    image = None
    with contextlib.suppress(cv2.error):  # it is larger than OpenCV reads
        image = cv2.imread(str(place), cv2.IMREAD_COLOR) if place.is_file() else None
    if image is None:
        raise ConfigError(f"{path}: no picture there that can be read; set reference to one")
    return png(image)


def png(image: Array, scale: int = 1) -> bytes:
    """Returns a picture, BGR or grey, as a PNG file, each pixel a square of ``scale`` pixels."""
    image = np.repeat(np.repeat(image, scale, axis=0), scale, axis=1)
    return bytes(cv2.imencode(".png", np.ascontiguousarray(image))[1])


def _frames_in(file: Path) -> int:
    """Returns how many frames a video has; nothing but the first is decoded."""
    import av  # noqa: PLC0415 - 0.1 s, and most judges see datasets

    try:
        next(_decoded(file), None)
        with av.open(str(file)) as video:
            count = sum(packet.size > 0 for packet in video.demux(video=0))
    except (av.FFmpegError, OSError, IndexError) as error:
        raise UnreadableClip(f"{file} cannot be read as a video: {_reason(error)}") from error
    if not count:
        raise UnreadableClip(f"{file} has no frames")
    return count


def _decoded(file: Path) -> Iterator[Array]:
    """Yields the frames of a video, ``(height, width, 3)``, BGR."""
    import av  # noqa: PLC0415 - likewise

    try:
        with av.open(str(file)) as video:
            for frame in video.decode(video=0):
                yield frame.to_ndarray(format="bgr24")
    except (av.FFmpegError, OSError, IndexError) as error:
        raise UnreadableClip(f"{file} cannot be read as a video: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())


def _within(steps: Sequence[int], start: int, stop: int) -> list[int]:
    return [step for step in steps if start <= step < stop]
