import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from rollout import checkout, environment, run_directory
from rollout.checkout import commit_of
from rollout.collect import CollectPlan
from rollout.config import (
    CollectConfig,
    RunConfig,
    Section,
    key,
    load_config,
    make_config,
)
from rollout.errors import ConfigError, GameError, RunDirectoryError
from rollout.observe.metrics import Metrics
from rollout.run_directory import RunDirectory, absolute, as_begun, versions


class Recording(Section):
    codec: str = key("png", "Codec.")
    shard_mb: int = key(1, "Size.", gt=0)


class Config(RunConfig):
    may_change: ClassVar[tuple[str, ...]] = (*RunConfig.may_change, "actors", "recording.shard_mb")
    may_grow: ClassVar[tuple[str, ...]] = ("episodes",)

    seed: int = 0
    actors: int = 1
    episodes: int | None = 5
    recording: Recording = key(Recording, "Recording.")


class Other(Config):
    pass


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAMUT_RUNS_DIR", raising=False)
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    monkeypatch.chdir(tmp_path)


def config(**keys: object) -> Config:
    return make_config(Config, {"output": "run", **keys})


def create(path: Path | str, /, *, resume: bool = False, **keys: object) -> RunDirectory:
    return RunDirectory.create(path, config(**keys), resume=resume)


def test_a_new_run_has_an_id_and_its_resolved_configuration(tmp_path: Path) -> None:
    run = create("a/run", seed=3)
    assert run.path == tmp_path / "a" / "run"
    assert run.resume_count == 0
    about = json.loads((run.path / "run.json").read_text())
    assert about["run_id"] == run.run_id
    assert about["kind"] == "Config"
    assert about["sessions"][0]["versions"]["python"] == platform.python_version()
    written = load_config(Config, run.config_file)
    assert written == config(seed=3, output=str(run.path))
    assert yaml.safe_load(run.config_file.read_text())["recording"] == {
        "codec": "png",
        "shard_mb": 1,
    }


def test_two_runs_have_two_ids() -> None:
    assert create("a").run_id != create("b").run_id


def test_the_paths_lie_in_the_directory(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    for path, name in (
        (run.dataset, "dataset"),
        (run.checkpoints, "checkpoints"),
        (run.videos, "videos"),
        (run.metrics, "metrics.jsonl"),
        (run.wandb, "wandb"),
        (run.log, "run.log"),
    ):
        assert path == tmp_path / "run" / name


def test_another_run_in_the_way_is_refused() -> None:
    run = create("run")
    with pytest.raises(RunDirectoryError, match=f"already contains the run {run.run_id}.*--resume"):
        create("run")


def test_something_else_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("x")
    for resume in (False, True):
        with pytest.raises(RunDirectoryError, match=r"holds no run \(found thesis.tex\).*another"):
            create("run", resume=resume)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["thesis.tex"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(RunDirectoryError, match=r"cannot be used: .*another output"):
        create("run")


def test_an_empty_directory_is_taken_and_so_is_what_a_crash_left(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.tmp").write_text("{")
    assert create("run").resume_count == 0


def test_resuming_nothing_begins_it() -> None:
    assert create("run", resume=True).resume_count == 0


def test_a_resumed_run_is_the_same_run() -> None:
    first = create("run")
    second = create("run", resume=True)
    third = create("run", resume=True)
    assert first.run_id == second.run_id == third.run_id
    assert (second.resume_count, third.resume_count) == (1, 2)


def test_harmless_keys_may_change_and_budgets_may_grow() -> None:
    create("run")
    run = create(
        "run", resume=True, actors=4, episodes=9, log={"level": "debug"}, recording={"shard_mb": 2}
    )
    changes = json.loads((run.path / "run.json").read_text())["sessions"][1]["changes"]
    assert changes == [
        "actors: 1 -> 4",
        "episodes: 5 -> 9",
        "recording.shard_mb: 1 -> 2",
        'log.level: "info" -> "debug"',
    ]
    assert load_config(Config, run.config_file).episodes == 9
    assert create("run", resume=True, actors=1, episodes=None).resume_count == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"seed": 1}, "seed: 0 -> 1"),
        ({"episodes": 4}, "episodes: 5 -> 4"),
        ({"recording": {"codec": "raw"}}, 'recording.codec: "png" -> "raw"'),
    ],
)
def test_keys_that_matter_are_listed_and_refused(keys: dict[str, object], message: str) -> None:
    run = create("run")
    before = {p: p.read_bytes() for p in run.path.iterdir()}
    with pytest.raises(RunDirectoryError, match=message) as caught:
        create("run", resume=True, actors=7, **keys)
    assert "actors" not in str(caught.value)
    assert {p: p.read_bytes() for p in run.path.iterdir()} == before


def test_what_follows_from_other_keys_is_not_asked_to_be_undone() -> None:
    """The options of another game, what another task needs, and what another player has played."""
    base = {"output": "run", "policy": "random", "episodes": 4}
    begun = make_config(CollectConfig, {**base, "bridge": {"name": "fake", "side": 4}})
    RunDirectory.create("run", begun, resume=False)
    other = make_config(CollectConfig, {**base, "bridge": "chaos", "task": "t", "seed": 3})
    with pytest.raises(RunDirectoryError) as caught:
        RunDirectory.create("run", other, resume=True)
    assert str(caught.value).endswith(
        '(bridge.name: "fake" -> "chaos"; task: "" -> "t"; seed: 0 -> 3); '
        """set 'bridge.name="fake"' 'task=""' seed=0 to resume it, or choose another output"""
    )


def test_a_resumed_run_keeps_what_was_left_to_the_program(tmp_path: Path) -> None:
    def config(**keys: object) -> CollectConfig:
        game = {"name": "gymnasium", "id": "CartPole-v1"}  # usually 32 slots, if so many episodes
        given = {"output": "run", "bridge": game, "policy": "random", "actors": 0}
        return make_config(CollectConfig, {**given, **keys})

    def begun(config: CollectConfig, resume: bool) -> CollectConfig:
        plan = CollectPlan.make(as_begun(config, resume=resume))
        RunDirectory.create("run", plan.config, resume=resume)
        return plan.config

    assert begun(config(episodes=4), resume=True).width == 4
    assert begun(config(episodes=100), resume=True).width == 4
    with pytest.raises(RunDirectoryError, match=r"width: 4 -> 8.*set width=4 to resume it"):
        begun(config(episodes=100, width=8), resume=True)
    assert CollectPlan.make(as_begun(config(episodes=100), resume=False)).config.width == 32


def test_no_bound_does_not_shrink_to_a_bound() -> None:
    create("run", episodes=None)
    with pytest.raises(RunDirectoryError, match="episodes: null -> 100"):
        create("run", resume=True, episodes=100)


def test_a_run_of_another_kind_is_refused() -> None:
    create("run")
    with pytest.raises(RunDirectoryError, match="kind Config, expected Other"):
        RunDirectory.create("run", Other(output=Path("run")), resume=True)


def test_a_run_interrupted_before_its_configuration_was_written_is_resumed() -> None:
    run = create("run")
    run.config_file.unlink()
    assert create("run", resume=True, seed=8).run_id == run.run_id


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"run_id": 3, "sessions": []}'])
def test_a_damaged_run_json_is_reported(text: str) -> None:
    run = create("run")
    (run.path / "run.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=r"run.json (is damaged|does not describe a run)"):
        create("run", resume=True)


def test_a_configuration_of_another_version_is_reported() -> None:
    run = create("run")
    run.config_file.write_text("output: run\nseeed: 3\n")
    with pytest.raises(RunDirectoryError, match=r"cannot be resumed: .*seeed"):
        create("run", resume=True)


def fail_in(path: str, error: Exception, *files: str, resume: bool = False) -> None:
    def live() -> None:
        with RunDirectory.opened(path, config(), resume=resume) as run:
            run.metrics.touch()
            for name in ("run.log", "dataset/dataset.json", "wandb/offline/files/a", *files):
                (run.path / name).parent.mkdir(parents=True, exist_ok=True)
                (run.path / name).write_text("x")
            raise error

    with pytest.raises(type(error)):
        live()


def test_a_new_run_that_proves_to_be_wrong_input_goes_away(tmp_path: Path) -> None:
    """So that the corrected command may have the same output."""
    fail_in("run", ConfigError("the game is not installed"))
    assert not (tmp_path / "run").exists()
    assert create("run").resume_count == 0


@pytest.mark.parametrize(
    "file",
    ["dataset/journal-0.arrow", "checkpoints/000001/about.json", "summary.json", "metrics.jsonl"],
)
def test_what_was_recorded_stays_regardless_of_it_ends_with(tmp_path: Path, file: str) -> None:
    fail_in("run", ConfigError("wrong after all"), file)
    assert (tmp_path / "run" / file).read_text() == "x"
    assert (tmp_path / "run" / "run.json").exists()


def test_a_run_stays_that_failed_or_was_begun_before(tmp_path: Path) -> None:
    fail_in("failed", GameError("it died"))
    create("begun")
    fail_in("begun", ConfigError("the game is not installed here"), resume=True)
    for name in ("failed", "begun"):
        assert (tmp_path / name / "run.json").exists()


def test_a_run_that_another_process_works_on_is_refused_and_left_as_it_is() -> None:
    with RunDirectory.opened("run", config(), resume=False) as run:
        before = {p: p.read_bytes() for p in run.path.iterdir()}
        who = f"process {os.getpid()} on {socket.gethostname()} is working on the run in {run.path}"
        for resume in (True, False):
            with (
                pytest.raises(RunDirectoryError, match=who),
                RunDirectory.opened("run", config(), resume=resume),
            ):
                pass
        assert {p: p.read_bytes() for p in run.path.iterdir()} == before
    with RunDirectory.opened("run", config(), resume=True) as run:
        assert run.resume_count == 1


HOLDER = """
import sys
import time
from pathlib import Path
from rollout.config import RunConfig
from rollout.run_directory import RunDirectory

with RunDirectory.opened("run", RunConfig(output=Path("run")), resume=True):
    print("here", flush=True)
    time.sleep(3600)
"""


@pytest.mark.process
def test_a_killed_process_holds_nothing_and_one_that_is_about_to_end_is_waited_for() -> None:
    def again(wait_s: float) -> int:
        opened = RunDirectory.opened(
            "run", RunConfig(output=Path("run")), resume=True, wait_s=wait_s
        )
        with opened as run:
            return run.resume_count

    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"here\n"
            with pytest.raises(RunDirectoryError, match=f"process {holder.pid} on"):
                again(0.0)
            threading.Timer(0.5, holder.kill).start()
            assert again(600.0) == 1
        finally:
            holder.kill()


def test_what_is_in_the_way_is_not_touched_and_a_bare_lock_is_not_in_the_way(
    tmp_path: Path,
) -> None:
    for name in ("mine", "left"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "left" / ".run.lock").write_text("")
    with (
        pytest.raises(RunDirectoryError, match="holds no run"),
        RunDirectory.opened("mine", config(), resume=True),
    ):
        pass
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with RunDirectory.opened("left", config(), resume=False) as run:
        assert run.resume_count == 0


def test_a_directory_that_is_removed_or_moved_ends_the_run_in_one_line(tmp_path) -> None:
    def work(name, lose):
        opened = RunDirectory.opened(name, config(), resume=False)
        with opened as run, Metrics(run.metrics) as metrics:
            metrics.write(1, {"x": 1})
            lose(run.path)
            metrics.write(2, {"x": 1})

    said = "was removed or moved while the run worked in it"
    for number, lose in enumerate((shutil.rmtree, lambda path: path.rename(tmp_path / "there"))):
        with pytest.raises(RunDirectoryError, match=said):
            work(f"lost-{number}", lose)


def test_the_summary_is_written_in_one_step() -> None:
    run = create("run")
    run.write_summary({"episodes": 3})
    run.write_summary({"episodes": 4})
    assert json.loads(run.summary_file.read_text()) == {"episodes": 4}
    with pytest.raises(TypeError):
        run.write_summary({"x": object()})
    assert json.loads(run.summary_file.read_text()) == {"episodes": 4}
    assert not [p for p in run.path.iterdir() if p.suffix == ".tmp"]


def test_relative_outputs_lie_in_the_runs_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert absolute("a") == tmp_path / "a"
    assert absolute("~/a") == tmp_path / "home" / "a"
    monkeypatch.setenv("GAMUT_RUNS_DIR", "~/runs")
    assert absolute("a") == tmp_path / "home" / "runs" / "a"
    assert absolute("/x/a") == Path("/x/a")
    monkeypatch.setenv("GAMUT_RUNS_DIR", "runs")
    with pytest.raises(RunDirectoryError, match="GAMUT_RUNS_DIR=runs: expected an absolute path"):
        absolute("a")


def test_a_ray_job_needs_an_absolute_output(monkeypatch) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(RunDirectoryError, match=r"Ray job goes away.*GAMUT_RUNS_DIR"):
        absolute("a")
    monkeypatch.setenv("GAMUT_RUNS_DIR", "/shared/runs")
    assert absolute("a") == Path("/shared/runs/a")


def test_versions_name_what_the_run_runs_on(monkeypatch) -> None:
    found = versions()
    assert set(found) == {
        "gamut", "python", "ray", "torch", "numpy", "gymnasium", "pyarrow", "commit", "platform",
        "cpus", "working_directory",
    }  # fmt: skip
    monkeypatch.setattr(run_directory, "_PACKAGES", ("no-such-package",))
    monkeypatch.setattr(checkout.shutil, "which", lambda _: None)
    assert versions()["no-such-package"] is None
    assert versions()["commit"] == found["commit"], "read once, like the code"
    monkeypatch.setattr(run_directory, "_code_commit", run_directory._code_commit.__wrapped__)
    assert versions()["commit"] is None
    assert versions()["working_directory"] is None


def test_the_commit_of_the_working_directory_is_recorded(tmp_path, monkeypatch) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
        (tmp_path / "mine.py").touch()
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    commit = versions()["working_directory"]
    assert re.fullmatch(r"[0-9a-f]{40}", str(commit))
    (tmp_path / "mine.py").write_text("x = 1")
    assert versions()["working_directory"] == f"{commit}-dirty"
    monkeypatch.setenv(checkout.WORKING_COMMIT, "abc")  # in a job, without .git
    assert versions()["working_directory"] == "abc"


def test_the_installed_packages_and_their_changes_are_recorded(tmp_path, monkeypatch) -> None:
    for packages in ({"numpy": "==1", "mine": " @ git+https://h/mine@abc"}, {"numpy": "==2"}):
        monkeypatch.setattr(run_directory, "installed", lambda packages=packages: packages)
        run = RunDirectory.create("run", config(), resume=True)
    lines = (run.path / "environment.txt").read_text().splitlines()
    assert lines[0].startswith("# Python 3.")
    assert lines[1:] == ["numpy==2"]
    assert json.loads((run.path / "run.json").read_text())["sessions"][1]["changes"] == [
        "package mine: git+https://h/mine@abc -> none", "package numpy: 1 -> 2"
    ]  # fmt: skip


def test_packages_are_found_with_their_sources(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(environment.sys, "path", [str(tmp_path), str(tmp_path / "no")])
    (tmp_path / "Some_Thing-1.2rc1.dist-info").mkdir()
    mine = tmp_path / "mine-3.dist-info"
    mine.mkdir()
    about = {"url": "https://me:word@h/mine", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    (mine / "direct_url.json").write_text(json.dumps(about))
    assert environment.installed() == {
        "mine": " @ git+https://***@h/mine@abc", "some-thing": "==1.2rc1"
    }  # fmt: skip


def test_agents_of_a_wandb_sweep_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    for run in ("a1", "b2"):
        monkeypatch.setenv("WANDB_RUN_ID", run)
        assert create(tmp_path / "run").path == tmp_path / "run" / run


def test_the_commit_of_a_job_comes_from_its_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("GAMUT_COMMIT", "abc-dirty")
    assert commit_of(tmp_path) == "abc-dirty", "the package of a job has no .git"
    assert commit_of(Path(__file__).parents[2]) != "abc-dirty"
