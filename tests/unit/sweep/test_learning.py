"""Learning curves: what is read from metrics, where curves end, and what gamut plot writes."""

import json

import numpy as np
import pytest
from PIL import Image

from rollout.commands.plot import main
from rollout.errors import ConfigError
from rollout.sweep.learning import curves_of, labels_of, named_runs, series_of, times_to


def write(folder, lines, *, kind="TrainConfig"):
    """Writes a run with lines of (seconds, steps, values)."""
    folder.mkdir(parents=True)
    about = {"run_id": "r", "kind": kind, "sessions": [{"started": "2026-11-28T12:00:00+00:00"}]}
    (folder / "run.json").write_text(json.dumps(about))
    rows = [
        {"resume_count": 0, "wall_s": seconds, "env_steps": steps, **values}
        for seconds, steps, values in lines
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def returns(values, *, every=10, slow=1):
    return [
        (slow * (i + 1), every * (i + 1), {"episode/return": value})
        for i, value in enumerate(values)
    ]


def of_seeds(folder, *seeds, **options):
    """A training with the returns of each seed."""
    write(folder, [])
    for number, values in enumerate(seeds):
        write(folder / "runs" / f"seed-{number}", returns(values, **options))
    return folder


def test_each_figure_has_its_lines_with_steps_and_working_time(tmp_path):
    lines = [
        (5, 10, {"episode/return": 1.0}),
        (8, 20, {"episode/return": 2.0, "episode/success": None}),
        (11, 30, {"episode/return": 3.0, "validation/score": 9.0}),
        (12, 30, {"other": 1.0}),
    ]
    found = series_of(write(tmp_path / "run", lines))
    assert found["return"].seconds.tolist() == [5, 8, 11]
    assert found["return"].steps.tolist() == [10, 20, 30]
    assert found["return"].values.tolist() == [1, 2, 3]
    assert found["validation"].values.tolist() == [9]
    assert "success" not in found


def test_a_curve_is_the_interquartile_mean_and_ends_with_the_shortest_seed(tmp_path):
    folder = of_seeds(tmp_path / "run", [0, 2, 4], [2, 4, 6, 8], [4, 6, 8])
    [curve] = curves_of(named_runs([folder]))
    assert curve.x.tolist() == [10, 20, 30]
    assert curve.iqm == pytest.approx([2, 4, 6])
    assert (curve.low < curve.iqm).all()
    assert (curve.high > curve.iqm).all()
    assert curve.planned == 3


def test_seeds_at_other_steps_are_interpolated(tmp_path):
    write(tmp_path / "run", [])
    write(tmp_path / "run/runs/seed-0", returns([0, 10], every=10))
    write(tmp_path / "run/runs/seed-1", returns([0, 20], every=15))
    [curve] = curves_of(named_runs([tmp_path / "run"]))
    assert curve.x.tolist() == [15, 20]
    assert curve.iqm == pytest.approx([(5 + 0) / 2, (10 + 20 / 3) / 2])


def test_by_seconds_the_slower_run_is_slower(tmp_path):
    of_seeds(tmp_path / "a", [0, 5, 9])
    of_seeds(tmp_path / "b", [0, 5, 9], slow=10)
    runs = named_runs([tmp_path / "a", tmp_path / "b"])
    a, b = curves_of(runs, by="seconds")
    assert (a.x[-1], b.x[-1]) == (3, 30)
    assert [t["median"] for t in times_to([a, b], 5)] == [2, 20]


def test_one_seed_has_no_band_and_one_that_waits_is_not_counted(tmp_path):
    folder = of_seeds(tmp_path / "run", [1, 2], [])
    [curve] = curves_of(named_runs([folder]))
    assert curve.low is None
    assert curve.high is None
    assert (curve.drawn, curve.planned) == (1, 2)


def test_a_seed_that_ends_before_another_begins_still_counts_for_the_time_to_a_score(tmp_path):
    write(tmp_path / "run", [])
    write(tmp_path / "run/runs/seed-0", returns([1, 9]))
    write(tmp_path / "run/runs/seed-1", returns([1, 9], every=100))
    curves = curves_of(named_runs([tmp_path / "run"]))
    assert (curves[0].drawn, curves[0].x.tolist()) == (1, [100, 200])
    assert times_to(curves, 9)[0]["seeds"] == {"seed-0": 20, "seed-1": 200}


def test_long_curves_have_as_many_points_as_a_picture_shows(tmp_path):
    folder = of_seeds(tmp_path / "run", range(3000), range(3000))
    [curve] = curves_of(named_runs([folder]))
    assert len(curve.x) == 400
    assert (curve.x[0], curve.x[-1]) == (10, 30000)


def test_the_time_to_a_score_counts_seeds_that_never_reach_it(tmp_path):
    folder = of_seeds(tmp_path / "run", [0, 9], [9, 9], [0, 0])
    curves = curves_of(named_runs([folder]))
    [found] = times_to(curves, 9)
    assert found["seeds"] == {"seed-0": 20, "seed-1": 10, "seed-2": None}
    assert (found["reached"], found["median"]) == (2, 20)
    assert times_to(curves, 10)[0]["median"] is None


def test_seeds_are_in_the_order_of_their_numbers(tmp_path):
    folder = of_seeds(tmp_path / "run", *([[1, 2]] * 12))
    [run] = named_runs([folder])
    assert list(run.seeds) == [f"seed-{i}" for i in range(12)]


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["x/run"], ["run"]),
        (["x/a", "x/b"], ["a", "b"]),
        (["x/a/evaluation", "x/b/evaluation"], ["a", "b"]),
        (["x/a/evaluation", "y/a/evaluation"], ["x", "y"]),
        (["x/a", "x/a/b"], ["a", "a/b"]),
        (["x/ppo/1", "x/appo/2", "x/ppo/2"], ["ppo/1", "appo/2", "ppo/2"]),
    ],
)
def test_labels_have_what_the_paths_do_not_share(tmp_path, paths, labels):
    assert labels_of([tmp_path / path for path in paths]) == labels


def test_what_cannot_be_drawn_is_named(tmp_path, capsys):
    write(tmp_path / "sweep", [], kind="SweepConfig")
    write(tmp_path / "sweep/runs/a-n4-s0", returns([1]))
    write(tmp_path / "new", [])
    write(tmp_path / "run", returns([1, 2]))
    for folders, said in (
        (["sweep"], "sweep has runs with different settings; name those to draw, e.g. "),
        (["new"], "new has no learning curve: none of episode/return"),
        (["none"], "there is no folder"),
        (["run", "run"], "is given twice"),
    ):
        assert main([str(tmp_path / folder) for folder in folders]) == 2
        assert said in capsys.readouterr().err


def test_gamut_plot_writes_pictures_and_numbers(tmp_path, capsys):
    of_seeds(tmp_path / "ppo", [0, 4, 8], [1, 5, 9])
    write(tmp_path / "one", returns([0, 1, 2]))
    assert main([str(tmp_path / "ppo"), str(tmp_path / "one"), "--score", "4"]) == 0
    said = capsys.readouterr().out
    assert "ppo: return 8.5 [8, 9] after 30 steps, 2 of 2 seeds" in said
    assert "one: one training seed, so its curve has no band" in said
    assert "ppo: return 4 reached by 2 of 2 seeds, median 20 steps" in said
    assert "one: return 4 reached by 0 of 1 seeds, not by half of them" in said
    stem = tmp_path / "ppo" / "curves_one"
    with Image.open(stem.with_suffix(".png")) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 10
    drawn = stem.with_suffix(".svg").read_text()
    for text in ("ppo (2 seeds)", "one (1 seed)", "steps of single slots", "score 4"):
        assert text in drawn
    numbers = json.loads(stem.with_suffix(".json").read_text())
    assert numbers["by"] == "steps"
    assert numbers["curves"][0]["steps"] == [10, 20, 30]
    assert numbers["curves"][1]["low"] is None
    assert len(numbers["time_to_score"]) == 2


def test_the_same_run_is_drawn_as_the_same_bytes(tmp_path):
    folder = of_seeds(tmp_path / "run", [0, 4, 8], [1, 5, 9])
    for name in ("a", "b"):
        assert main([str(folder), "--output", str(tmp_path / name)]) == 0
    for suffix in (".png", ".svg"):
        a, b = ((tmp_path / name).with_suffix(suffix).read_bytes() for name in ("a", "b"))
        assert a == b


def test_one_run_alone_says_that_it_has_no_band(tmp_path, capsys):
    folder = write(tmp_path / "run", returns(np.arange(5).tolist()))
    assert main([str(folder), "--by", "seconds", "--output", str(tmp_path / "x" / "me.png")]) == 0
    assert "no band" in capsys.readouterr().out
    assert "one training seed each: no intervals" in (tmp_path / "x" / "me.svg").read_text()


def test_damaged_metrics_are_named(tmp_path, capsys):
    folder = write(tmp_path / "run", returns([1]))
    (folder / "metrics.jsonl").write_text("{\n{}\n")
    assert main([str(folder)]) == 2
    assert "metrics.jsonl:1" in capsys.readouterr().err


def test_a_score_that_is_no_number_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--score", "high"])
    assert "expected a number, got 'high'" in capsys.readouterr().err


def test_a_folder_given_twice_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match="given twice"):
        labels_of([tmp_path / "a", tmp_path / "b" / ".." / "a"])


def test_runs_of_different_games_are_drawn_and_said_to_be_so(tmp_path, capsys):
    for name, task in (("a", "cartpole"), ("b", "crafter"), ("c", "cartpole")):
        write(tmp_path / name, returns([0, 1, 2]))
        config = {"bridge": {"name": "gymnasium", "id": "X-v0"}, "task": task}
        (tmp_path / name / "config.yaml").write_text(json.dumps(config))
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    assert "different games" not in capsys.readouterr().out
    assert main([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    said = capsys.readouterr().out
    assert "a plays cartpole of gymnasium X-v0, b plays crafter of gymnasium X-v0" in said
