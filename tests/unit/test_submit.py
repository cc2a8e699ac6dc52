"""What ``scripts/submit.py`` would send, what it refuses, and how it follows a job."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray._private.ray_constants import get_runtime_env_default_excludes
from ray._private.runtime_env.packaging import create_package

from rollout.api import Resources
from rollout.cluster import jobs
from rollout.cluster.addresses import Dashboard
from rollout.cluster.jobs import NoAnswerError, RayJob, exit_status, follow
from rollout.cluster.package import (
    LIMIT_BYTES,
    PATTERNS,
    Package,
    mib,
    read_package,
    write_rayignore,
)
from rollout.cluster.resources import (
    Node,
    actor_options,
    fits,
    missing_resources,
    requested_resources,
    require_bundles,
    require_resources,
)
from rollout.cluster.submit import describe, parse_submission, run
from rollout.errors import ConfigError

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "configs" / "cluster"
HERE = "http://127.0.0.1:8265"


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "GAMUT_RUNS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path):
    """A project with everything that is held back, and a little that is not."""
    folder = tmp_path / "project"
    for path, text in {
        "scripts/train.py": "print('hello')",
        "configs/a.yaml": "a: 1",
        "notes.txt": "ignored by git",
        "data/big.bin": "x" * 5000,
        "data/kept.bin": "y" * 3000,
        "runs/one/config.yaml": "of a run",
        ".git/HEAD": "ref",
        ".venv/bin/python": "binary",
        "rollout/__pycache__/a.pyc": "compiled",
        "rollout/ä.py": "umlaut = 1",
        ".gitignore": "runs/\nnotes.txt\n",
        "data/.rayignore": "big.bin\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "empty").mkdir()
    return folder


def grow(folder, size):
    """Puts a file into a folder that makes what is sent of it ``size`` bytes in all."""
    path = folder / "grown.bin"
    path.write_bytes(b"")
    missing = size - read_package(folder).size
    os.truncate(path, missing)
    assert read_package(folder).size == size


def sent_of(folder):
    return {path for path, _ in read_package(folder).files}


# --- The working directory ----------------------------------------------------------------------


def test_the_list_is_what_ray_packs_to_the_byte(folder, tmp_path):
    package = read_package(folder)
    target = tmp_path / "package.zip"
    excludes = get_runtime_env_default_excludes()
    create_package(str(folder), target, include_gitignore=True, excludes=excludes)
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(target)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ).stdout
    names = {line.split()[0].rstrip("/") for line in listed.splitlines()[1:]}
    assert names == {path for path, _ in package.files}
    # A folder's name ends in a slash there, in both of its headers.
    assert target.stat().st_size == package.size + 2
    assert names == {
        ".gitignore",
        "configs/a.yaml",
        "data/.rayignore",
        "data/kept.bin",
        "empty",
        "rollout/ä.py",
        "scripts/train.py",
    }
    assert package.files[0] == ("data/kept.bin", 3000)
    assert package.folders()[0] == ("data/", 3008)
    assert package.left_out == (".git", ".venv", "notes.txt", "runs")


def test_gitignore_can_be_turned_off_as_in_ray(folder, monkeypatch):
    assert "notes.txt" not in sent_of(folder)
    monkeypatch.setenv("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1")
    assert "notes.txt" in sent_of(folder)


def test_default_excludes_can_be_changed_as_in_ray(folder, monkeypatch):
    monkeypatch.setenv("RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES", ".venv")
    assert ".git/HEAD" in sent_of(folder)
    assert ".venv/bin/python" not in sent_of(folder)


def test_a_new_rayignore_holds_back_what_a_dry_run_says(folder):
    (folder / ".gitignore").unlink()
    (folder / "film.mp4").write_text("film")
    assert {"runs/one/config.yaml", "film.mp4"} <= sent_of(folder)
    foreseen = {path for path, _ in read_package(folder, PATTERNS).files}
    assert write_rayignore(folder)
    assert sent_of(folder) == foreseen | {".rayignore"}
    assert not {"runs/one/config.yaml", "film.mp4"} & foreseen
    assert "scripts/train.py" in foreseen


def test_a_rayignore_that_is_there_is_left_alone(folder):
    (folder / ".rayignore").write_text("data\n")
    assert not write_rayignore(folder)
    assert (folder / ".rayignore").read_text() == "data\n"


def test_the_project_s_own_rayignore_is_a_new_one():
    lines = (ROOT / ".rayignore").read_text().splitlines()
    assert tuple(line for line in lines if line and not line.startswith("#")) == PATTERNS


def test_our_own_sources_are_all_sent():
    sent = sent_of(ROOT)
    sources = {
        path.relative_to(ROOT).as_posix()
        for top in ("rollout", "policies", "bridges", "scripts", "configs")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".yaml", ".js"} and "node_modules" not in path.parts
    }
    assert len(sources) > 100
    assert sources <= sent


def test_less_than_the_limit_is_sent_and_the_limit_is_not(folder):
    grow(folder, LIMIT_BYTES - 1)
    read_package(folder).require_sendable()
    grow(folder, LIMIT_BYTES)
    with pytest.raises(ConfigError, match=r"is 100.0 MiB.*largest: grown.bin.*name what the job"):
        read_package(folder).require_sendable()


def test_a_pipe_that_ray_would_wait_for_is_refused(folder):
    os.mkfifo(folder / "data" / "pipe")
    with pytest.raises(ConfigError, match=r"data/pipe is a pipe or a device.*\.rayignore"):
        read_package(folder)
    with (folder / "data" / ".rayignore").open("a") as file:
        file.write("pipe\n")
    assert "data/pipe" not in sent_of(folder)


@pytest.mark.parametrize(
    "links", [{"data/up": ".."}, {"data/b": "../rollout", "rollout/a": "../data"}]
)
def test_a_link_that_leads_round_in_circles_is_refused(folder, links):
    """Ray follows it forty times; with two of them in a folder it does not come to an end."""
    for name, target in links.items():
        (folder / name).symlink_to(target)
    with pytest.raises(ConfigError, match=r"leads back to a folder that it is in.*\.rayignore"):
        read_package(folder)
    (folder / ".rayignore").write_text("\n".join(links))
    assert not sent_of(folder) & {*links}


def test_links_to_other_folders_are_followed_as_ray_does(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("1")
    for name in ("one", "two"):
        (folder / name).symlink_to(tmp_path / "elsewhere")
    assert {"one/file", "two/file"} <= sent_of(folder)


def test_sizes_are_reported_in_words_of_people():
    assert mib(3 << 19) == "1.5 MiB"
    assert mib(2048) == "2.0 KiB"


# --- The command line ---------------------------------------------------------------------------


def order(folder, *options, command=("python", "scripts/train.py")):
    return parse_submission(["--working-dir", str(folder), *options, "--", *command])


def wrong(folder, *options, **more):
    with pytest.raises(ConfigError) as caught:
        order(folder, *options, **more)
    return str(caught.value)


def test_a_job_gets_time_to_save_and_a_place_for_its_runs(folder):
    ordered = order(folder, command=("python", "scripts/train.py", "--set", "a=b c"))
    assert ordered.url == HERE
    assert ordered.job.entrypoint == "python scripts/train.py --set 'a=b c'"
    assert ordered.job.env == {"RAY_JOB_STOP_WAIT_TIME_S": "60", "GAMUT_RUNS_DIR": str(folder)}
    assert ordered.wait
    assert not ordered.notes
    runtime = ordered.job.runtime_env()
    assert set(runtime) <= {"working_dir", "env_vars", "excludes"}
    assert runtime["excludes"] == list(PATTERNS)
    (folder / ".rayignore").write_text("")
    assert set(order(folder).job.runtime_env()) == {"working_dir", "env_vars"}


def test_jobs_have_names_of_their_own(folder):
    assert order(folder).job.name != order(folder).job.name


def test_a_line_for_the_shell_stays_as_it_is(folder):
    line = "python scripts/train.py && echo $HOME"
    assert order(folder, command=(line,)).job.entrypoint == line


@pytest.fixture
def ours(folder):
    """A copy of our sources, as far as they are looked at."""
    (folder / "rollout" / "cluster").mkdir()
    (folder / "rollout" / "cluster" / "submit.py").touch()
    return folder


def run_job(folder, *command):
    """Runs what a job would, with the command as it is on its cluster."""
    job = order(folder, command=command).job
    return subprocess.run(
        job.check + job.entrypoint,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_job_whose_python_has_our_packages_runs(ours):
    done = run_job(ours, sys.executable, "-u", "scripts/train.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_a_job_whose_python_has_none_of_our_packages_ends_with_one_line(ours, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True, timeout=300
    )
    python = str(bare / "bin" / "python")
    done = run_job(ours, python, "scripts/train.py")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {python}, the Python of the job on the cluster, has no ray, ")
    assert "install Gamut there" in line


def test_a_job_without_the_program_gamut_ends_with_one_line(folder, tmp_path):
    done = run_job(folder, str(tmp_path / "gamut"), "train")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: there is no {tmp_path}/gamut on the cluster; install")
    (tmp_path / "gamut").write_text("#!/bin/sh\necho $1\n")
    (tmp_path / "gamut").chmod(0o755)
    assert run_job(folder, str(tmp_path / "gamut"), "train").stdout == "train\n"


@pytest.mark.parametrize("command", [("python", "other.py"), ("sleep", "1"), ("gamut",)])
def test_a_command_that_is_not_ours_is_sent_as_it_is(ours, command):
    (ours / "other.py").touch()
    assert not order(ours, command=command).job.check


def test_scripts_of_other_projects_are_sent_as_they_are(folder):
    assert not order(folder).job.check


def test_runs_lie_where_the_same_command_would_put_them_here(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_RUNS_DIR", str(tmp_path / "mine"))
    assert order(folder).job.env["GAMUT_RUNS_DIR"] == str(tmp_path / "mine")
    given = order(folder, "--runs-dir", str(tmp_path / "given"))
    assert given.job.env["GAMUT_RUNS_DIR"] == str(tmp_path / "given")
    in_env = order(folder, "--env", f"GAMUT_RUNS_DIR={tmp_path}/env")
    assert in_env.job.env["GAMUT_RUNS_DIR"] == f"{tmp_path}/env"
    monkeypatch.chdir(tmp_path)
    assert order(folder, "--runs-dir", "here").job.env["GAMUT_RUNS_DIR"] == str(tmp_path / "here")


def test_another_machine_may_not_have_that_folder(folder):
    away = ("--address", "http://192.0.2.200:8265")
    assert "give --runs-dir" in " ".join(order(folder, *away).notes)
    assert "give --runs-dir" in " ".join(order(folder, *away, "--runs-dir", "here").notes)
    assert not order(folder, *away, "--runs-dir", "/shared/runs").notes


def test_environment_and_needs_are_passed_on(folder):
    ordered = order(
        folder, "--env", "A=b=c", "--env", "RAY_JOB_STOP_WAIT_TIME_S=9", "--needs", "GPU=0.5"
    )
    assert ordered.job.env["A"] == "b=c"
    assert ordered.job.env["RAY_JOB_STOP_WAIT_TIME_S"] == "9"
    assert ordered.job.needs == {"GPU": 0.5}


def test_secrets_are_not_shown_here_and_told_to_be_shown_there(folder):
    ordered = order(folder, "--env", "WANDB_API_KEY=abc123", "--env", "KEYBOARD=de")
    text = describe(ordered)
    assert "abc123" not in text
    assert "WANDB_API_KEY is shown, as it is, to everyone who can see the dashboard" in text
    assert "KEYBOARD=de" in text
    assert ordered.job.env["WANDB_API_KEY"] == "abc123"


def test_what_is_sent_is_shown(folder):
    for number in range(20):
        (folder / f"file{number}.txt").write_text("z" * (100 + number))
    lines = describe(order(folder)).splitlines()
    listed = [line.split()[-1] for line in lines if line.startswith("  ")]
    assert listed[:3] == ["data/kept.bin", "file19.txt", "file18.txt"]
    assert len(listed) == 10
    text = "\n".join(lines)
    assert "of what Ray takes, in 27 files" in text
    assert re.search(r"not sent .*\.git, \.venv, notes\.txt, runs", text)
    assert "command    python scripts/train.py" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "A"], "--env A: expected NAME=VALUE"),
        (["--env", "A=1", "--env", "A=2"], "--env A is given twice"),
        (["--env", "RAY_ADDRESS=x"], "--env RAY_ADDRESS: Ray sets it in every job"),
        (["--env", "RAY_AUTH_TOKEN=x"], "--env RAY_AUTH_TOKEN"),
        (["--env", "GAMUT_RUNS_DIR=/a", "--runs-dir", "/b"], "say the same; give one"),
        (["--needs", "GPU=many"], "--needs GPU=many: expected a number"),
        (["--needs", "GPU=-1"], "expected a number that is not negative"),
        (["--needs", "GPU=nan"], "expected a number"),
        (["--adress", "x"], "unrecognized arguments: --adress x; see --help"),
        (["--address", "ray://head:10001"], "expected the URL of the dashboard"),
        (["--working-dir", "/nowhere"], "/nowhere: there is no such folder"),
    ],
)
def test_wrong_options_are_reported(folder, options, said):
    assert said in wrong(folder, *options)


@pytest.mark.parametrize("argv", [[], ["--"], ["--", " "], ["python", "scripts/train.py"]])
def test_without_a_command_nothing_is_sent(argv):
    with pytest.raises(ConfigError, match=r"write it after --|unrecognized arguments"):
        parse_submission(argv)


def test_a_script_that_is_not_there_is_reported_with_the_nearest(folder):
    said = wrong(folder, command=("python", "scripts/tarin.py"))
    assert f"there is no scripts/tarin.py in {folder}; nearest: scripts/train.py" in said


def test_a_file_that_is_held_back_is_reported(folder):
    command = ("python", "scripts/train.py", "--config", "runs/one/config.yaml")
    assert "names runs/one/config.yaml, which is not sent" in wrong(folder, command=command)
    command = ("python", "./scripts/train.py", "--config", str(folder / "runs/one/config.yaml"))
    assert order(folder, command=command)


def call(folder, *options):
    return run(["--working-dir", str(folder), *options, "--", "python", "scripts/train.py"])


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("urllib.request.urlopen", refuse)


def test_a_dry_run_shows_all_and_changes_nothing(folder, capsys, no_network):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert call(folder, "--dry-run") == 0
    out, err = capsys.readouterr()
    assert "directory  " in out
    assert ".rayignore would be written" in out
    assert out.endswith("nothing was sent\n")
    assert not err
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_too_much_is_shown_and_refused_before_anything_is_sent(folder, capsys, no_network, options):
    grow(folder, LIMIT_BYTES + 5)
    assert call(folder, *options) == 2
    out, err = capsys.readouterr()
    assert "grown.bin" in out
    assert len(err.splitlines()) == 1
    assert "Ray takes less than 100.0 MiB; largest: grown.bin (100.0 MiB)" in err
    assert not (folder / ".rayignore").exists()


def test_an_address_where_nobody_listens_is_one_line(folder, capsys):
    began = time.monotonic()
    assert call(folder, "--address", "http://127.0.0.1:1") == 2
    assert time.monotonic() - began < 30
    out, err = capsys.readouterr()
    assert not out
    assert len(err.splitlines()) == 1
    assert "no dashboard answers there" in err
    assert not (folder / ".rayignore").exists()


def test_wrong_input_is_one_line(folder, capsys):
    assert call(folder, "--env", "A") == 2
    assert capsys.readouterr().err == "error: --env A: expected NAME=VALUE\n"


# --- Following a job ----------------------------------------------------------------------------


class FakeClient:
    """A job whose log comes over connections that break, as in ``parts``."""

    def __init__(self, parts, *, statuses=("RUNNING", "SUCCEEDED"), code=0):
        self.parts = list(parts)
        self.statuses = list(statuses)
        self.code = code
        self.sent = None
        self.error = None
        self.machines = [{"CPU": 2.0, "GPU": 1.0, "gamut_learner": 1.0}]

    def _do_request(self, method, endpoint):
        assert (method, endpoint.partition("?")[0]) == ("GET", "/api/v0/nodes")
        if self.machines is None:
            raise ConnectionError("not now")
        said = [
            {"node_ip": "10.0.0.1", "state": "ALIVE", "labels": {}, "resources_total": has}
            for has in self.machines
        ]
        reply = {"data": {"result": {"result": said}}}
        return SimpleNamespace(raise_for_status=lambda: None, json=lambda: reply)

    def submit_job(self, **given):
        self.sent = given
        if self.error is not None:
            raise self.error

    async def tail_job_logs(self, name):
        part = self.parts.pop(0)
        for text in part:
            if isinstance(text, BaseException):
                raise text
            yield text

    def get_job_info(self, name):
        status = self.statuses[0] if len(self.statuses) == 1 else self.statuses.pop(0)
        if isinstance(status, Exception):
            raise status
        value = SimpleNamespace(value=status)
        ended = status in {"SUCCEEDED", "FAILED"}
        code = self.code if ended else None
        return SimpleNamespace(status=Status(status), driver_exit_code=code, message="", v=value)


class Status(str):
    """As Ray's, a text with a value."""

    __slots__ = ()

    @property
    def value(self):
        return str(self)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(jobs, "_POLL_S", 0.01)


def followed(client):
    shown = []
    info = follow(client, "job", shown.append)
    return "".join(shown), info


def test_a_log_is_shown_to_its_end():
    text, info = followed(FakeClient([["one\n", "two\n"]], code=7))
    assert text == "one\ntwo\n"
    assert exit_status(info) == 7


def test_a_connection_that_breaks_is_made_again_and_nothing_is_shown_twice():
    # A new connection tells the log from its beginning, cut in other places.
    parts = [["one\n", "tw", RuntimeError("closed")], ["one\nt", OSError()], ["one\ntwo\nthree\n"]]
    text, info = followed(FakeClient(parts, statuses=["RUNNING"] * 5 + ["SUCCEEDED"]))
    assert text == "one\ntwo\nthree\n"
    assert info.status == "SUCCEEDED"


def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again():
    silent = [ConnectionError("no route")] * 3
    text, info = followed(FakeClient([["one\n"]] * 2, statuses=[*silent, "SUCCEEDED"]))
    assert (text, info.status) == ("one\n", "SUCCEEDED")


def test_a_cluster_that_is_gone_is_lost_from_sight(monkeypatch):
    monkeypatch.setattr(jobs, "_LOST_S", 0.05)
    parts = [[]] * 1000
    with pytest.raises(NoAnswerError, match=r"has not answered .*no route.*may still be running"):
        followed(FakeClient(parts, statuses=[ConnectionError("no route")]))


def details(status, code=None):
    return SimpleNamespace(status=Status(status), driver_exit_code=code, message="")


@pytest.mark.parametrize(
    ("info", "env", "status"),
    [
        (details("SUCCEEDED", 0), {}, 0),
        (details("FAILED", 7), {}, 7),
        (details("FAILED", 143), {}, 143),
        (details("FAILED", -9), {}, 137),
        (details("FAILED"), {}, 1),
        (details("SUCCEEDED"), {}, 0),
        (details("STOPPED"), {}, 143),
        (details("STOPPED"), {"RAY_JOB_STOP_SIGNAL": "SIGINT"}, 130),
    ],
)
def test_the_status_is_that_of_the_driver(info, env, status):
    assert exit_status(info, env) == status


@pytest.fixture
def cluster(monkeypatch):
    """A cluster that takes the job; its client is what a test puts there."""
    state = SimpleNamespace(client=FakeClient([["log\n"]], code=7), token=None)

    def found(url):
        return Dashboard(url, "2.60.0", state.token)

    monkeypatch.setattr("rollout.cluster.submit.require", found)
    monkeypatch.setattr("rollout.cluster.submit.connect", lambda _: state.client)
    return state


def test_the_script_ends_with_the_status_of_the_driver(cluster, folder, capsys):
    assert call(folder, "--env", "A=b", "--needs", "GPU=1", "--needs", "gamut_learner=0.01") == 7
    out, err = capsys.readouterr()
    assert out.endswith("log\n")
    assert "status 7" in err
    sent = cluster.client.sent
    assert sent["entrypoint"] == "python scripts/train.py"
    assert sent["entrypoint_num_gpus"] == 1
    assert sent["entrypoint_resources"] == {"gamut_learner": 0.01}
    assert "entrypoint_num_cpus" not in sent
    assert sent["runtime_env"]["env_vars"]["A"] == "b"
    # The new file says what is held back; said twice, the same folder would be another package.
    assert "excludes" not in sent["runtime_env"]
    assert (folder / ".rayignore").exists()


def test_without_waiting_the_job_is_named_and_how_it_is_stopped(cluster, folder, capsys):
    assert call(folder, "--no-wait") == 0
    out = capsys.readouterr().out
    name = cluster.client.sent["submission_id"]
    assert f"stop it by: ray job stop --address {HERE} {name}" in out
    assert cluster.client.parts, "its log was followed"


def test_who_no_longer_wants_to_follow_is_reported_how_to_stop_it(cluster, folder, capsys):
    cluster.token = object()
    cluster.client.parts = [["log\n", KeyboardInterrupt()]]
    assert call(folder) == 130
    err = capsys.readouterr().err
    name = cluster.client.sent["submission_id"]
    assert "the job continues" in err
    assert f"RAY_AUTH_MODE=token ray job stop --address {HERE} {name}" in err


def test_a_signal_ends_the_following(cluster, folder, capsys):
    async def tail(name):
        os.kill(os.getpid(), signal.SIGTERM)
        yield "log\n"

    cluster.client.tail_job_logs = tail
    assert call(folder) == 143
    assert "the job continues" in capsys.readouterr().err


def test_a_job_that_is_lost_from_sight_ends_early(cluster, folder, capsys, monkeypatch):
    monkeypatch.setattr(jobs, "_LOST_S", 0.05)
    cluster.client = FakeClient([[]] * 1000, statuses=[ConnectionError("no route")])
    assert call(folder) == 3
    assert "ended short: the cluster has not answered" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [RuntimeError("status code 413"), ValueError("bad env"), ConnectionError("cut")]
)
def test_a_job_that_the_cluster_refuses_is_input(cluster, folder, capsys, error):
    cluster.client.error = error
    assert call(folder) == 2
    assert f"the cluster refuses the job: {error}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ("GPU=2", "each driver needs 2 GPU, and the biggest machine of the cluster, 10.0.0.1,"),
        ("gamut_laerner=1", "nearest that exist: gamut_learner"),
    ],
)
def test_a_driver_that_fits_on_no_machine_is_not_sent(cluster, folder, capsys, needs, said):
    assert call(folder, "--needs", needs) == 2
    assert said in capsys.readouterr().err
    assert cluster.client.sent is None


def test_a_cluster_that_does_not_tell_its_machines_gets_the_job(cluster, folder):
    cluster.client.machines = None
    assert call(folder, "--needs", "GPU=2") == 7
    assert cluster.client.sent["entrypoint_num_gpus"] == 2


NO_AGENT = RuntimeError("status code 500: No available agent to submit job, please try again")


@pytest.mark.parametrize(("within_s", "status"), [(60.0, 7), (0.0, 2)])
def test_a_cluster_that_has_just_come_up_is_given_time(
    cluster, folder, capsys, monkeypatch, within_s, status
):
    monkeypatch.setattr(jobs, "_AGENT_S", within_s)
    monkeypatch.setattr(jobs, "_AGAIN_S", 0.0)
    tries, send = [], cluster.client.submit_job

    def submit_job(**given):
        tries.append(given)
        if len(tries) < 3:
            raise NO_AGENT
        send(**given)

    cluster.client.submit_job = submit_job
    assert call(folder) == status
    assert len(tries) == (3 if within_s else 1)
    if not within_s:
        assert "No available agent" in capsys.readouterr().err


# --- Resources ----------------------------------------------------------------------------------

GIB = 2.0**30


def node(name="a", group="", **resources):
    return Node(name, {"CPU": 8.0, "memory": 16 * GIB, **resources}, group)


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Resources(cpus=9), "needs 9 CPU, and the biggest machine of the cluster, a, has 8 CPU"),
        (Resources(memory_mb=20000), "needs 20000 MiB memory, and the biggest .* has 16384 MiB"),
        (Resources(gpus=1), "needs 1 GPU, and no machine of the cluster has any; add a machine"),
        (Resources(custom={"gamut_gmae": 1}), r"has any \(nearest that exist: gamut_game\)"),
        (Resources(custom={"gamut_game": 5}), "needs 5 gamut_game, .*, has 4 gamut_game"),
    ],
)
def test_more_than_the_biggest_machine_has_is_refused(needs, said):
    nodes = [node(gamut_game=4.0), node("b", CPU=2.0)]
    with pytest.raises(ConfigError, match=said):
        require_resources(needs, 1, nodes=nodes)


def test_what_no_single_machine_has_together_is_refused():
    nodes = [node("a", GPU=1.0), node("b", gamut_game=4.0)]
    needs = Resources(gpus=1, custom={"gamut_game": 1})
    with pytest.raises(
        ConfigError, match=r"on one machine, .*; they have: a .*1 GPU, .*0 gamut_game; b"
    ):
        require_resources(needs, 1, nodes=nodes)


def test_so_many_games_must_have_room_and_processors_are_shared():
    nodes = [node("a", gamut_game=4.0), node("b", gamut_game=3.0)]
    needs = Resources(cpus=8, custom={"gamut_game": 1})
    require_resources(needs, 7, nodes=nodes)
    with pytest.raises(ConfigError, match=r"8 games need .* each, and the cluster has room for 7"):
        require_resources(needs, 8, nodes=nodes)
    require_resources(Resources(), 1000, nodes=nodes)
    require_resources(Resources(custom={"gamut_game": 1 / 3}), 21, nodes=nodes)


def test_where_machines_can_be_added_there_is_room():
    grown = [node("a", group="games", gamut_game=4.0)]
    require_resources(Resources(custom={"gamut_game": 1}), 40, nodes=grown)
    with pytest.raises(ConfigError, match="has 4 gamut_game"):
        require_resources(Resources(custom={"gamut_game": 5}), 1, nodes=grown)


def test_a_cluster_without_machines_has_nothing():
    with pytest.raises(ConfigError, match="no machine of the cluster has any"):
        require_resources(Resources(), 1, nodes=[])


@pytest.mark.parametrize(
    ("bundles", "said"),
    [
        ([{"CPU": 1.0}, {"CPU": 9.0}], "each trial needs 9 CPU"),
        ([{"CPU": 1.0}] * 9, "each trial needs 9 CPU at once, and the cluster has 8 CPU"),
        ([{"CPU": 1.0, "gamut_gmae": 1.0}], "nearest that exist: gamut_game"),
        ([{"CPU": 1.0, "GPU": 1.0}], "no machine of the cluster has any"),
    ],
)
def test_what_must_have_room_at_once_is_refused_where_there_is_none(bundles, said):
    nodes = [Node(name, {"CPU": 4.0, "gamut_game": 2.0}) for name in "ab"]
    with pytest.raises(ConfigError, match=said):
        require_bundles(bundles, nodes=nodes, what="trial")


def test_bundles_that_fit_are_let_through():
    nodes = [Node(name, {"CPU": 4.0, "gamut_game": 1.0}) for name in "ab"]
    require_bundles([{"CPU": 1.0, "gamut_game": 1 / 3}] * 6, nodes=nodes, what="trial")
    grows = [Node("a", {"CPU": 4.0}, group="games")]
    require_bundles([{"CPU": 4.0}] * 9, nodes=grows, what="trial")


def test_actors_are_placed_by_what_their_games_need():
    needs = Resources(cpus=2, memory_mb=1000, gpus=0.25, custom={"gamut_game": 1})
    nodes = [node(gamut_game=8.0, GPU=2.0)]
    assert actor_options(needs, 2, instances=3, nodes=nodes) == {
        "num_cpus": 2.0,
        "memory": 3000 << 20,
        "num_gpus": 0.75,
        "resources": {"gamut_game": 3},
    }
    assert actor_options(Resources(), 1, nodes=[node()]) == {"num_cpus": 1.0, "memory": 500 << 20}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_cpus": 1.0, "resources": {"gamut_game": 1}}, "gamut_game: 1"),
        ({"num_cpus": 9.0, "memory": 20 * GIB, "num_gpus": 0}, "CPU: 9, memory: 20480 MiB"),
        ({"num_cpus": 0.0, "num_gpus": 0.5, "resources": {"disk": 1}}, "GPU: 0.5, disk: 1"),
    ],
)
def test_what_no_machine_has_is_named(options, said):
    nodes = [node(GPU=1.0), node("b", disk=1.0)]
    assert not any(fits(each, requested_resources(options)) for each in nodes)
    assert missing_resources(requested_resources(options), nodes) == said


def test_a_machine_in_use_has_what_it_has_in_all():
    asked = requested_resources(
        {"num_cpus": 8.0, "memory": GIB, "resources": {"gamut_game": 1 / 3}}
    )
    assert fits(node(gamut_game=0.3333), asked)


@pytest.mark.parametrize("actors", [1, 2, 3, 5, 16, 17, 40])
@pytest.mark.parametrize("sizes", [(2.0,), (8.0, 8.0), (1.0, 7.0, 3.0)])
def test_more_actors_than_fit_share_in_equal_parts_and_all_fit(actors, sizes):
    nodes = [node(str(n), CPU=cpus, memory=cpus * GIB) for n, cpus in enumerate(sizes)]
    needs = Resources(cpus=1.0, memory_mb=1000)
    options = actor_options(needs, actors, nodes=nodes)
    for resource, name in (("CPU", "num_cpus"), ("memory", "memory")):
        room = sum(int(each.has(resource) / options[name] + 1e-9) for each in nodes)
        assert room >= actors
    if actors <= sum(sizes):
        assert options["num_cpus"] == 1.0
    else:
        assert 0 < options["num_cpus"] < 1.0


def test_actors_share_only_machines_that_have_what_they_need():
    nodes = [node("games", CPU=2.0, gamut_game=8.0), node("big", CPU=64.0)]
    options = actor_options(Resources(custom={"gamut_game": 1}), 4, nodes=nodes)
    assert options["num_cpus"] == 0.5


def test_nothing_is_shared_where_machines_can_be_added():
    options = actor_options(Resources(cpus=4), 10, nodes=[node(group="games")])
    assert options["num_cpus"] == 4


# --- What a job gets -----------------------------------------------------------------------------


def test_packages_are_counted_without_looking_at_them():
    package = Package(Path("/x"), (("a", 10), ("b/c", 5)))
    assert package.size == 15 + 2 * (1 + 3) + 2 * 76 + 22
    assert RayJob("true", package).runtime_env() == {"working_dir": "/x", "env_vars": {}}


def test_a_job_is_told_the_commit_of_the_working_directory(folder, monkeypatch):
    monkeypatch.setattr("rollout.cluster.submit.working_commit", lambda folder: "abc-dirty")
    order_ = order(folder)
    assert order_.job.env["GAMUT_WORKING_COMMIT"] == "abc-dirty"
    assert any("differs from its commit" in note for note in order_.notes)


def test_a_job_is_told_the_commit_of_the_code_that_it_gets(folder, monkeypatch):
    monkeypatch.setattr("rollout.cluster.submit.commit_of", lambda root: f"abc of {root.name}")
    assert "GAMUT_COMMIT" not in order(folder).job.env, "a folder without our code"
    ours = folder / "rollout" / "cluster" / "submit.py"
    ours.parent.mkdir(parents=True)
    ours.touch()
    assert order(folder).job.env["GAMUT_COMMIT"] == f"abc of {folder.name}"
