"""The calls of models: as a table, as conversations to learn from, and a sample for dashboards."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollout.api import CALLS, NO_USAGE, Call, Fragment, Outcome, Usage, option, read_calls
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.schema import EXTRA, column_name
from rollout.data.tables import write_table
from rollout.errors import DatasetError
from rollout.files import replacing

COLUMN = column_name(EXTRA, CALLS)
_PIECE = 256  # steps read at once
_TEXTS = ("role", "asked", "reported", "finish", "code", "problem", "action", "answer", "reasoning")
_TEXTS_MORE = ("request", "prompt")
_JSON = ("messages", "fields", "tools", "errors")
_COUNTS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_IDS = ("prompt_ids", "output_ids")

_SAMPLE_ROWS = 500
_SAMPLE_CHARACTERS = 2000  # of a text
_SAMPLE_COLUMNS: Mapping[str, Any] = {
    "episode": np.int64,
    "step": np.int64,
    "model": np.str_,
    "prompt": np.str_,
    "answer": np.str_,
    "action": np.str_,
    "usable": np.bool_,
    "tokens": np.float64,
    "usd": np.float64,
    "seconds": np.float64,
}

SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in ("episode", "attempt", "step", "try")),
        *((name, pa.string()) for name in ("state", "state_set", "task", "policy", "end")),
        *((name, pa.string()) for name in (*_TEXTS, *_TEXTS_MORE, *_JSON)),
        *((name, pa.bool_()) for name in ("usable", "earlier", "success")),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.float64()) for name in ("usd", "started", "seconds", "waited_s")),
        *((name, pa.list_(pa.int32())) for name in _IDS),
        ("output_logprobs", pa.list_(pa.float32())),
    ]
)
"""Columns of the table of calls; those that a policy does not record are null."""


def calls_of_episode(dataset: Dataset, ref: EpisodeRef) -> Iterator[tuple[int, Call]]:
    """Yields the step and each call of an episode.

    Raises:
        DatasetError: the dataset has no calls.
    """
    _require_calls(dataset)
    for window in dataset.stream(ref, [COLUMN], length=_PIECE):
        for offset, calls in enumerate(window.columns[COLUMN]):
            for call in read_calls(calls):
                yield window.start + offset, call


def usage_of(dataset: Dataset, ref: EpisodeRef) -> Usage:
    """Returns what the calls of an episode cost; nothing if its policy calls no model."""
    if COLUMN not in dataset.columns:
        return NO_USAGE
    return Usage.of(call for _, call in calls_of_episode(dataset, ref))


def _require_calls(dataset: Dataset) -> None:
    if COLUMN not in dataset.columns:
        raise DatasetError(
            f"{dataset.layout.root} has no column {COLUMN}: its policy, "
            f"{dataset.manifest.policy}, called no model"
        )


def _rows(dataset: Dataset, ref: EpisodeRef) -> Iterator[dict[str, Any]]:
    about = {name: getattr(ref, name) for name in ("episode", "attempt", "task", "policy", "end")}
    about |= {"state": str(ref.state), "state_set": ref.state_set}
    about["success"] = ref.outcome == Outcome.SUCCESS
    for step, call in calls_of_episode(dataset, ref):
        data = call.as_json()
        row = {name: data.get(name) for name in SCHEMA.names}
        row |= {name: json.dumps(data[name], ensure_ascii=False) for name in _JSON if name in data}
        yield {**row, **about, "step": step}


@dataclass(frozen=True)
class Calls:
    """The exporter ``calls``: the calls of models, as a table or as conversations to learn from.

    ``.parquet``: a table with a row per call, of lost attempts too, and the columns ``SCHEMA``.
    ``.jsonl``: a line of chat for each usable answer in an episode with a result: ``messages`` with
    the answer as the last one, ``episode``, ``step``, ``reward`` (the return of the episode) and
    ``success``; and with token ids those of ``rows``.

    ``rows: trl`` has ``prompt_ids``, ``completion_ids`` and ``logprobs``; ``verl`` has
    ``prompt_ids``, ``response_ids``, ``response_mask``, ``response_logprobs``, ``reward_score`` and
    ``num_turns``.
    """

    rows: Literal["trl", "verl"] | None = option(
        None, "Names of the token ids, which each line must have then; by default trl's, if any."
    )

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the name of the file; see ``rollout.api.Exporter``."""
        if out.suffix not in (".parquet", ".jsonl"):
            raise DatasetError(f"expected a file .parquet or .jsonl, got {out}")
        if episodes:
            _require_calls(dataset)

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the calls of episodes and returns their number; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        count = 0
        with replacing(out) as new:
            if out.suffix == ".jsonl":
                with new.open("w", encoding="utf-8") as file:
                    for line in _chats(dataset, episodes, self.rows):
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                        count += 1
                return count
            with pq.ParquetWriter(new, SCHEMA, compression="zstd") as writer:
                for ref in episodes:
                    table = pa.Table.from_pylist(list(_rows(dataset, ref)), SCHEMA)
                    writer.write_table(table)
                    count += table.num_rows
        return count


def _chats(
    dataset: Dataset, episodes: Sequence[EpisodeRef], rows: str | None
) -> Iterator[dict[str, Any]]:
    for ref in episodes:
        if ref.end == "lost":
            continue
        for step, call in calls_of_episode(dataset, ref):
            if not call.usable or call.messages is None:
                continue
            said = {"role": "assistant", "content": call.answer}
            line = {"messages": [*call.messages, said], "episode": ref.episode, "step": step}
            line |= {"reward": ref.total_reward, "success": ref.outcome == Outcome.SUCCESS}
            if call.prompt_ids and call.output_ids:
                line |= _tokens(call, rows or "trl", ref.total_reward)
            elif rows is not None:
                raise DatasetError(
                    f"{dataset.layout.root}: step {step} of episode {ref.episode} has no token "
                    f"ids, which rows of {rows} need, and text is not encoded again; leave --rows "
                    f"out for conversations, or record with token ids (docs/vlm.md)"
                )
            yield line


def _tokens(call: Call, rows: str, reward: float) -> dict[str, Any]:
    prompt, output, logprobs = call.prompt_ids, call.output_ids, call.output_logprobs
    if rows == "trl":
        return {"prompt_ids": prompt, "completion_ids": output, "logprobs": logprobs}
    return {
        "prompt_ids": prompt,
        "response_ids": output,
        "response_mask": [1] * len(output or ()),
        "response_logprobs": logprobs,
        "reward_score": reward,
        "num_turns": 2,  # one of the user, one of the assistant: verl counts both
    }


def describe_calls(calls: Sequence[Call], spent: Usage) -> tuple[str, str]:
    """Returns two lines about the calls of a step, for people: the thought and the cost.

    Args:
        calls: the calls of a step.
        spent: usage of the episode so far, this step included.
    """
    if not calls:
        return "", ""
    last = calls[-1]
    thoughts = [str(text) for text in (last.fields or {}).values()]
    thought = " | ".join(thoughts) or last.reasoning
    if last.usable is False:
        thought = f"unusable ({last.code}): {last.answer}"
    tokens = sum((call.input_tokens or 0) + (call.output_tokens or 0) for call in calls)
    seconds = sum(call.seconds or 0.0 for call in calls)
    cost = f"{len(calls)} calls  {tokens} tokens  {seconds:.1f} s  {spent.price_text()} USD"
    return " ".join(thought.split()), cost


class CallSample:
    """A uniform random sample of the calls in fragments, of 500 at most.

    Attributes:
        seen: number of calls so far.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._rows: list[tuple[int, dict[str, Any]]] = []  # with the number of the call
        self._rng = random.Random(0)  # noqa: S311 - a sample, no secret

    def add(self, fragment: Fragment) -> None:
        """Adds the calls of a fragment's steps."""
        calls = fragment.extras.get(CALLS)
        if calls is None:
            return
        for t, b in np.argwhere(fragment.valid).tolist():
            episode = fragment.starts[fragment.start_index[t, b]].episode
            for call in read_calls(calls[t, b]):
                self._keep(call, episode, int(fragment.step[t, b]))

    def _keep(self, call: Call, episode: int, step: int) -> None:
        self.seen += 1
        if len(self._rows) < _SAMPLE_ROWS:
            self._rows.append((self.seen, _sample_row(call, episode, step)))
        elif (place := self._rng.randrange(self.seen)) < _SAMPLE_ROWS:
            self._rows[place] = (self.seen, _sample_row(call, episode, step))

    def write(self, path: Path) -> None:
        """Writes the sample in the order of the calls.

        Columns: episode, step, model, prompt (the last message), answer, action, usable, tokens,
        usd and seconds. Long texts are cut; an unknown number is NaN.

        Raises:
            DiskFullError: the disk is full.
            OSError: it cannot be written.
        """
        rows = [row for _, row in sorted(self._rows, key=lambda each: each[0])]
        path.parent.mkdir(parents=True, exist_ok=True)
        table = {
            name: np.array([r[name] for r in rows], kind) for name, kind in _SAMPLE_COLUMNS.items()
        }
        write_table(path, table)


def _sample_row(call: Call, episode: int, step: int) -> dict[str, Any]:
    tokens = [call.input_tokens, call.output_tokens]
    numbers = {"usd": call.usd, "seconds": call.seconds}
    return {
        "episode": episode,
        "step": step,
        "model": _cut_text(call.asked),
        "prompt": _cut_text(
            _message_text(call.messages[-1].get("content")) if call.messages else ""
        ),
        "answer": _cut_text(call.answer),
        "action": _cut_text(call.action),
        "usable": call.usable is not False,
        "tokens": sum(np.nan if each is None else each for each in tokens),
        **{name: np.nan if value is None else value for name, value in numbers.items()},
    }


def _cut_text(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _SAMPLE_CHARACTERS else f"{text[:_SAMPLE_CHARACTERS]} ..."


def _message_text(content: object) -> object:
    """The text of a message; pictures are named."""
    if not isinstance(content, list):
        return content
    return "\n".join(part.get("text", f"[{part.get('type')}]") for part in content)
