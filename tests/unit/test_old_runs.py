"""``gamut clean --older`` removes old runs, and nothing else."""

import io
import json
import os
import time

import pytest

from rollout.commands import clean, old_runs
from rollout.files import locked
from rollout.run_directory import LOCK, cached_output

DAY = 86400.0


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GAMUT_RUNS_DIR", str(tmp_path / "runs"))


def make_run(folder, days, *, status="done", kilobytes=4):
    (folder / "dataset").mkdir(parents=True)
    session = {"started": "2026-01-01T00:00:00+00:00", "pid": 1, "host": "h"}
    about = {"run_id": "x", "kind": "CollectConfig", "sessions": [session]}
    (folder / "run.json").write_text(json.dumps(about))
    (folder / LOCK).touch()
    (folder / "dataset" / "big").write_bytes(bytes(kilobytes << 10))
    if status:
        (folder / "summary.json").write_text(json.dumps({"status": status}))
    set_age(folder, days)
    return folder


def set_age(folder, days):
    when = time.time() - days * DAY
    for path in folder.rglob("*"):
        os.utime(path, (when, when))


def test_old_runs_are_listed_and_removed_whole(tmp_path, capsys):
    runs = tmp_path / "runs"
    old = make_run(runs / "a" / "old", 40)
    killed = make_run(runs / "killed", 31, status="")
    young = make_run(runs / "young", 29)
    sweep = make_run(runs / "sweep", 1)
    inner = make_run(sweep / "runs" / "one", 50)  # part of a run that is young
    notes = runs / "notes"
    notes.mkdir()
    (notes / "run.json").write_text("[]")
    set_age(notes, 90)
    assert clean.main(["--older", "30d", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"done         {old}\n" in said
    assert f"killed       {killed}\n" in said
    assert "would remove 2 runs, 8." in said
    assert old.exists()
    assert clean.main(["--older", "30d"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert old.exists()
    assert clean.main(["--older", "30d", "--yes"]) == 0
    assert "removed 2 of 2 runs" in capsys.readouterr().out
    assert not old.exists()
    assert not killed.exists()
    assert all(path.exists() for path in (young, sweep, inner, notes / "run.json"))
    assert sorted(p.name for p in runs.iterdir()) == ["a", "notes", "sweep", "young"]


def test_a_run_in_use_is_kept(tmp_path, capsys):
    run = make_run(tmp_path / "run", 90)
    with locked(run / LOCK, 0.0, "here"):
        set_age(run, 90)
        assert clean.main(["--older", "1w", str(tmp_path), "--yes"]) == 0
    assert "kept: in use by process" in capsys.readouterr().out
    assert run.exists()


def test_only_what_is_at_its_address_is_removed_from_the_cache(tmp_path, capsys):
    for name, copied in (("one", True), ("two", False)):
        folder = make_run(cached_output(f"s3://b/{name}"), 90)
        about = {"address": f"s3://b/{name}", "tokens": [], "copied": copied}
        (folder.parent / "address.json").write_text(json.dumps(about))
    (tmp_path / "runs").mkdir()
    assert clean.main(["--older", "30d", "--yes"]) == 0
    assert "not all of it is at s3://b/two" in capsys.readouterr().out
    assert not cached_output("s3://b/one").parent.exists()
    assert cached_output("s3://b/two").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--older", "30"], "30d"),
        (["--older", "30d", "no/where"], "no/where"),
        (["--yes"], "--older"),
        (["runs"], "--older"),
    ],
)
def test_wrong_arguments_are_refused(arguments, why, capsys):
    assert clean.main(arguments) == 2
    assert why in capsys.readouterr().err


def test_the_terminal_is_asked(tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path / "runs" / "old", 40)
    for reply, kept in (("\n", True), ("y\n", False)):
        terminal = io.StringIO(reply)
        terminal.isatty = lambda: True
        monkeypatch.setattr(old_runs.sys, "stdin", terminal)
        assert clean.main(["--older", "30d"]) == 0
        assert run.exists() is kept
    assert "remove 1 run, " in capsys.readouterr().out


def test_the_current_directory_and_a_link_may_be_the_run(tmp_path, capsys, monkeypatch):
    here = make_run(tmp_path / "runs" / "here", 40)
    link = tmp_path / "link"
    link.symlink_to(make_run(tmp_path / "runs" / "linked", 40))
    monkeypatch.chdir(here)
    assert clean.main(["--older", "30d", ".", "--yes"]) == 0
    assert clean.main(["--older", "30d", str(link), "--yes"]) == 0
    assert "removed 1 of 1 run" in capsys.readouterr().out
    assert not list((tmp_path / "runs").iterdir())
    assert link.is_symlink()


def test_a_run_that_went_on_while_the_question_waited_is_kept(tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path / "runs" / "old", 40)

    def agreed(what):
        (run / "summary.json").write_text('{"status": "interrupted"}')
        return True

    monkeypatch.setattr(old_runs, "_agreed", agreed)
    assert clean.main(["--older", "30d"]) == 0
    assert "is kept: it was written to meanwhile" in capsys.readouterr().out
    assert (run / "dataset" / "big").exists()


def test_a_run_that_is_removed_in_part_is_not_called_kept(tmp_path, capsys, monkeypatch):
    make_run(tmp_path / "runs" / "old", 40)

    def fails(folder):
        (folder / "run.json").unlink()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(old_runs.shutil, "rmtree", fails)
    assert clean.main(["--older", "30d", "--yes"]) == 0
    rest = tmp_path / "runs" / ".old.removed.tmp"
    assert f"removed in part, the rest is {rest}: Permission denied" in capsys.readouterr().out
