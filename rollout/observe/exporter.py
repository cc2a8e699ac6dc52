"""Exports ``metrics.jsonl`` through Ray's own metrics, so that Prometheus can scrape them.

The file is authoritative. If Ray runs in the process that writes it, each line is also recorded in
``ray.util.metrics``, by the names in ``EXPORTED``; otherwise nothing is exported. Exported values
can be late (Ray reports every ten seconds), and the last seconds of a job are missing.

There are three tags with few values each: ``run`` is the id of the run, ``kind`` is the kind of
job, and some metrics have their own tag (``phase``, ``cause``, ``queue``) with a fixed list of
values.

Ray adds the prefix ``ray_`` to every name and the suffix ``_total`` to counters. It computes the
sum of a histogram from the midpoints of its buckets.

Docs: https://docs.ray.io/en/latest/ray-observability/user-guides/add-app-metrics.html
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

from rollout.api.calls import UNITS
from rollout.api.fragment import Phase
from rollout.observe.hosts import CAUSES, QUEUES
from rollout.observe.metrics import Scalar
from rollout.observe.wandb_mirror import JobType

logger = logging.getLogger(__name__)

OTHER = "other"
"""Value of a metric's own tag for everything that its list does not name."""

COMMON_TAGS = ("run", "kind")

_SECONDS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]  # buckets of histograms
_JOIN_S = 5.0
_PHASES = get_args(Phase)


@dataclass(frozen=True)
class Exported:
    """A Ray metric and the value of a metrics line that it exports.

    Attributes:
        source: name of the value in a line; ``lost/*`` matches all names with this prefix, and the
            rest of the name becomes the value of ``tag``.
        name: name of the metric, without Ray's prefix and suffix.
        kind: a ``counter`` exports a running total; a ``histogram`` counts each value.
        doc: description with unit.
        tag: name of its own tag; empty for none.
        values: all values of that tag; others are counted together as ``other``.
    """

    source: str
    name: str
    kind: Literal["gauge", "counter", "histogram"]
    doc: str
    tag: str = ""
    values: tuple[str, ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of all its tags."""
        return (*COMMON_TAGS, self.tag) if self.tag else COMMON_TAGS

    def find(self, line: Mapping[str, Scalar]) -> dict[str, float]:
        """Returns the numbers in a line that it exports, by the value of its own tag."""
        if not self.tag:
            named = [("", line.get(self.source))]
        else:
            begin = self.source.removesuffix("*")
            named = [(k.removeprefix(begin), v) for k, v in line.items() if k.startswith(begin)]
        found: dict[str, float] = {}
        for name, value in named:
            if not isinstance(value, bool | str | None) and math.isfinite(value):
                key = name if name in ("", *self.values) else OTHER
                found[key] = found.get(key, 0.0) + value
        return found


_MEAN = "mean of the last 100 episodes"

EXPORTED: tuple[Exported, ...] = (
    Exported("env_steps", "gamut_env_steps", "counter", "Steps of single slots."),
    Exported("rate/steps_per_s", "gamut_env_steps_per_second", "gauge", "Steps, last minute."),
    Exported("episodes", "gamut_episodes", "counter", "Episodes with a result."),
    Exported("rate/episodes_per_s", "gamut_episodes_per_second", "gauge", "Episodes, last minute."),
    Exported("done", "gamut_done_ratio", "gauge", "Share of the job that is over, 0 to 1."),
    Exported("episode/return", "gamut_episode_return", "gauge", f"Return, {_MEAN}."),
    Exported("episode/length", "gamut_episode_steps", "gauge", f"Length in steps, {_MEAN}."),
    Exported("episode/success", "gamut_episode_success_ratio", "gauge", f"Successes, {_MEAN}."),
    Exported("episode/progress", "gamut_episode_progress_ratio", "gauge", f"Progress, {_MEAN}."),
    Exported("episode/seconds", "gamut_episode_seconds", "gauge", f"Duration in s, {_MEAN}."),
    Exported("calls", "gamut_model_calls", "counter", "Calls of models."),
    Exported("calls/input_tokens", "gamut_model_input_tokens", "counter", "Tokens of prompts."),
    Exported("calls/output_tokens", "gamut_model_output_tokens", "counter", "Of answers."),
    Exported("calls/unusable_share", "gamut_model_unusable_ratio", "gauge", "No action in them."),
    Exported("calls/usd", "gamut_model_usd", "counter", "Price of the calls, US dollars."),
    Exported("models/in_flight", "gamut_model_calls_in_flight", "gauge", "Calls in flight."),
    Exported("models/tokens_per_s", "gamut_model_tokens_per_second", "gauge", "Last minute."),
    Exported("models/spent/*", "gamut_model_spent", "gauge", "Of the run.", "unit", UNITS),
    Exported("models/limit/*", "gamut_model_limit", "gauge", "Of the run.", "unit", UNITS),
    Exported("lost/*", "gamut_episodes_lost", "counter", "Lost attempts.", "phase", _PHASES),
    Exported("games/instances", "gamut_instances", "gauge", "Games that there are to be."),
    Exported("games/ready", "gamut_instances_ready_ratio", "gauge", "Share of them that are up."),
    Exported("players/games", "gamut_players_games_ratio", "gauge", "Time spent in games."),
    Exported("games/memory_mb", "gamut_games_memory_megabytes", "gauge", "Memory of all games."),
    # A game that was quarantined, or replaced by a spare, counts as failed too.
    Exported("restarts/*", "gamut_restarts", "counter", "Replaced games.", "cause", CAUSES),
    Exported("queue/*", "gamut_queue_depth", "gauge", "Entries in a queue.", "queue", QUEUES),
    Exported("train/update", "gamut_updates", "counter", "Updates of the network."),
    Exported("train/staleness", "gamut_staleness_updates", "gauge", "Age of old steps, updates."),
    Exported("train/dropped_steps", "gamut_dropped_steps", "counter", "Steps too old to use."),
    Exported("train/policy_loss", "gamut_policy_loss", "gauge", "Loss of the policy."),
    Exported("train/value_loss", "gamut_value_loss", "gauge", "Loss of the value."),
    Exported("train/entropy", "gamut_policy_entropy", "gauge", "Entropy of the policy, nats."),
    Exported("train/approx_kl", "gamut_approx_kl", "gauge", "KL of an update, nats."),
    Exported("train/explained_variance", "gamut_explained_variance", "gauge", "Of the returns."),
    Exported("train/learning_rate", "gamut_learning_rate", "gauge", "Learning rate."),
    Exported("seconds/sample", "gamut_sample_seconds", "histogram", "Waiting for steps, s."),
    Exported("seconds/update", "gamut_update_seconds", "histogram", "Learning from them, s."),
)
"""Every exported metric, in the order of ``docs/watching.md``."""

Record: TypeAlias = Callable[[float, dict[str, str]], None]
"""Records a value with its tags: sets a gauge, adds to a counter, or counts in a histogram."""

Instruments: TypeAlias = Callable[[Exported], Record]
"""Defines a metric."""


class RayExporter:
    """Exports metrics lines to Ray; a listener of ``Metrics`` and a context manager.

    A counter shows the total of the run, including earlier sessions, and never decreases. Ray drops
    a gauge that was not set for about twenty seconds, so a thread sets the newest values again
    while lines keep coming. The exporter never stops the run: an error of Ray causes one warning.

    Enter it inside the Ray session, so that it is closed first.

    Args:
        run: id of the run.
        kind: kind of the job.
        instruments: returns the functions that define metrics; called for every line. By default
            those of the Ray that runs in this process.
        refresh_s: seconds between settings of the gauges.
        hold_s: how long gauges are set again after the last line, in seconds; a job without lines
            for longer is not shown as active.
    """

    def __init__(
        self,
        run: str,
        kind: JobType,
        *,
        instruments: Callable[[], Instruments | None] | None = None,
        refresh_s: float = 5.0,
        hold_s: float = 600.0,
    ) -> None:
        self._tags = {"run": run, "kind": str(kind)}
        self._instruments = ray_instruments if instruments is None else instruments
        self._refresh_s, self._hold_s = refresh_s, hold_s
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_line_s = 0.0
        self._records: dict[str, Record] = {}
        self._totals: dict[tuple[str, str], float] = {}
        self._gauges: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}

    def __call__(self, line: Mapping[str, Scalar]) -> None:
        """Records the values of a line; never raises. Does nothing once closed."""
        with self._lock:
            self._last_line_s = time.monotonic()
            self._call(self._export, line)
            if self._gauges and self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._refresh_loop, name="ray-metrics", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Stops the exporter: gauges disappear, counters stay. Idempotent."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout=_JOIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: Callable[..., None], *arguments: object) -> None:
        """Calls a method with the function that defines metrics, if Ray runs."""
        if self._closed.is_set():
            return
        try:
            define = self._instruments()
            if define is not None:
                method(define, *arguments)
        except Exception as error:  # noqa: BLE001 - Ray's metrics raise many kinds of errors
            self._closed.set()
            kind = type(error).__name__
            logger.warning(
                "Ray's metrics cannot be written, %s: %s; metrics.jsonl has everything", kind, error
            )

    def _refresh_loop(self) -> None:
        while not self._closed.wait(self._refresh_s):
            with self._lock:
                if time.monotonic() - self._last_line_s < self._hold_s:
                    self._call(self._refresh_gauges)

    def _refresh_gauges(self, _: Instruments) -> None:
        for (name, _own), (value, tags) in self._gauges.items():
            self._records[name](value, tags)

    def _export(self, define: Instruments, line: Mapping[str, Scalar]) -> None:
        for metric in EXPORTED:
            for own, value in metric.find(line).items():
                record = self._records.get(metric.name)
                if record is None:
                    record = self._records[metric.name] = define(metric)
                tags = {**self._tags, metric.tag: own} if metric.tag else self._tags
                amount = self._increase(metric, own, value) if metric.kind == "counter" else value
                if metric.kind == "gauge":
                    self._gauges[metric.name, own] = value, tags
                if amount is not None:
                    record(amount, tags)

    def _increase(self, metric: Exported, own: str, total: float) -> float | None:
        """Returns the increase of a total; None if it did not grow, as counters need."""
        before = self._totals.get((metric.name, own), 0.0)
        if total <= before:
            return None
        self._totals[metric.name, own] = total
        return total - before


def ray_instruments() -> Instruments | None:
    """Returns the functions that define Ray metrics; None if Ray does not run in this process."""
    ray = sys.modules.get("ray")  # not imported means not running, and importing it is slow
    if ray is None or not ray.is_initialized():
        return None
    return _define


def _define(metric: Exported) -> Record:
    from ray.util.metrics import Counter, Gauge, Histogram  # noqa: PLC0415 - only where Ray runs

    name, doc, tags = metric.name, metric.doc, metric.tags
    if metric.kind == "histogram":
        return Histogram(name, doc, _SECONDS, tags).observe  # type: ignore[no-any-return]
    if metric.kind == "counter":
        return Counter(name, doc, tags).inc  # type: ignore[no-any-return]
    return Gauge(name, doc, tags).set  # type: ignore[no-any-return]
