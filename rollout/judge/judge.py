"""Judgement: a model rates recorded episodes. A call that was paid is not paid again."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import Call, Usage
from rollout.cli import Session
from rollout.data import Dataset, EpisodeRef
from rollout.data.tables import write_table
from rollout.errors import ConfigError, PolicyUnavailable
from rollout.job import Job, open_job
from rollout.judge.config import JudgeConfig
from rollout.judge.frames import Clips, reference_of
from rollout.judge.report import calibrate, read_ratings, told_of_cut, write_report
from rollout.judge.rubric import Rubric, load_rubric
from rollout.models.asking import Asker, Request
from rollout.models.connection import check_endpoint
from rollout.models.responses import incomplete
from rollout.models.spending import price_of
from rollout.observe.aggregates import spent_figures

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
    """One verdict to ask for."""

    first: EpisodeRef
    second: EpisodeRef | None
    swapped: bool
    repeat: int


def judge(config: JudgeConfig, session: Session) -> str | None:
    """Judges what the configuration describes, in its own run directory.

    Returns:
        None if every verdict was asked for; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was paid.
        KeyboardInterrupt: it was told to stop; --resume continues it.
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
    refs = sorted((r for r in dataset.episodes() if r.length), key=lambda ref: ref.episode)
    refs = refs[: config.episodes]
    needed = 1 if config.mode == "absolute" else 2
    if len(refs) < needed:
        raise ConfigError(
            f"dataset: {config.dataset} has {len(refs)} episodes with a result, expected {needed}"
        )
    for repeat in range(config.repeats):
        if config.mode == "absolute":
            yield from (Item(ref, None, swapped=False, repeat=repeat) for ref in refs)
            continue
        for first, second in _pairs(len(refs), config.pairs, config.seed):
            for swapped in (False, True):
                yield Item(refs[first], refs[second], swapped, repeat)


def _pairs(count: int, most: int, seed: int) -> list[tuple[int, int]]:
    """Distinct pairs in random order; more pairs only add some at the end."""
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
        self._asker = Asker(
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
        spent = self._asker.spent
        values = {**self._asker.figures(), **spent_figures(spent), "done": done / total}
        self._job.metrics.write(done, values)
        self._job.progress.update(done / total, {"verdicts": done, "USD": spent.price_text()})

    def _prepare(self, item: Item) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """The messages of an item and their pictures."""
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
        """Asks until there is a verdict, or the tries are used up; without one there is none.

        Returns:
            a row for each criterion; none if the job is to stop.
        """
        messages, images = prepared
        sampling = self._config.sampling
        fields = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
        calls: list[Call] = []
        found: dict[str, float | str | None] | None = None
        code = "ok"
        for number in range(self._config.reparse + 1):
            if self._job.stop.requested:  # at most the calls in flight are waited for
                return []
            try:
                request = Request(fields, messages, images, "image/png", [item.repeat, number])
                call = self._asker.ask(request)
            except PolicyUnavailable as error:
                log.warning("episode %d: no verdict: %s", item.first.episode, error)
                code = "lost"
                break
            calls.append(call)
            try:
                found = self._rubric.read(call.answer, pairwise=self._pairwise)
                code = "ok"
                break
            except ValueError as error:
                code, problem = incomplete(call.finish)
                code, problem = code or "unusable", problem or str(error)
                again = f"Your answer could not be used: {problem}. Answer in the form asked for."
                said = {"role": "assistant", "content": call.answer or "(nothing)"}
                messages = [*messages, said, {"role": "user", "content": again}]
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
        return [{**about, **_scored(name, found, code, item)} for name in names]

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
        found = calibrate(
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
        results = {"findings": found, "usage": self._asker.spent.as_json()}
        summary = self._job.write_summary(status, protocol=protocol, results=results)
        Path(run.path / "report.md").write_text(write_report(summary), encoding="utf-8")
        if cut := told_of_cut(summary):
            log.warning("%s", cut)
        return f"{len(self._rows)} verdicts by criterion"


def _scored(
    name: str, found: Mapping[str, float | str | None] | None, code: str, item: Item
) -> dict[str, Any]:
    value = None if found is None else found[name]
    if found is not None and value is None:
        code = "abstained"
    if isinstance(value, str):
        first = "B" if item.swapped else "A"
        value = 0.5 if value == "tie" else float(value == first)
    return {"criterion": name, "score": np.nan if value is None else value, "code": code}
