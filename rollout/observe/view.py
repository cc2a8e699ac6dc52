"""A look at a job as one screen of text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from rollout.observe.hosts import CAUSES
from rollout.observe.look import Look, Trial, Warned, duration
from rollout.observe.metrics import Scalar

Paint: TypeAlias = Callable[[str, str], str]
"""Gives a text the look of a name in ``STYLES``."""

STYLES: Mapping[str, str] = {
    "good": "\x1b[32m",
    "bad": "\x1b[31m",
    "busy": "\x1b[36m",
    "doubtful": "\x1b[33m",
    "faint": "\x1b[2m",
    "strong": "\x1b[1m",
}
CLEAR = "\x1b[H\x1b[2J"
"""Empties a terminal and goes to its first line."""

_END = "\x1b[0m"
_STATE_STYLES = {
    "running": "busy",
    "evaluating": "busy",
    "done": "good",
    "ended early": "good",
    "silent": "doubtful",
    "interrupted": "doubtful",
    "gone": "bad",
    "ended short": "bad",
}
_WIDE = 60  # columns from which on there is room for the id of the run
_LABEL = 12  # width of the column of names
_BAR = 30
_WARNINGS = 5
_INDENT = 11  # of the second row of a warning: as wide as its time
_WARNINGS_BESIDE_TRIALS = 2
_TRIAL_NAME = 24
_GAP = "   "
_MOST_ROWS = 3  # of one kind of figures
_LOSSES = {
    "policy": "train/policy_loss",
    "value": "train/value_loss",
    "entropy": "train/entropy",
    "kl": "train/approx_kl",
    "explained var": "train/explained_variance",
}


def render(look: Look, *, width: int = 80, height: int | None = 24, color: bool = False) -> str:
    """Returns a job as text, each of its lines at most ``width`` wide.

    Args:
        look: the job.
        width: columns, at least 30.
        height: most lines; None for as many as there are.
        color: whether to use colours, as ANSI escape sequences.
    """
    paint: Paint = _paint if color else lambda text, _: text
    above = [*_head(look, width, paint), *_figures(look, width)]
    most = _WARNINGS_BESIDE_TRIALS if look.trials else _WARNINGS
    free = None if height is None or look.trials else height - len(above) - 2
    below = _warned(look, width, most, free, paint)
    room = None if height is None else max(3, height - len(above) - len(below))
    rows = [*above, *_table(look, width, room, paint), *below]
    return "\n".join(rows if height is None else rows[:height])


def _paint(text: str, style: str) -> str:
    return f"{STYLES[style]}{text}{_END}"


def _fit(text: str, width: int) -> str:
    """One line of at most so many columns; what would move the cursor is shown by its number."""
    plain = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return plain if len(plain) <= width else f"{plain[: width - 1]}…"


def _rows(label: str, parts: list[str], width: int) -> list[str]:
    """Figures under one label, in as many rows as they need; the last one is cut if it must be."""
    rows: list[list[str]] = [[]]
    for part in parts:
        full = _LABEL + sum(len(p) + len(_GAP) for p in rows[-1]) + len(part) > width
        if full and rows[-1] and len(rows) < _MOST_ROWS:
            rows.append([])
        rows[-1].append(part)
    labels = [label] + [""] * (len(rows) - 1)
    pairs = zip(labels, rows, strict=True)
    return [_fit(f"{name:<{_LABEL}}{_GAP.join(row)}", width) for name, row in pairs]


def _head(look: Look, width: int, paint: Paint) -> Iterator[str]:
    run = _fit(look.run_id, 24) if width >= _WIDE else ""
    name = _fit(f"{look.path.name}  {look.kind}", width - len(run) - len(look.state) - 4)
    free = " " * (width - len(name) - len(look.state) - 2 - len(run)) if run else ""
    state = paint(look.state, _STATE_STYLES[look.state])
    yield f"{paint(name, 'strong')}  {state}{free}{paint(run, 'faint')}"
    yield paint(_fit(str(look.path), width), "faint")
    yield _fit(_explain(look), width)
    share = 0.0 if look.done is None else look.done
    bar = "#" * round(_BAR * share)
    known = "  ?%" if look.done is None else f"{100 * math.floor(1000 * share) / 1000:5.1f}%"
    left = f"  left {look.left}" if look.left else ""
    word = "up" if look.state in ("running", "silent") else "took"
    times = f"  session {look.session + 1}, {word} {duration(look.up_s)}"
    yield _fit(f"[{bar:.<{_BAR}}] {known}{left}{times}", width)


def _explain(look: Look) -> str:
    ago = f"last heard of {duration(look.silent_s)} ago"
    if look.state == "gone":
        return f"{ago}: process {look.process} is gone; go on with --resume"
    if look.state == "silent":
        return f"{ago}, which is long: process {look.process} hangs, or is gone"
    if look.ended:
        return f"ended {duration(look.silent_s)} ago"
    return f"process {look.process}, {ago}"


def _figures(look: Look, width: int) -> Iterator[str]:
    numbers = _numbers(look)
    for label, parts in (
        ("steps", _steps(look, numbers)),
        ("episodes", _episodes(numbers)),
        ("return", _of(numbers, _RETURNS)),
        ("updates", _of(numbers, _UPDATES)),
        ("losses", _of(numbers, {k: (v, ".3g") for k, v in _LOSSES.items()})),
        ("games", _games(numbers)),
        ("restarts", _restarts(numbers)),
        ("checkpoint", _checkpoint(look)),
        ("score", _scores(numbers)),
    ):
        if parts:
            yield from _rows(label, parts, width)


_RETURNS = {
    "": ("episode/return", ".4g"),
    "length": ("episode/length", ".1f"),
    "success": ("episode/success", ".3f"),
    "progress": ("episode/progress", ".3f"),
}
_UPDATES = {
    "": ("train/update", ",.0f"),
    "staleness": ("train/staleness", ".0f"),
    "dropped": ("train/dropped_steps", ",.0f"),
    "sample s": ("seconds/sample", ".3g"),
    "learn s": ("seconds/update", ".3g"),
}


def _numbers(look: Look) -> dict[str, float]:
    found = {name: _number(value) for name, value in look.values.items()}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Scalar) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of(numbers: Mapping[str, float], names: Mapping[str, tuple[str, str]]) -> list[str]:
    """Those of some figures that there are, each after its label."""
    found = [(label, numbers.get(name), form) for label, (name, form) in names.items()]
    return [f"{label} {v:{form}}".strip() for label, v, form in found if v is not None]


def _steps(look: Look, numbers: Mapping[str, float]) -> list[str]:
    if look.trials:  # its own lines are about single runs
        steps = [v for t in look.trials if (v := _number(t.values.get("env_steps"))) is not None]
        rates = [v for t in look.trials if (v := _rate(t)) is not None]
        return [f"{sum(steps):,.0f}", *([f"now {sum(rates):,.0f}/s"] if rates else [])]
    parts = _of(numbers, {"": ("env_steps", ",.0f"), "now": ("rate/steps_per_s", ",.0f")})
    if len(parts) > 1:
        parts[-1] += "/s"
    if look.steps_per_s is not None:
        parts.append(f"mean {look.steps_per_s:,.0f}/s")
    return parts


def _rate(trial: Trial) -> float | None:
    """Steps per second of a run, if it runs."""
    return _number(trial.values.get("rate/steps_per_s")) if trial.state == "running" else None


def _episodes(numbers: Mapping[str, float]) -> list[str]:
    parts = _of(numbers, {"": ("episodes", ",.0f"), "lost": ("lost", ",.0f")})
    phases = [f"{n:.0f} in {k[5:]}" for k, n in numbers.items() if k.startswith("lost/") and n]
    if phases:
        parts[-1] += f" ({', '.join(phases)})"
    return parts


def _games(numbers: Mapping[str, float]) -> list[str]:
    ready, instances = numbers.get("games/ready"), numbers.get("games/instances")
    if ready is None or instances is None:
        return []
    names = {
        "waiting": ("queue/waiting", ".0f"),
        "in flight": ("queue/in_flight", ".0f"),
        "inference": ("queue/inference", ".0f"),
        "memory MB": ("games/memory_mb", ",.0f"),
    }
    return [f"{ready * instances:.0f} of {instances:.0f} up", *_of(numbers, names)]


def _restarts(numbers: Mapping[str, float]) -> list[str]:
    counts = {cause: numbers.get(f"restarts/{cause}") for cause in CAUSES}
    if all(count is None for count in counts.values()):
        return []
    return [f"{cause} {count:.0f}" for cause, count in counts.items() if count] or ["none"]


def _checkpoint(look: Look) -> list[str]:
    if look.checkpoint is None:
        return []
    name, age = look.checkpoint
    return [f"{name}, {duration(age)} old"]


def _scores(numbers: Mapping[str, float]) -> list[str]:
    begin, end = "evaluate/", "/score"
    scores = {k: v for k, v in numbers.items() if k.startswith(begin) and k.endswith(end)}
    return [f"{k[len(begin) : -len(end)]} {v:.4g}" for k, v in scores.items()]


def _table(look: Look, width: int, room: int | None, paint: Paint) -> list[str]:
    """The runs that the job has started, those under way first."""
    if not look.trials:
        return []
    states = [trial.state for trial in look.trials]
    counts = [f"{states.count(s)} {s}" for s in _STATE_STYLES if s in states]
    sets = list(dict.fromkeys(name for trial in look.trials for name in trial.scores))[:2]
    head = f"{'run':<{_TRIAL_NAME}} {'state':<11} {'done':>5} {'steps/s':>8} {'return':>8}"
    rows = ["", *_rows("runs", counts, width), paint(_fit(_more(head, sets), width), "faint")]
    # The sort keeps the order of the names among those of one kind.
    trials = sorted(look.trials, key=lambda t: _ORDER.get(t.state, 1))
    shown = trials if room is None else trials[: max(0, room - len(rows) - 1)]
    rows += [_fit(_trial(trial, sets), width) for trial in shown]
    if len(shown) < len(trials):
        rows.append(paint(f"... and {len(trials) - len(shown)} more", "faint"))
    return rows


_ORDER = {"running": 0, "evaluating": 0, "done": 2, "ended early": 2}


def _more(head: str, sets: list[str]) -> str:
    return head + "".join(f" {name[:8]:>8}" for name in sets)


def _trial(trial: Trial, sets: list[str]) -> str:
    total = _number(trial.values.get("episode/return"))
    done = "" if trial.done is None else f"{math.floor(100 * trial.done)}%"
    row = (
        f"{_fit(trial.name, _TRIAL_NAME):<{_TRIAL_NAME}} {trial.state:<11} {done:>5} "
        f"{_cell(_rate(trial), ',.0f')} {_cell(total, '.4g')}"
    )
    return row + "".join(f" {_cell(trial.scores.get(name), '.3f')}" for name in sets)


def _cell(value: float | None, form: str) -> str:
    return " " * 8 if value is None else f"{value:>8{form}}"


def _warned(look: Look, width: int, most: int, free: int | None, paint: Paint) -> list[str]:
    """The newest warnings: each in two rows at most, in one where there are few rows."""
    if not look.warnings:
        return []
    shown = look.warnings[-most:]
    high = 2 if free is None or free >= 2 * len(shown) else 1
    if look.trials:
        high = 1
    rows = [paint(row, "doubtful") for each in shown for row in _warning(each, width, high)]
    return ["", "last warnings (UTC)", *rows]


def _warning(warned: Warned, width: int, high: int) -> list[str]:
    about = f"[{warned.about}] " if warned.about else ""
    text = f"  {_clock(warned.time)} {about}{warned.text}"
    if high == 1 or len(text) <= width:
        return [_fit(text, width)]
    space = text.rfind(" ", width * 2 // 3, width + 1)  # one word longer than a third is cut
    end = width if space < 0 else space
    return [_fit(text[:end], width), _fit(f"{' ' * _INDENT}{text[end:].lstrip()}", width)]


def _clock(time: str) -> str:
    return time[11:19] if len(time) > 19 else time
