"""The status of a job on one screen, drawn by rich."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rollout.api.calls import UNITS
from rollout.observe.hosts import CAUSES
from rollout.observe.metrics import Scalar
from rollout.observe.run_status import LogWarning, RunStatus, TrialStatus, duration
from rollout.signals import shown

_STATE_STYLES = {
    "running": "cyan",
    "evaluating": "cyan",
    "done": "green",
    "ended early": "green",
    "silent": "yellow",
    "interrupted": "yellow",
    "gone": "red",
    "ended short": "red",
}
_ORDER = {"running": 0, "evaluating": 0, "done": 2, "ended early": 2}  # of trials; others are 1
_WARNINGS, _WARNINGS_BESIDE_TRIALS = 5, 2
_TRIAL_TABLE_ROWS = 5  # of one trial: blank, counts, header, trial, number left out

# By row: label to metric name and format of its value.
_FIGURES = {
    "return": {
        "": ("episode/return", ".4g"),
        "length": ("episode/length", ".1f"),
        "success": ("episode/success", ".3f"),
        "progress": ("episode/progress", ".3f"),
    },
    "models": {
        "calls": ("calls", ",.0f"),
        "unusable": ("calls/unusable_share", ".1%"),
        "tokens in": ("calls/input_tokens", ",.0f"),
        "out": ("calls/output_tokens", ",.0f"),
    },
    "calls now": {
        "in flight": ("models/in_flight", ",.0f"),
        "tokens/s": ("models/tokens_per_s", ",.0f"),
    },
    "updates": {
        "": ("train/update", ",.0f"),
        "staleness": ("train/staleness", ".0f"),
        "dropped": ("train/dropped_steps", ",.0f"),
        "sample s": ("seconds/sample", ".3g"),
        "learn s": ("seconds/update", ".3g"),
    },
    "losses": {
        "policy": ("train/policy_loss", ".3g"),
        "value": ("train/value_loss", ".3g"),
        "entropy": ("train/entropy", ".3g"),
        "kl": ("train/approx_kl", ".3g"),
        "explained var": ("train/explained_variance", ".3g"),
    },
}
_LIVE_FIGURES = ("models/in_flight", "models/tokens_per_s")  # nothing in a job that has ended
_GAMES = {
    "waiting": ("queue/waiting", ".0f"),
    "in flight": ("queue/in_flight", ".0f"),
    "inference": ("queue/inference", ".0f"),
    "memory MB": ("games/memory_mb", ",.0f"),
}


def screen(status: RunStatus, console: Console, *, height: int | None = None) -> RenderableType:
    """Returns a job's status as one screen.

    Args:
        status: status of the job.
        console: the console, which determines the width.
        height: number of available rows, for the newest warnings and then for trials; None for all.
    """
    numbers = {k: v for k, value in status.values.items() if (v := _number(value)) is not None}
    above = Group(_header(status), _figures(status, numbers))
    warnings = status.warnings[-(_WARNINGS_BESIDE_TRIALS if status.trials else _WARNINGS) :]
    room = math.inf if height is None else height - _rows(console, above)
    room -= _TRIAL_TABLE_ROWS if status.trials else 0
    while warnings and _rows(console, _warnings(warnings)) > room:
        warnings = warnings[1:]
    below = _warnings(warnings)
    if not status.trials:
        return Group(above, below)
    most = min(len(status.trials), max(1, room + 1 - _rows(console, below)))
    return Group(above, _trials(status.trials, int(most)), below)


def _rows(console: Console, part: RenderableType) -> int:
    return len(console.render_lines(part, pad=False))


def _line(text: str, style: str = "") -> Text:
    """Returns one row, truncated if it is too long; control characters are escaped."""
    plain = shown(text).replace("\n", "\\n").replace("\t", "\\t")
    return Text(plain, style, overflow="ellipsis", no_wrap=True)


def _header(status: RunStatus) -> RenderableType:
    name = Table.grid(expand=True, padding=(0, 2, 0, 0))
    name.add_column()
    name.add_column(ratio=1, no_wrap=True)
    name.add_column(no_wrap=True, justify="right", style="dim")
    state = _line(status.state, _STATE_STYLES[status.state])
    name.add_row(_line(f"{status.path.name}  {status.kind}", "bold"), state, _line(status.run_id))
    known = " ?%" if status.done is None else f"{100 * math.floor(1000 * status.done) / 1000:.1f}%"
    parts = [known, f"left {status.left}"] if status.left else [known]
    word = "up" if status.state in ("running", "silent") else "took"
    parts.append(f"session {status.session + 1}, {word} {duration(status.up_s)}")
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(ProgressBar(total=1, completed=status.done or 0, width=30), *map(_line, parts))
    return Group(name, _line(str(status.path), "dim"), _line(_process_text(status)), bar)


def _process_text(status: RunStatus) -> str:
    ago = f"last heard of {duration(status.silent_s)} ago"
    if status.state == "gone":
        return f"{ago}: process {status.process} is gone; continue with --resume"
    if status.state == "silent":
        return f"{ago}, which is long: process {status.process} hangs, or is gone"
    if status.ended:
        return f"ended {duration(status.silent_s)} ago"
    return f"process {status.process}, {ago}"


def _figures(status: RunStatus, numbers: Mapping[str, float]) -> Table:
    if status.ended:
        numbers = {k: v for k, v in numbers.items() if k not in _LIVE_FIGURES}
    checkpoints = [] if status.checkpoint is None else [status.checkpoint]
    rows = {
        "steps": _step_texts(status, numbers),
        "episodes": _episode_texts(numbers),
        **{label: _format_figures(numbers, names) for label, names in _FIGURES.items()},
        "models": _model_texts(numbers),
        "spent": _spent_texts(numbers),
        "games": _game_texts(numbers),
        "restarts": _restart_texts(numbers),
        "checkpoint": [f"{name}, {duration(age)} old" for name, age in checkpoints],
        "score": _score_texts(numbers),
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, parts in rows.items():
        if parts:
            table.add_row(label, Columns(map(_line, parts), padding=(0, 3, 0, 0)))
    return table


def _number(value: Scalar) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _format_figures(
    numbers: Mapping[str, float], names: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Returns the available figures, each after its label."""
    found = [(label, numbers.get(name), form) for label, (name, form) in names.items()]
    return [f"{label} {v:{form}}".strip() for label, v, form in found if v is not None]


def _step_texts(status: RunStatus, numbers: Mapping[str, float]) -> list[str]:
    if status.trials:  # its own lines are about single runs
        steps = [v for t in status.trials if (v := _number(t.values.get("env_steps"))) is not None]
        rates = [v for t in status.trials if (v := _rate(t)) is not None]
        return [f"{sum(steps):,.0f}", *([f"now {sum(rates):,.0f}/s"] if rates else [])]
    parts = _format_figures(
        numbers, {"": ("env_steps", ",.0f"), "now": ("rate/steps_per_s", ",.0f")}
    )
    if len(parts) > 1:
        parts[-1] += "/s"
    return parts + ([] if status.steps_per_s is None else [f"mean {status.steps_per_s:,.0f}/s"])


def _rate(trial: TrialStatus) -> float | None:
    """Returns the steps per second of a run, if it is running."""
    return _number(trial.values.get("rate/steps_per_s")) if trial.state == "running" else None


def _episode_texts(numbers: Mapping[str, float]) -> list[str]:
    parts = _format_figures(numbers, {"": ("episodes", ",.0f"), "lost": ("lost", ",.0f")})
    phases = [f"{n:.0f} in {k[5:]}" for k, n in numbers.items() if k.startswith("lost/") and n]
    if phases:
        parts[-1] += f" ({', '.join(phases)})"
    return parts


def _spent_texts(numbers: Mapping[str, float]) -> list[str]:
    """Returns the cost of model calls in all sessions, with the limits if there are any."""
    found = []
    for unit in UNITS:
        spent, limit = (numbers.get(f"models/{what}/{unit}") for what in ("spent", "limit"))
        form = ",.2f" if unit == "usd" else ",.0f"
        of = "" if limit is None else f" of {limit:{form}}"
        if unit == "usd" and "models/spent/calls" in numbers:
            found.append(f"{_price(spent, numbers.get('models/unpriced'))}{of}")
        elif spent is not None:
            found.append(f"{unit} {spent:{form}}{of}")
    return found


def _model_texts(numbers: Mapping[str, float]) -> list[str]:
    """Returns the figures of model calls in the episodes that ended."""
    found = _format_figures(numbers, _FIGURES["models"])
    priced = _price(numbers.get("calls/usd"), numbers.get("calls/unpriced"))
    return [*found, priced] if numbers.get("calls") else found


def _price(usd: float | None, unpriced: float | None) -> str:
    """Returns a price, which may be a lower bound or unknown."""
    return "USD unknown" if usd is None else f"USD {'>=' if unpriced else ''}{usd:,.2f}"


def _game_texts(numbers: Mapping[str, float]) -> list[str]:
    ready, instances = numbers.get("games/ready"), numbers.get("games/instances")
    if ready is None or instances is None:
        return []
    return [f"{ready * instances:.0f} of {instances:.0f} up", *_format_figures(numbers, _GAMES)]


def _restart_texts(numbers: Mapping[str, float]) -> list[str]:
    counts = {cause: numbers.get(f"restarts/{cause}") for cause in CAUSES}
    if all(count is None for count in counts.values()):
        return []
    return [f"{cause} {count:.0f}" for cause, count in counts.items() if count] or ["none"]


def _score_texts(numbers: Mapping[str, float]) -> list[str]:
    begin, end = "evaluate/", "/score"
    scores = {k: v for k, v in numbers.items() if k.startswith(begin) and k.endswith(end)}
    return [f"{k[len(begin) : -len(end)]} {v:.4g}" for k, v in scores.items()]


def _trials(trials: Sequence[TrialStatus], most: int) -> RenderableType:
    """Returns a table of the runs that the job started, those in progress first."""
    states = [trial.state for trial in trials]
    counts = [f"{states.count(s)} {s}" for s in _STATE_STYLES if s in states]
    sets = list(dict.fromkeys(name for trial in trials for name in trial.scores))[:2]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    for name in ("run", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("done", "steps/s", "return", *sets):
        table.add_column(_line(name), justify="right", no_wrap=True)
    # The sort is stable: runs of one state stay sorted by name.
    for trial in sorted(trials, key=lambda t: _ORDER.get(t.state, 1))[:most]:
        table.add_row(*_row(trial, sets))
    more = [_line(f"... and {len(trials) - most} more", "dim")] if most < len(trials) else []
    return Group("", _line(f"runs   {'   '.join(counts)}"), table, *more)


def _row(trial: TrialStatus, sets: Sequence[str]) -> Iterator[Text]:
    yield _line(trial.name)
    yield _line(trial.state, _STATE_STYLES[trial.state])
    yield _line("" if trial.done is None else f"{math.floor(100 * trial.done)}%")
    figures = [(_rate(trial), ",.0f"), (_number(trial.values.get("episode/return")), ".4g")]
    for value, form in (*figures, *((trial.scores.get(name), ".3f") for name in sets)):
        yield _line("" if value is None else f"{value:{form}}")


def _warnings(warnings: Sequence[LogWarning]) -> RenderableType:
    if not warnings:
        return Group()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="yellow", no_wrap=True)
    table.add_column(style="yellow")
    for each in warnings:
        time = each.time[11:19] if len(each.time) > 19 else each.time
        text = _line(f"[{each.about}] {each.text}" if each.about else each.text)
        table.add_row(time, Text(text.plain, overflow="fold"))
    return Group("", "last warnings (UTC)", table)
