"""Judgement: a model rates recorded episodes. Replies are kept, so no call is paid for twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import Array, Call, Usage, pixels
from rollout.cli import Session
from rollout.data import Dataset, EpisodeRef
from rollout.data.replay import images_of
from rollout.data.tables import write_table
from rollout.errors import ConfigError, PolicyUnavailable, UnknownNameError
from rollout.job import Job, open_job
from rollout.judge.config import FramesConfig, JudgeConfig
from rollout.judge.report import calibrate, cut_note, read_ratings, write_report
from rollout.judge.rubric import Rubric, load_rubric
from rollout.models.chat_api import incomplete_reason
from rollout.models.client import ModelClient, Request
from rollout.models.spending import price_of
from rollout.models.transport import check_endpoint
from rollout.observe.aggregates import spent_figures
from rollout.observe.lineage import Results

log = logging.getLogger(__name__)

COLUMNS: Mapping[str, tuple[type, str]] = {
    "episode": (np.int64, "the judged episode; of a pair, the one with the smaller number"),
    "other": (np.int64, "the other episode of a pair; -1 without one"),
    "swapped": (np.bool_, "whether the other one was shown first"),
    "repeat": (np.int64, "number of the verdict on the same"),
    "criterion": (str, "what was judged"),
    "score": (np.float64, "NaN for no verdict; of a pair 1 if `episode` is better, 0.5, or 0"),
    "code": (str, "ok; abstained; unusable; cut; refused; lost"),
    "calls": (np.int64, "calls for all criteria of this verdict"),
    "tokens": (np.int64, "likewise"),
    "usd": (np.float64, "likewise; NaN if unknown, a lower bound if it is known of some only"),
    "evidence": (str, "the answer of the judge"),
    "request": (str, "digest of the last request"),
}
"""Columns of ``verdicts.parquet``, one row for each criterion of a verdict."""


@dataclass(frozen=True)
class Item:
    """A verdict to ask for."""

    first: EpisodeRef
    second: EpisodeRef | None
    swapped: bool
    repeat: int


def judge(config: JudgeConfig, session: Session) -> str | None:
    """Rates the episodes of a dataset, in a run directory of its own.

    Returns:
        None if every verdict was asked for; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was paid.
        KeyboardInterrupt: a signal arrived; --resume continues it.
    """
    rubric = load_rubric(config.rubric)
    check_endpoint(config.endpoint)
    if not config.endpoint.images:
        raise ConfigError("endpoint.images=false: a judge looks at pictures; choose another model")
    if config.limits.usd is not None and price_of(config.model, config.prices) is None:
        raise ConfigError(
            f"limits.usd: the price of {config.model} is not known; list it in a file and name "
            f"that in prices"
        )
    ratings = read_ratings(config.ratings, rubric, config.mode) if config.ratings else None
    with Dataset(config.dataset) as dataset:
        _require_another_model(config, dataset)
        clips = Clips(dataset, config.frames)
        reference = reference_of(config.reference, dataset.manifest.task)
        items = list(_items(config, dataset))
        with open_job("judge", config, session, needs_ray=False) as job:
            job.lineage.add("used", dataset)
            job.report(mirrored={})
            judging = _Judging(config, job, dataset, rubric, clips, reference)
            return job.finish(
                lambda: judging.run(items), lambda status: judging.conclude(status, ratings)
            )


def _require_another_model(config: JudgeConfig, dataset: Dataset) -> None:
    played = dataset.manifest.policy_options.get("model")
    if played == config.model and not config.allow_same_model:
        raise ConfigError(
            f"model: {config.model} played these episodes itself, and models prefer their own; "
            f"choose another judge, or set allow_same_model=true"
        )


def _items(config: JudgeConfig, dataset: Dataset) -> Iterator[Item]:
    every = dataset.episodes(filter=config.filter)
    refs = sorted((r for r in every if r.length), key=lambda ref: ref.episode)
    refs = refs[: config.episodes]
    needed = 1 if config.mode == "absolute" else 2
    if len(refs) < needed:
        raise ConfigError(
            f"dataset: {config.dataset} has {len(refs)} episodes with a result"
            f"{f' and filter={config.filter!r}' if config.filter else ''}, expected {needed}"
        )
    for repeat in range(config.repeats):
        if config.mode == "absolute":
            yield from (Item(ref, None, swapped=False, repeat=repeat) for ref in refs)
            continue
        for first, second in _pairs(len(refs), config.pairs, config.seed):
            for swapped in (False, True):
                yield Item(refs[first], refs[second], swapped, repeat)


def _pairs(count: int, most: int, seed: int) -> list[tuple[int, int]]:
    """Returns distinct pairs in random order; a larger number only adds pairs at the end."""
    possible = [(i, j) for i in range(count) for j in range(i + 1, count)]
    order = np.random.default_rng(seed).permutation(len(possible))
    return [possible[number] for number in order[:most]]


class _Judging:
    """One session of a judgement."""

    def __init__(
        self,
        config: JudgeConfig,
        job: Job,
        dataset: Dataset,
        rubric: Rubric,
        clips: Clips,
        reference: bytes | None,
    ) -> None:
        self._reference = reference
        self._config, self._job, self._dataset = config, job, dataset
        self._rubric, self._clips = rubric, clips
        self._pairwise = config.mode == "pairwise"
        self._client = ModelClient(
            config.endpoint,
            config.model,
            limits=config.limits,
            prices=config.prices,
            replies=job.run.path / "replies",
        )
        self._rows: list[dict[str, Any]] = []
        self._lost = 0

    def run(self, items: list[Item]) -> str | None:
        """Asks for all verdicts, several at a time."""
        job, done = self._job, 0
        with job.stop.deferred(), ThreadPoolExecutor(self._config.endpoint.calls) as threads:
            # Frames are read here: a dataset is not for several threads.
            ahead = 2 * self._config.endpoint.calls
            for begin in range(0, len(items), ahead):
                batch = items[begin : begin + ahead]
                prepared = [(item, self._prepare(item)) for item in batch]
                for rows in threads.map(self._verdict, *zip(*prepared, strict=True)):
                    self._rows += rows
                    self._lost += bool(rows) and rows[0]["code"] == "lost"
                    done += bool(rows)
                self._show(done, len(items))
                if job.stop.requested:
                    break
        return f"{self._lost} verdicts were lost; --resume asks again" if self._lost else None

    def _show(self, done: int, total: int) -> None:
        spent = self._client.spent
        values = {**self._client.figures(), **spent_figures(spent), "done": done / total}
        self._job.metrics.write(done, values)
        self._job.progress.update(done / total, {"verdicts": done, "USD": spent.price_text()})

    def _prepare(self, item: Item) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """Returns the messages of an item, and their pictures by digest."""
        images: dict[str, bytes] = {}
        parts: list[dict[str, Any]] = []

        def show(text: str, image: bytes) -> None:
            digest = hashlib.sha256(image).hexdigest()[:32]
            images[digest] = image
            parts.append({"type": "text", "text": text})
            parts.append({"type": "image", "digest": digest})

        if self._reference is not None:
            show("Reference, which the result is to match:", self._reference)
        shown = [item.first] if item.second is None else [item.first, item.second]
        for name, ref in zip("AB", reversed(shown) if item.swapped else shown, strict=False):
            if self._pairwise:
                parts.append({"type": "text", "text": f"Recording {name}:"})
            for step, image in self._clips.read(ref):
                show(f"Step {step} of {ref.length}:", image)
        goal = str(self._dataset.manifest.task.get("goal", ""))
        system = self._rubric.prompt(goal, pairwise=self._pairwise)
        return [{"role": "system", "content": system}, {"role": "user", "content": parts}], images

    def _verdict(
        self, item: Item, prepared: tuple[list[dict[str, Any]], dict[str, bytes]]
    ) -> list[dict[str, Any]]:
        """Asks for a verdict until one can be used, or the tries are used up.

        Returns:
            a row for each criterion; none if the job is to stop.
        """
        messages, images = prepared
        sampling = self._config.sampling
        fields = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
        calls: list[Call] = []
        verdict: dict[str, float | str | None] | None = None
        code = "ok"
        for number in range(self._config.reparse + 1):
            if self._job.stop.requested:  # at most the calls in flight are waited for
                return []
            try:
                request = Request(fields, messages, images, "image/png", [item.repeat, number])
                call = self._client.ask(request)
            except PolicyUnavailable as error:
                log.warning("episode %d: no verdict: %s", item.first.episode, error)
                code = "lost"
                break
            calls.append(call)
            try:
                verdict = self._rubric.read(call.answer, pairwise=self._pairwise)
                code = "ok"
                break
            except ValueError as error:
                code, problem = incomplete_reason(call.finish)
                code, problem = code or "unusable", problem or str(error)
                again = f"Your answer could not be used: {problem}. Answer in the form asked for."
                answer = {"role": "assistant", "content": call.answer or "(nothing)"}
                messages = [*messages, answer, {"role": "user", "content": again}]
        used = Usage.of(calls)
        about = {
            "episode": item.first.episode,
            "other": -1 if item.second is None else item.second.episode,
            "swapped": item.swapped,
            "repeat": item.repeat,
            "calls": used.calls,
            "tokens": used.input_tokens + used.output_tokens,
            "usd": np.nan if used.price is None else used.price,
            "evidence": calls[-1].answer if calls else "",
            "request": calls[-1].request if calls else "",
        }
        names = [*self._rubric.criteria, *self._of_success()]
        return [{**about, **_scored(name, verdict, code, item)} for name in names]

    def _of_success(self) -> list[str]:
        return ["success"] if self._rubric.success and not self._pairwise else []

    def conclude(self, status: str, ratings: Mapping[str, Mapping[int, float]] | None) -> str:
        """Writes ``verdicts.parquet``, ``report.md`` and ``summary.json``."""
        run, c = self._job.run, self._config
        table: dict[str, NDArray[Any]] = {
            name: np.array([row[name] for row in self._rows], kind)
            for name, (kind, _) in COLUMNS.items()
        }
        docs = {name: doc for name, (_, doc) in COLUMNS.items()}
        write_table(run.path / "verdicts.parquet", table, docs=docs)
        findings = calibrate(
            self._rows, self._dataset, c.mode, ratings, c.measure, self._rubric.criteria
        )
        protocol = {
            "dataset": c.dataset,
            "task": self._dataset.manifest.task["name"],
            "model": c.model,
            "mode": c.mode,
            "rubric": self._rubric.model_dump(),
            "rubric_digest": hashlib.sha256(
                json.dumps(self._rubric.model_dump(), sort_keys=True).encode()
            ).hexdigest()[:16],
            "frames": c.frames.model_dump(),
            "sampling": c.sampling.model_dump(),
            "repeats": c.repeats,
        }
        results = {"findings": findings, "usage": self._client.spent.as_json()}
        summary = self._job.write_summary(status, protocol=protocol, results=results)
        (run.path / "report.md").write_text(write_report(summary), encoding="utf-8")
        self._job.lineage.add(
            "made", Results(run.path, ("summary.json", "report.md", "verdicts.parquet"))
        )
        if cut := cut_note(summary):
            log.warning("%s", cut)
        return f"{len(self._rows)} verdicts by criterion"


def _scored(
    name: str, verdict: Mapping[str, float | str | None] | None, code: str, item: Item
) -> dict[str, Any]:
    value = None if verdict is None else verdict[name]
    if verdict is not None and value is None:
        code = "abstained"
    if isinstance(value, str):
        first = "B" if item.swapped else "A"
        value = 0.5 if value == "tie" else float(value == first)
    return {"criterion": name, "score": np.nan if value is None else value, "code": code}


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


def reference_of(file: str, task: Mapping[str, Any]) -> bytes | None:
    """Returns the picture of what is to be matched as a PNG file; None if there is none.

    Args:
        file: the picture's path; empty for the one that the task names in ``metadata.reference``.
        task: of the dataset's manifest.

    Raises:
        ConfigError: the picture cannot be read.
    """
    metadata = task.get("metadata") or {}
    path = file or str(metadata.get("reference", ""))
    if not path:
        return None
    place = Path(path).expanduser()
    image = None
    with contextlib.suppress(cv2.error):  # it is larger than OpenCV reads
        image = cv2.imread(str(place), cv2.IMREAD_COLOR) if place.is_file() else None
    if image is None:
        raise ConfigError(f"{path}: no picture there that can be read; set reference to one")
    return bytes(cv2.imencode(".png", image)[1])


class Clips:
    """The chosen frames of episodes as PNG files.

    Raises:
        ConfigError: the dataset has no images, or several and none is named.
        UnknownNameError: it has no image column of that name.
    """

    def __init__(self, dataset: Dataset, options: FramesConfig) -> None:
        found = images_of(dataset)
        if options.column and options.column not in found:
            raise UnknownNameError("image column", options.column, found)
        if not options.column and len(found) != 1:
            raise ConfigError(
                f"frames.column: {dataset.layout.root} has {len(found)} image columns "
                f"({', '.join(found) or 'none'}); name one, or record with images"
            )
        self._dataset, self._options = dataset, options
        self._column = options.column or found[0]
        self._key = self._column.partition("/")[2]

    def read(self, ref: EpisodeRef) -> list[tuple[int, bytes]]:
        """Returns the number of the step and the file of each chosen frame.

        Raises:
            DatasetError: the steps are damaged.
        """
        steps = self._dataset.read(ref, ["reward", "progress"]).columns
        chosen = choose_frames(steps["reward"], steps["progress"], self._options.budget)
        images: dict[int, Array] = {}
        for window in self._dataset.stream(ref, [self._column], length=64):
            column = window.columns[self._column]
            for step in _within(chosen, window.start, window.start + len(column)):
                images[step] = column[step - window.start].copy()
        final = self._dataset.read(ref, []).final_observations.get(self._key)
        frames = [(step, self._encode(images[step])) for step in chosen]
        if final is not None:  # the result of the last action
            frames[-1:] = [(ref.length, self._encode(final))]
        return frames

    def _encode(self, image: Array) -> bytes:
        image = pixels(self._dataset.manifest.observation_space[self._key], image)
        if image.ndim == 3 and image.shape[2] >= 3:
            image = image[:, :, 2::-1]
        side = self._options.scale
        image = np.repeat(np.repeat(image, side, axis=0), side, axis=1)
        return bytes(cv2.imencode(".png", np.ascontiguousarray(image))[1])


def _within(steps: Sequence[int], start: int, stop: int) -> list[int]:
    return [step for step in steps if start <= step < stop]
