"""Judgement: a model rates recorded episodes. Replies are kept, so no call is paid for twice."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.api import Call, Usage
from rollout.cli import Session
from rollout.data import Dataset
from rollout.data.tables import write_table
from rollout.errors import ConfigError, PolicyUnavailable
from rollout.estimate import Estimate
from rollout.files import write_atomically
from rollout.job import Job, open_job
from rollout.judge.config import JudgeConfig
from rollout.judge.criteria import (
    GENERATE,
    Criteria,
    given_criteria,
    own_criteria,
    read_criteria,
    read_generated,
    request_of,
)
from rollout.judge.ratings import (
    Known,
    Rating,
    check_scales,
    known_ratings,
    named,
    read_ratings,
)
from rollout.judge.report import calibrate, cut_note, write_report
from rollout.judge.rubric import Rubric, load_rubric
from rollout.judge.sources import (
    Clip,
    Source,
    UnreadableClip,
    open_source,
    reference_of,
)
from rollout.models.chat_api import incomplete_reason
from rollout.models.client import ModelClient, Request
from rollout.models.spending import price_of
from rollout.models.transport import check_endpoint
from rollout.observe.aggregates import spent_figures
from rollout.observe.lineage import Results
from rollout.yaml12 import dump_yaml

log = logging.getLogger(__name__)

VERDICTS = "verdicts.parquet"

VERDICTS_PART = "verdicts"
"""Name of the verdicts in an estimate."""

COLUMNS: Mapping[str, tuple[type, str]] = {
    "episode": (np.int64, "the judged episode; of a pair, the one with the smaller number"),
    "other": (np.int64, "the other episode of a pair; -1 without one"),
    "clip": (str, "what ratings call the judged episode: its number, or the file of a video"),
    "task": (str, "its task"),
    "swapped": (np.bool_, "whether the other one was shown first"),
    "repeat": (np.int64, "number of the verdict on the same"),
    "criterion": (str, "what was judged"),
    "score": (np.float64, "NaN for no verdict; of a pair 1 if `episode` is better, 0.5, or 0"),
    "code": (str, "ok; abstained; unusable; cut; refused; lost; unreadable"),
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

    first: Clip
    second: Clip | None
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
    rubric, ratings = checked(config)
    source = open_source(config.dataset, config.frames, config.filter, config.episodes)
    with closing(source):
        for dataset in source.datasets:
            _require_another_model(config, dataset)
        if config.measure and not any(clip.ref for clip in source.clips):
            raise ConfigError("measure: videos have no measure of the machine; leave it out")
        known = None
        if ratings:
            known, strange = known_ratings(ratings, source.clips, config.ratings)
            if strange:
                log.warning("ratings of other clips are left out: %s", named(strange))
        rules, without = _rules(config, source, rubric)
        firsts = {clip.task: clip for clip in source.clips}.values()
        asked = _Asked(
            rubric=rubric,
            source=source,
            items=list(_items(config, [c for c in source.clips if c.task in rules])),
            rules=rules,
            references={c.task: reference_of(config.reference, c.metadata) for c in firsts},
            left_out={**source.unreadable, **without},
        )
        with open_job("judge", config, session, needs_ray=False) as job:
            job.lineage.add("used", *source.datasets)
            job.report(mirrored={})
            judging = _Judging(config, job, asked, session.estimate)
            return job.finish(judging.run, lambda status: judging.conclude(status, known))


def checked(config: JudgeConfig) -> tuple[Rubric, list[Rating]]:
    """Checks what needs no dataset, and returns the rubric and the ratings.

    Raises:
        InputError: a key does not fit, or a file cannot be read.
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
    ratings = read_ratings(config.ratings) if config.ratings else []
    if config.mode == "absolute":
        check_scales(ratings, rubric, config.ratings)
    return rubric, ratings


def _require_another_model(config: JudgeConfig, dataset: Dataset) -> None:
    played = dataset.manifest.policy_options.get("model")
    if played == config.model and not config.allow_same_model:
        raise ConfigError(
            f"model: {config.model} played these episodes itself, and models prefer their own; "
            f"choose another judge, or set allow_same_model=true"
        )


def _rules(
    config: JudgeConfig, source: Source, rubric: Rubric
) -> tuple[dict[str, Criteria | None], dict[str, str]]:
    """Returns the criteria by task, None for those to write, and clips without, with the reason.

    Raises:
        ConfigError: no task has criteria.
    """
    metadata = {clip.task: clip.metadata for clip in source.clips}
    tasks = list(metadata)
    if not rubric.per_task:
        if config.criteria:
            raise ConfigError(
                f"criteria: the rubric {config.rubric} is the same for all tasks; choose "
                f"rubric=mcu, or leave criteria out"
            )
        return {task: {} for task in tasks}, {}
    if config.criteria == GENERATE:
        request_of(rubric, "", "")  # refuses a rubric that does not say how
        return dict.fromkeys(tasks), {}
    given = {task: rules_of(config, task, metadata[task], rubric) for task in tasks}
    found = {task: rules for task, rules in given.items() if rules is not None}
    place = f"in {config.criteria}" if config.criteria else "of its own"
    lacking = [task for task in tasks if task not in found]
    if not found:
        raise ConfigError(
            f"criteria: there are none {place} for {named(lacking)}; name a file in criteria, or "
            f"set criteria={GENERATE}"
        )
    without = {c.name: f"no criteria {place}" for c in source.clips if c.task not in found}
    return dict(found), without


def rules_of(
    config: JudgeConfig, task: str, metadata: Mapping[str, Any], rubric: Rubric
) -> Criteria | None:
    """Returns the criteria of a task that are there already; None for none.

    Raises:
        ConfigError: the named file or folder cannot be read.
    """
    if config.criteria:
        return given_criteria(config.criteria, task, rubric)
    return own_criteria(task, metadata, rubric)


def _items(config: JudgeConfig, clips: Sequence[Clip]) -> Iterator[Item]:
    needed = 1 if config.mode == "absolute" else 2
    if len(clips) < needed:
        raise ConfigError(
            f"dataset: {config.dataset} has {len(clips)} episodes with a result"
            f"{f' and filter={config.filter!r}' if config.filter else ''}, expected {needed}"
        )
    for repeat in range(config.repeats):
        if config.mode == "absolute":
            yield from (Item(clip, None, swapped=False, repeat=repeat) for clip in clips)
            continue
        for first, second in pairs_of(clips, config.pairs, config.seed):
            for swapped in (False, True):
                yield Item(first, second, swapped, repeat)


def pairs_of(clips: Sequence[Clip], most: int, seed: int) -> list[tuple[Clip, Clip]]:
    """Returns distinct pairs of clips of one task in random order; more only adds at the end."""
    possible = [pair for pair in combinations(clips, 2) if pair[0].task == pair[1].task]
    order = np.random.default_rng(seed).permutation(len(possible))
    return [possible[number] for number in order[:most]]


@dataclass(frozen=True)
class _Asked:
    """What a judgement asks about.

    Attributes:
        rubric: the rubric.
        source: the clips.
        items: the verdicts to ask for.
        rules: criteria by task; None for those that the model is to write.
        references: picture of what is to be matched by task; None for none.
        left_out: names of clips that are not judged, each with the reason.
    """

    rubric: Rubric
    source: Source
    items: Sequence[Item]
    rules: dict[str, Criteria | None]
    references: Mapping[str, bytes | None]
    left_out: dict[str, str]


class _Judging:
    """One session of a judgement."""

    def __init__(
        self, config: JudgeConfig, job: Job, asked: _Asked, estimate: Estimate | None
    ) -> None:
        self._config, self._job, self._asked = config, job, asked
        self._estimate, self._usages = estimate, list[Usage]()
        self._rubric, self._pairwise = asked.rubric, config.mode == "pairwise"
        self._client = ModelClient(
            config.endpoint,
            config.model,
            limits=config.limits,
            prices=config.prices,
            replies=job.run.path / "replies",
        )
        self._rubrics: dict[str, Rubric] = {}
        self._left_out = dict(asked.left_out)
        self._rows: list[dict[str, Any]] = []
        self._lost = 0

    def run(self) -> str | None:
        """Asks for all verdicts, several at a time."""
        job, done = self._job, 0
        with job.stop.deferred(), ThreadPoolExecutor(self._config.endpoint.calls) as threads:
            self._take_rules()
            items = [item for item in self._asked.items if item.first.task in self._rubrics]
            whole = len(items)
            if self._estimate is not None:
                items = list({item.first.task: item for item in reversed(items)}.values())
            # Frames are read here: a dataset is not for several threads.
            ahead = 2 * self._config.endpoint.calls
            for begin in range(0, len(items), ahead):
                if job.stop.requested:
                    break
                batch = items[begin : begin + ahead]
                prepared = [(item, self._prepare(item)) for item in batch]
                for rows in threads.map(self._verdict, *zip(*prepared, strict=True)):
                    self._rows += rows
                    self._lost += bool(rows) and rows[0]["code"] == "lost"
                    done += bool(rows)
                self._show(done, len(items))
        if self._estimate is not None and self._usages:
            self._estimate.add(VERDICTS_PART, self._usages, whole)
            return f"only an estimate was asked for: {done} of {whole} verdicts"
        lost = f"{self._lost} verdicts were lost; --resume asks again" if self._lost else ""
        return "; ".join(filter(None, (lost, self._left_out_text()))) or None

    def _left_out_text(self) -> str:
        if not self._left_out:
            return ""
        reasons = [f"{name}: {reason}" for name, reason in self._left_out.items()]
        return f"{len(reasons)} clips were not judged: {named(reasons)}"

    def _take_rules(self) -> None:
        """Sets the rubric of each task; asks the model for criteria that are to be written."""
        goals = {clip.task: clip.goal for clip in self._asked.source.clips}
        for task, rules in self._asked.rules.items():
            written = self._written(task, goals[task]) if rules is None else rules
            if written is not None:
                self._rubrics[task] = self._rubric.with_rules(written)
                continue
            for clip in self._asked.source.clips:
                if clip.task == task:
                    self._left_out[clip.name] = "the model wrote no criteria"

    def _written(self, task: str, goal: str) -> Criteria | None:
        """Returns criteria by the model, which the run keeps; None without a usable answer."""
        file = self._job.run.path / "criteria" / f"{safe_name(task)}.yaml"
        if file.is_file():
            return read_criteria(file, self._rubric)
        messages = request_of(self._rubric, task, goal)
        fields = {"temperature": 0.0, "max_tokens": self._config.sampling.max_tokens}
        for number in range(self._config.reparse + 1):
            if self._job.stop.requested:
                return None
            try:
                call = self._client.ask(Request(fields, messages, {}, "image/png", [task, number]))
                found = read_generated(call.answer, self._rubric)
            except PolicyUnavailable as error:
                log.warning("task %s: no criteria: %s", task, error)
                return None
            except ValueError as error:
                log.warning("task %s: the criteria could not be used: %s", task, error)
                continue
            file.parent.mkdir(exist_ok=True)
            data = {name: list(points) for name, points in found.items()}
            write_atomically(file, dump_yaml({"tasks": [task], "criteria": data}))
            return found
        return None

    def _show(self, done: int, total: int) -> None:
        spent = self._client.spent
        values = {**self._client.figures(), **spent_figures(spent), "done": done / total}
        self._job.metrics.write(done, values)
        self._job.progress.update(done / total, {"verdicts": done, "USD": spent.price_text()})

    def _prepare(self, item: Item) -> _Prepared | None:
        """Returns the messages of an item, and their pictures by digest; None if it is damaged."""
        images: dict[str, bytes] = {}
        parts: list[dict[str, Any]] = []

        def show(text: str, image: bytes) -> None:
            digest = hashlib.sha256(image).hexdigest()[:32]
            images[digest] = image
            parts.append({"type": "text", "text": text})
            parts.append({"type": "image", "digest": digest})

        if (reference := self._asked.references[item.first.task]) is not None:
            show("Reference, which the result is to match:", reference)
        shown = [item.first] if item.second is None else [item.first, item.second]
        for name, clip in zip("AB", reversed(shown) if item.swapped else shown, strict=False):
            if self._pairwise:
                parts.append({"type": "text", "text": f"Recording {name}:"})
            try:
                frames = self._asked.source.frames(clip)
            except UnreadableClip as error:
                log.warning("%s", error)
                self._left_out[clip.name] = str(error)
                return None
            for step, image in frames:
                show(f"Step {step} of {clip.length}:", image)
        rubric = self._rubrics[item.first.task]
        system = rubric.prompt(item.first.goal, pairwise=self._pairwise)
        return [{"role": "system", "content": system}, {"role": "user", "content": parts}], images

    def _verdict(self, item: Item, prepared: _Prepared | None) -> list[dict[str, Any]]:
        """Asks for a verdict until one can be used, or the tries are used up.

        Returns:
            a row for each criterion; none if the job is to stop.
        """
        messages, images = ([], {}) if prepared is None else prepared
        sampling = self._config.sampling
        fields = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
        calls: list[Call] = []
        verdict: dict[str, float | str | None] | None = None
        code = "ok" if prepared is not None else "unreadable"
        for number in range(self._config.reparse + 1 if prepared is not None else 0):
            if self._job.stop.requested:  # at most the calls in flight are waited for
                return []
            try:
                request = Request(fields, messages, images, "image/png", [item.repeat, number])
                call = self._client.ask(request)
            except PolicyUnavailable as error:
                log.warning("episode %s: no verdict: %s", item.first.name, error)
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
        if calls:  # what was lost or is unreadable says nothing about the others
            self._usages.append(used)
        about = {
            "episode": item.first.number,
            "other": -1 if item.second is None else item.second.number,
            "clip": item.first.name,
            "task": item.first.task,
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

    def conclude(self, status: str, known: Known | None) -> str:
        """Writes ``verdicts.parquet``, ``report.md`` and ``summary.json``."""
        run, c = self._job.run, self._config
        table: dict[str, NDArray[Any]] = {
            name: np.array([row[name] for row in self._rows], kind)
            for name, (kind, _) in COLUMNS.items()
        }
        docs = {name: doc for name, (_, doc) in COLUMNS.items()}
        write_table(run.path / VERDICTS, table, docs=docs)
        source = self._asked.source
        findings = calibrate(
            self._rows,
            source.clips,
            c.mode,
            known,
            c.measure,
            self._rubric.criteria,
        )
        rubric = self._rubric.data()
        protocol = {
            "dataset": c.dataset,
            "task": ", ".join(self._asked.rules),
            "model": c.model,
            "mode": c.mode,
            "rubric": rubric,
            "rubric_digest": _digest(rubric),
            "criteria": {
                task: {"digest": _digest(rules.data()), "from": c.criteria or "the task"}
                for task, rules in self._rubrics.items()
                if self._rubric.per_task
            },
            "frames": c.frames.model_dump(),
            "sampling": c.sampling.model_dump(),
            "repeats": c.repeats,
        }
        results = {
            "findings": findings,
            "usage": self._client.spent.as_json(),
            "not_judged": self._left_out,
        }
        summary = self._job.write_summary(status, protocol=protocol, results=results)
        (run.path / "report.md").write_text(write_report(summary), encoding="utf-8")
        self._job.lineage.add("made", Results(run.path, ("summary.json", "report.md", VERDICTS)))
        if cut := cut_note(summary):
            log.warning("%s", cut)
        return f"{len(self._rows)} verdicts by criterion"


_Prepared: TypeAlias = tuple[list[dict[str, Any]], dict[str, bytes]]


def safe_name(task: str) -> str:
    """Returns the name of a task as the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", task) or "task"


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


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
