"""The report of a sweep."""

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from rollout.data.tables import concatenate, read_table
from rollout.data.tables import rows_of as rows_in
from rollout.evaluate.statistics import Intervals, wilson
from rollout.sweep.curves import curves, select
from rollout.sweep.decomposition import decompositions
from rollout.sweep.report import publish, subtitle, verdict, write_report
from rollout.sweep.report_tables import Figures
from tests.unit.sweep.sweep_tables import BASE, cross_played, lose, report_of, sweep_table

pytestmark = pytest.mark.heavy

ARMS = {
    **BASE,
    ("prefix", 16): {"train": 0.9, "test": 0.3},
    ("prefix", 64): {"train": 0.9, "test": 0.4},
    ("coat fixed", 16): {"train": 0.8, "test": 0.63},
}


def report(tmp_path, rows, **changes):
    write_report(tmp_path / "report.md", report_of(rows, **changes))
    return (tmp_path / "report.md").read_text()


def section(text, title):
    """The text below a heading, up to the next of its kind."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1].strip()


def rows_of(markdown):
    """The rows of the Markdown tables in a text, as dictionaries."""
    found, header = [], None
    for line in markdown.splitlines():
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = [cell.strip() for cell in line.strip("|").split("|")]
        elif not re.fullmatch(r"[|\-: ]+", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == len(header)
            found.append(dict(zip(header, cells, strict=True)))
    return found


def said(rows, **changes):
    return verdict(report_of(rows, **changes))


def test_the_verdict_comes_first_and_says_how_far_the_gap_shrinks(tmp_path):
    text = report(tmp_path, sweep_table(BASE))
    first = text.split("\n\n")[1]
    points = curves(sweep_table(BASE))
    assert first.startswith(
        "**The gap shrinks with N, and at the largest it cannot be told from zero:** "
        "between N = 16 and N = 1,024 the gap shrinks by 0.280 ["
    )
    assert "(95% interval, paired by training seed, 3 seeds)" in first
    assert "With N = 16 training states" in first
    for point in (points[0], points[-1]):
        assert point.gap.text(3) in first
        assert point.scores["test"].text(3) in first
    assert "0.270 [" in first
    assert "-0.010 [" in first


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ((0.1, 0.1), "**It is not shown that the gap shrinks:** between N = 16 and N = 64 the gap"),
        ((0.0, 0.3), "**The gap grows with N:** between N = 16 and N = 64 the gap grows by 0.3"),
        ((0.3, 0.2), "**The gap shrinks with N:**"),
        ((0.3, 0.1, 0.0), "**The gap shrinks with N, and at the largest"),
        ((0.1, 0.3, 0.1), "**It is not shown that the gap shrinks:**"),
        ((0.3,), "**No verdict:** there is one number of training states only. With N = 16"),
    ],
)
def test_other_verdicts(gaps, words):
    means = {("a", 16 * 4**i): {"train": 0.5 + g, "test": 0.5} for i, g in enumerate(gaps)}
    assert words in said(sweep_table(means, noise=0.02, spread=0.005))


def test_without_both_sides_there_is_no_verdict():
    assert "evaluated on training and on held-out" in said(
        sweep_table({("random", 16): {"test": 0.5}})
    )


def test_the_numbers_are_those_of_the_table(tmp_path):
    rows = sweep_table({key: {**value, "full": 0.5} for key, value in BASE.items()})
    shown = rows_of(section(report(tmp_path, rows), "Scores (sampled actions)"))
    assert [row["N"] for row in shown] == ["16", "64", "256", "1,024"]
    for row, point in zip(shown, curves(rows), strict=True):
        assert row["training states"] == point.scores["train"].text(3)
        assert row["held-out states"] == point.scores["test"].text(3)
        assert row["all states"] == point.scores["full"].text(3)
        assert row["gap"] == point.gap.text(3)
        means = [rows["score"][(rows["n"] == point.n) & (rows["set"] == s)].mean() for s in
                 ("train", "test")]  # fmt: skip
        assert float(row["gap"].split()[0]) == pytest.approx(means[0] - means[1], abs=6e-4)


def test_training_is_reported_beside_the_scores(tmp_path):
    rows = sweep_table(BASE)
    shown = rows_of(section(report(tmp_path, rows, episodes=300), "Scores (sampled actions)"))
    assert shown[0]["training set"] == "`random16dige` and 2 more"
    assert shown[0]["env steps"] == "500,000"
    assert shown[0]["episodes"] == "300"
    assert shown[0]["visits per state: least / median / most"] == "18 / 18.8 / 19"
    assert [row["never visited"] for row in shown] == ["0%", "0%", "0%", "71%"]


def test_n_above_the_number_of_episodes(tmp_path):
    title = "Numbers of states above the number of episodes"
    text = section(report(tmp_path, sweep_table(BASE), episodes=200), title)
    assert "about 200 training episodes, fewer than its states from N = 256 on" in text
    assert "with N = 1,024, 80.5% of the states are never visited. Such N differ in which" in text
    data = report_of(sweep_table(BASE), episodes=200)
    lists = [replace(run, states={**run.states, "subset": "lists"}) for run in data.runs]
    write_report(tmp_path / "report.md", replace(data, runs=lists))
    written = (tmp_path / "report.md").read_text()
    assert "never visited. Larger sets have other values" in section(written, title)
    assert "The training sets of random are not random samples" in section(written, "Caveats")
    text = section(report(tmp_path, sweep_table(BASE), episodes=1024), title)
    assert text == "- random: no run has more states than it plays episodes."


def test_sizes_that_share_their_runs_are_reported_once(tmp_path):
    rows = sweep_table({**BASE, ("random", 4096): BASE["random", 1024]})
    data = report_of(rows, episodes=300)
    write_report(tmp_path / "report.md", data)
    text = (tmp_path / "report.md").read_text()
    assert data.same_runs == {("random", 1024): 4096}
    for title in ("Scores (sampled actions)", "What the gap consists of"):
        *_, shared, last = rows_of(section(text, title))
        assert (shared["N"], shared["interval about"]) == ("1,024", "see N = 4,096")
        assert [*shared.values()].count("same runs") >= 3
        assert "same runs" not in last.values()
    assert "N = 4,096 (a run sees about 300 of them)" in verdict(data)
    assert [row["N"] for row in rows_of(section(text, "Success rates"))][-2:] == ["256", "4,096"]


def test_only_runs_that_never_used_up_their_states_are_the_same():
    data = report_of(sweep_table(BASE), episodes=200)
    assert data.same_runs == {("random", 256): 1024}
    other = [replace(r, training={**r.training, "episodes": 199}) for r in data.runs[-1:]]
    assert not replace(data, runs=[*data.runs[:-1], *other]).same_runs
    lists = [replace(run, states={**run.states, "subset": "lists"}) for run in data.runs]
    assert not replace(data, runs=lists).same_runs
    assert "**No verdict:** the runs of all N are the same" in said(sweep_table(BASE), episodes=9)


def test_one_seed_is_refused_an_interval_and_told_why(tmp_path):
    text = report(tmp_path, sweep_table(BASE, seeds=[0]))
    assert text.split("\n\n")[1].startswith("**No verdict:** the gap has no interval (one training")
    shown = rows_of(section(text, "Scores (sampled actions)"))
    assert shown[0]["gap"] == "0.270 †1"
    assert "†1: no interval: one training seed" in section(text, "Caveats")
    assert rows_of(section(text, "Success rates"))[0]["held-out states"] == "0.250 †1"


def test_seeds_are_counted_in_caveats(tmp_path):
    few = section(report(tmp_path, sweep_table(BASE)), "Caveats")
    assert "There are 3 training seeds" in few
    rows = sweep_table(BASE, seeds=range(5))
    enough = section(report(tmp_path, rows), "Caveats")
    assert "training seeds;" not in enough
    rest = select(rows, (rows["n"] != 64) | (rows["training_seed"] < 4))
    uneven = section(report(tmp_path, rest), "Caveats")
    assert "fewer seeds than 5 (random, N = 64: 4)" in uneven
    assert subtitle(report_of(rest)).startswith("4 to 5 training seeds, 24 held-out states")
    other = {("lists", n): means for (_, n), means in BASE.items()}
    arms = concatenate([rows, sweep_table(other, seeds=range(3))])
    assert subtitle(report_of(arms)).startswith("3 to 5 training seeds")


def test_lost_episodes_are_counted_and_listed(tmp_path):
    rows = sweep_table(BASE)
    rows["attempts"][3] = 2
    text = section(report(tmp_path, lose(rows, [0, 200])), "Lost episodes")
    total = len(rows["n"])
    assert text.startswith(f"2 of {total:,} evaluated episodes were lost for good")
    assert "1 more were lost and then played to their end" in text
    *bounds, first, second = rows_of(text)
    assert [row["N"] for row in bounds] == ["16", "64"]
    assert first["state"] == rows["state"][0]
    assert first["training seed"] == "0"
    assert first["set"] == "train"
    assert first["attempts"] == "4"
    assert second["n"] == str(rows["n"][200])


def test_many_lost_episodes_are_not_all_listed(tmp_path):
    text = section(report(tmp_path, lose(sweep_table(BASE), np.arange(70))), "Lost episodes")
    assert len([row for row in rows_of(text) if "attempts" in row]) == 50
    assert text.endswith("and 20 more, which `results.parquet` names")


def test_no_lost_episodes_are_reported_to_be_none(tmp_path):
    text = report(tmp_path, sweep_table(BASE))
    assert section(text, "Lost episodes").startswith("0 of ")
    assert "Lost episodes are left out" not in section(text, "Caveats")


def test_arms_are_reported_and_compared(tmp_path):
    about = {"prefix": "first values", "coat fixed": "red"}
    text = report(tmp_path, sweep_table(ARMS), arms=about)
    scores = section(text, "Scores (sampled actions)")
    assert re.findall(r"^### (.*)$", scores, re.MULTILINE) == [
        "random",
        "prefix",
        "Arms with one N",
    ]
    assert "### prefix\n\nfirst values\n\n|" in scores
    assert "- coat fixed: red" in scores
    shown = rows_of(section(text, "Which arms change the gap"))
    assert [(row["arm"], row["N"]) for row in shown] == [
        ("prefix", "16"), ("coat fixed", "16"), ("prefix", "64")
    ]  # fmt: skip
    assert float(shown[1]["difference of the gaps"].split()[0]) == pytest.approx(-0.1)
    assert shown[1]["gap of random"].startswith("0.270")
    assert shown[1]["difference of the adjusted gaps"] == "-"
    changed = section(
        report(tmp_path, sweep_table(ARMS), base_arm="prefix"), "Which arms change the gap"
    )
    assert "gap of prefix" in rows_of(changed)[0]


def test_other_states_are_named_as_such(tmp_path):
    other = sweep_table({("coat fixed", 16): {"train": 0.8, "test": 0.6}})
    other["state"] = np.char.add("7", other["state"])
    text = report(tmp_path, concatenate([sweep_table(BASE), other]))
    (row,) = rows_of(section(text, "Which arms change the gap"))
    assert row["held-out score minus that of random"].endswith("(other states)")


def test_both_ways_of_acting(tmp_path):
    rows = sweep_table(BASE, actions=("sampled", "deterministic"))
    text = report(tmp_path, rows)
    again = rows_of(section(text, "The same with deterministic actions"))
    points = curves(rows, actions="deterministic")
    assert [row["gap"] for row in again] == [point.gap.text(3) for point in points]
    only = report(tmp_path, sweep_table(BASE, actions=("deterministic",)))
    section(only, "Scores (deterministic actions)")
    assert "The same with" not in only


def test_an_unfinished_sweep_lists_what_is_missing(tmp_path):
    rows = sweep_table(BASE)
    planned = [("random", n, seed) for n in (16, 64, 256, 1024, 4096) for seed in range(3)]
    text = report(tmp_path, rows, planned=planned)
    assert "**Unfinished:** 3 of 15 runs are missing." in text.split("\n\n")[1]
    assert section(text, "Missing runs").splitlines() == [
        f"- random, N = 4,096, training seed {seed}" for seed in range(3)
    ]
    caveat = "figures of random, N = 4,096 will change with the missing runs"
    assert caveat in section(text, "Caveats")
    whole = report(tmp_path, rows, planned=planned[:12])
    assert "Missing runs" not in whole
    assert "Unfinished" not in whole


def test_a_run_without_results_is_missing():
    rows = sweep_table(BASE)
    data = report_of(rows, planned=[("random", 16, 0)])
    gone = (rows["n"] == 16) & (rows["training_seed"] == 0)
    later = report_of(select(rows, ~gone), runs=data.runs, planned=data.planned)
    assert (data.missing(), later.missing()) == ([], [("random", 16, 0)])


@pytest.mark.parametrize("rows", [select(sweep_table(BASE), np.array([], int)), {}])
def test_nothing_done_yet(tmp_path, rows):
    files = publish(tmp_path, report_of(rows, runs=[], planned=[("random", 16, 0)]))
    assert [path.name for path in files] == ["results.parquet", "report.md"]
    text = files[-1].read_text()
    assert "**No verdict:** there is no run yet" in text
    assert "1 of 1 runs are missing" in text
    assert ".png" not in text
    assert rows_in(read_table(files[0])) == 0


def test_protocol_sets_versions_videos_and_command_are_there(tmp_path):
    text = report(
        tmp_path,
        sweep_table(BASE),
        protocol={"factors": {"coat": 4, "biome": 8}, "seeds": [0, 1], "pipe": "a|b"},
        videos=[("the best", "videos/best.mp4")],
        intervals=Intervals(method="percentile", resamples=500),
    )
    protocol = {
        row["what"]: row["how"] for row in rows_of(section(text, "Protocol").replace("\\|", "/"))
    }
    assert protocol["factors"] == "coat 4, biome 8"
    assert protocol["seeds"] == "0, 1"
    assert protocol["pipe"] == "a/b"
    assert "500 resamples; 95% intervals" in protocol["statistics"]
    assert rows_of(section(text, "Sets of states"))[0]["digest"] == "`testdigest`"
    assert rows_of(section(text, "Machine of this report"))[1] == {"what": "cpus", "version": "2"}
    assert section(text, "Videos") == "- [the best](videos/best.mp4)"
    assert "gamut sweep --config" in section(text, "How to repeat it")
    runs = rows_of(section(text, "Training runs"))
    assert len(runs) == 12
    assert runs[1]["digest of the set"] == "`random16digest1`"
    assert runs[1]["checkpoint"] == "`runs/1`"


def test_cross_play_splits_the_gap_into_its_parts(tmp_path):
    rows = cross_played(sweep_table(BASE), ease=0.1)
    text = report(tmp_path, rows)
    shown = rows_of(section(text, "What the gap consists of"))
    parts = decompositions(rows)
    assert [row["N"] for row in shown] == ["16", "64", "256", "1,024"]
    for row, part in zip(shown, parts, strict=True):
        assert row["ease of the training states"] == part.ease.text(3)
        assert row["gain on own states"] == part.gain.text(3)
        assert row["adjusted gap"] == part.adjusted.text(3)
        assert row["interval about"] == "other runs on other states; 3 runs seen"
    assert shown[0]["loss on held-out states"] == parts[0].loss.text(3)
    assert shown[-1]["loss on held-out states"] == shown[-1]["change to the largest N"] == "-"
    first = text.split("\n\n")[1]
    assert "the gap, adjusted for the ease of the training states, shrinks by" in first
    assert f"ease of these states {parts[0].ease.text(3)}, a gain on its own states of" in first
    # Sets of other runs are no columns of their own.
    assert not any(
        "train/" in name for name in rows_of(section(text, "Scores (sampled actions)"))[0]
    )


def test_large_scores_have_fewer_digits(tmp_path):
    means = {("random", n): {"train": 250.0, "test": 210.0} for n in (16, 64)}
    assert re.search(r"is 40\.\d \[", report(tmp_path, sweep_table(means)))


def test_publish_writes_everything(tmp_path):
    rows = sweep_table(BASE)
    files = publish(tmp_path, report_of(rows))
    names = ["results.parquet", "generalization.png", "generalization.svg", "report.md"]
    assert [path.name for path in files] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert curves(read_table(files[0])) == curves(rows)
    about = json.loads(pq.read_schema(files[0]).metadata[b"gamut.table"])
    assert about["metric"] == "share of the sheep killed"
    assert "](generalization.png)](generalization.svg)" in files[-1].read_text()
    assert "3 training seeds, 24 held-out states, sampled actions" in files[2].read_text()


def test_the_same_sweep_gives_the_same_report(tmp_path):
    rows = sweep_table(ARMS)
    assert report(tmp_path, rows) == report(tmp_path, rows)


def test_cells():
    figures = Figures(2)
    assert figures(None) == "-"
    assert figures(wilson(1, 2)) == wilson(1, 2).text(2)
    assert figures(wilson(0, 0)) == "- †1"
    assert figures(wilson(0, 0)) == "- †1"
    assert figures.reasons == ["no episode has a result"]
