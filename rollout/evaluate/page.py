"""The page of an evaluation: its report, the table of its episodes, and their steps and videos.

It is made from the files of the run alone, so that ``gamut view`` shows any evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from rollout.data import Dataset, EpisodeRef
from rollout.data.tables import Table, read_table
from rollout.data.view import Listing, Video, Written, write_listing
from rollout.data.view.listing import finite, judged_columns, key_of
from rollout.data.view.steps import Data
from rollout.errors import RunDirectoryError
from rollout.evaluate.findings import actions_told, calls_row, cell_text
from rollout.evaluate.journal import EPISODES, LOSSES
from rollout.evaluate.pairs import main_rows, p_text, verdict
from rollout.evaluate.published import groups_section, published_section
from rollout.evaluate.recording import FOLDER, recorded_episodes
from rollout.files import read_lines
from rollout.observe.run_files import SUMMARY, parse, read_about, read_json
from rollout.reports import html_table, marked, render_page

TABLE, PAGE = "episodes.parquet", "report.html"
_KEY = ("player", "set", "actions", "position", "repeat")
_COUNTS = ("calls", "unusable", "input_tokens", "output_tokens")


@dataclass(frozen=True)
class EvaluationPages:
    """An evaluation that was read from its run directory; a context manager.

    Attributes:
        folder: the run directory.
        listing: what a page lists.
        dataset: the recorded steps; None if there are none.
        refs: the episodes with steps: of each leg the first, then of each the second, and so on.
        judges: runs of ``gamut judge``.
    """

    folder: Path
    listing: Listing
    dataset: Dataset | None
    refs: Sequence[EpisodeRef]
    judges: Sequence[str] = ()

    @classmethod
    def read(cls, folder: Path, judges: Sequence[str] = ()) -> EvaluationPages:
        """Returns an evaluation.

        Args:
            folder: its run directory.
            judges: runs of ``gamut judge`` over its dataset, each a column of mean scores.

        Raises:
            RunDirectoryError: the folder contains no run, or one that has no results yet.
            DatasetError: results are damaged.
        """
        about, summary = read_about(folder), read_json(folder / SUMMARY)
        if not (isinstance(summary.get("findings"), Mapping) and (folder / TABLE).exists()):
            raise RunDirectoryError(
                f"{folder} has no results yet; wait for it, or continue it with --resume. "
                f"gamut watch {folder} shows how far it is"
            )
        with ExitStack() as opened:
            dataset = None
            if (folder / FOLDER / "dataset.json").is_file():
                dataset = opened.enter_context(Dataset(folder / FOLDER))
            rows = read_table(folder / TABLE)
            numbers = _numbers(rows, summary["findings"]["legs"])
            known = {} if dataset is None else recorded_episodes(dataset)
            found = [known.get(number) for number in numbers]
            keys = [
                str(number) if ref is None else key_of(ref)
                for number, ref in zip(numbers, found, strict=True)
            ]
            told = _about(folder, about, summary, dataset)
            places = _places(rows)
            by_place = dict(zip(places, keys, strict=True))
            table = list(_columns(folder, rows, numbers, found, judges))
            videos = list(_videos(folder, summary, by_place))
            listing = Listing(told, keys, table, report_html(summary), videos)
            order = sorted(
                (n for n, ref in enumerate(found) if ref is not None), key=lambda n: places[n][3:]
            )
            refs = [ref for n in order if (ref := found[n]) is not None]
            opened.pop_all()
            return cls(folder, listing, dataset, refs, judges)

    def write(self, out: Path) -> Written:
        """Writes the page as a file; see ``rollout.data.view.write_listing``."""
        return write_listing(self.listing, out, self.dataset, self.refs, judges=self.judges)

    def close(self) -> None:
        """Closes the dataset."""
        if self.dataset is not None:
            self.dataset.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _numbers(rows: Table, legs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the number of each episode, as ``Legs`` numbers them."""
    sizes = [int(leg["states"]) * int(leg["repeats"]) for leg in legs]
    names = [(leg["player"], leg["set"], leg["actions"]) for leg in legs]
    begins = dict(zip(names, accumulate(sizes, initial=0), strict=False))
    repeats = {name: int(leg["repeats"]) for name, leg in zip(names, legs, strict=True)}
    return [
        begins[p, s, a] + position * repeats[p, s, a] + repeat
        for p, s, a, position, repeat in _places(rows)
    ]


def _places(rows: Table) -> list[tuple[str, str, str, int, int]]:
    return list(zip(*(rows[name].tolist() for name in _KEY), strict=True))


def _about(
    folder: Path, about: Mapping[str, Any], summary: Mapping[str, Any], dataset: Dataset | None
) -> Data:
    protocol, root = summary["protocol"], folder.resolve()
    absent = (
        "The steps of this episode were not recorded; gamut evaluate records them with record=true."
    )
    return {
        "name": f"{root.parent.name}/{root.name}",
        "bridge": protocol["bridge"],
        "task": protocol["task"],
        "goal": "" if dataset is None else str(dataset.manifest.task.get("goal") or ""),
        "created": about["sessions"][0]["started"],
        "run": about["run_id"],
        "steps": summary["results"]["env_steps"],
        "absent": absent,
        "more": "This file has no room for the steps of this episode; gamut view shows all.",
    }


def _columns(
    folder: Path,
    rows: Table,
    numbers: Sequence[int],
    refs: Sequence[EpisodeRef | None],
    judges: Sequence[str],
) -> Iterator[Data]:
    """Yields the columns of the table; what says nothing here is left out."""
    places = _places(rows)
    lost, told = _by_place(folder / LOSSES), _by_place(folder / EPISODES)
    notes = [told.get(place, {}).get("notes") or {} for place in places]
    losses = [lost.get(place, {}) for place in places]
    texts: Mapping[str, Sequence[str]] = {
        "failure": [str(each.get("class") or "") for each in notes],
        "did not hold": ["; ".join(map(str, each.get("why", ()))) for each in notes],
        "last loss": [": ".join(filter(None, (x.get("phase"), x.get("reason")))) for x in losses],
    }
    columns: list[tuple[str, str, list[Any]]] = [
        ("episode", "number", list(numbers)),
        *((name, "text", rows[name].tolist()) for name in ("player", "set", "actions")),
        ("state", "digits", rows["state"].tolist()),
        ("repeat", "number", rows["repeat"].tolist()),
        ("score", "number", [finite(each) for each in rows["score"].tolist()]),
        ("return", "number", [finite(each) for each in rows["total_reward"].tolist()]),
        ("progress", "number", [finite(each) for each in rows["progress"].tolist()]),
        ("length", "number", rows["length"].tolist()),
        ("outcome", "text", list(map(_outcome, rows["success"].tolist(), _invalid(rows)))),
        ("end", "text", rows["end"].tolist()),
        *((name, "number", values) for name, values in judged_columns(refs, judges)),
        ("attempts", "number", rows["attempts"].tolist()),
        *((n.replace("_", " "), "number", rows[n].tolist()) for n in _COUNTS if n in rows),
        ("USD", "number", [finite(each) for each in rows["usd"].tolist()] if "usd" in rows else []),
        *((name, "text", list(values)) for name, values in texts.items()),
        ("seed", "digits", [str(seed) for seed in rows["episode_seed"].tolist()]),
    ]
    idle: Mapping[str, set[Any]] = {"repeat": {0}, "attempts": {1}, "USD": {0.0, None}}
    kept = ("episode", "state", "score", "return", "length", "end", "seed", "player", "set")
    for name, kind, values in columns:
        if name in kept or not {*values} <= idle.get(name, {0, None, ""}):
            yield {"name": name, "kind": kind, "values": values}


def _outcome(success: float, invalid: int) -> str:
    if invalid or math.isnan(success):
        return "invalid" if invalid else ""
    return "success" if success else "failure"


def _invalid(rows: Table) -> list[int]:
    return rows["invalid"].tolist() if "invalid" in rows else [0] * len(rows["end"])


def _by_place(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Returns the last line of each episode in a file of the journal, by its place."""
    try:
        lines = [parse(line) for line in read_lines(path)]
    except FileNotFoundError:
        return {}
    return {tuple(line.get(name) for name in _KEY): line for line in lines if line is not None}


def _videos(
    folder: Path, summary: Mapping[str, Any], keys: Mapping[tuple[str, str, str, int, int], str]
) -> Iterator[Video]:
    by_name = {("/".join(key[:3]), *key[3:]): value for key, value in keys.items()}
    for film in summary.get("films") or ():
        file = folder / "videos" / Path(film["file"]).name  # a run of others may name any place
        key = by_name.get((film["leg"], film["position"], film["repeat"]))
        if key is None or not file.is_file():
            continue
        said = "" if film["same"] else f"; another run of it, which scored {film['replayed']:.4g}"
        yield Video(key, file, f"{film['rank']} of {film['leg']}: {film['score']:.4g}{said}")


def report_html(summary: Mapping[str, Any]) -> str:
    """Returns the tables of an evaluation above its episodes, as HTML.

    Args:
        summary: the contents of ``summary.json``.
    """
    found, protocol, results = summary["findings"], summary["protocol"], summary["results"]
    metric = protocol["metric"]
    pairs = found["differences"]
    texts = {f"Notes of {leg}": text for leg, text in (summary.get("notes") or {}).items() if text}
    if found.get("grouped"):
        texts["Success by groups"] = groups_section(found["grouped"])
    if found.get("published"):
        texts["Published results"] = published_section(found["published"])
    parts = render_page(
        "evaluation",
        protocol=protocol,
        results=results,
        metric=metric,
        actions=actions_told(found["legs"]),
        legs=_legs_table(found["legs"]),
        groups=_estimates(("group", "set", "actions"), "score", found["groups"]),
        gaps=_estimates(("model", "actions"), "gap", found["gaps"], zero=True),
        verdicts=[verdict(row, metric) for row in main_rows(pairs)],
        pairs=pairs_table(pairs),
        losses=_losses_table(results),
        texts=texts,
    )
    return "".join(parts)


def _legs_table(legs: Sequence[Mapping[str, Any]]) -> Data:
    names = ["player", "set", "actions", "states", "score", "success", "return", "length"]
    names += ["lost", "retries"]
    calls = ("calls", "unusable", "tokens/episode", "USD", "USD/episode")
    any_calls = any(leg["usage"] for leg in legs)
    rows = []
    for leg, score in zip(legs, marked([leg["score"] for leg in legs]), strict=True):
        cells = {
            **leg,
            "states": f"{leg['states']} x {leg['repeats']}",
            "score": score,
            "lost": leg["given_up"],
            "retries": leg["attempts_lost"] - leg["given_up"],
            **(calls_row(leg) if leg["usage"] else dict.fromkeys(calls)),
        }
        rows.append([_cell(cells[name]) for name in (*names, *(calls if any_calls else ()))])
    return html_table([*names, *(calls if any_calls else ())], rows)


def _cell(value: Any) -> Any:
    return value if isinstance(value, Mapping) and "mark" in value else cell_text(value)


def _estimates(
    names: Sequence[str], key: str, found: Sequence[Mapping[str, Any]], *, zero: bool = False
) -> Data | None:
    if not found:
        return None
    cells = marked([each[key] for each in found], zero=zero)
    rows = [[*(row[name] for name in names), cell] for row, cell in zip(found, cells, strict=True)]
    return html_table([*names, key], rows)


def pairs_table(rows: Sequence[Mapping[str, Any]]) -> Data | None:
    """Returns the comparisons as a table of a page; None without any.

    Args:
        rows: of ``rollout.evaluate.pairs.compare_all``, as JSON-able data.
    """
    columns = ("model", "minus", "set", "actions", "difference", "p", "d", "ahead", "better")
    cells = [
        [
            *(row[name] for name in columns[:4]),
            difference,
            p_text(row["p_corrected"]).removeprefix("= "),
            "-" if row["effect"] is None else f"{row['effect']:.2f}",
            "-" if row["ahead"] is None else f"{row['ahead']:.0%}",
            row["better"] or "-",
        ]
        for row, difference in zip(
            rows, marked([row["difference"] for row in rows], zero=True), strict=True
        )
    ]
    return html_table(columns, cells) if cells else None


def _losses_table(results: Mapping[str, Any]) -> Data | None:
    columns = ("player", "set", "actions", "state", "phase", "steps", "reason")
    rows = [[loss[name] for name in columns] for loss in results["lost"]]
    return html_table(columns, rows) if rows else None
