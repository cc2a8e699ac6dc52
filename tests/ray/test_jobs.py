"""Jobs on a cluster with tokens: sent, followed, stopped, refused; what they leave behind."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from benchmarks.faults.cluster import HEAD_PORTS, NODE_PORTS, RAY, free_ports
from rollout.cluster.addresses import require_dashboard
from rollout.cluster.jobs import connect
from rollout.errors import ConfigError
from rollout.train.checkpoint import find_checkpoint
from tests.ray.training import ROOT, SMALL, merged, wait_for, write_config

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SUBMIT = ROOT / "scripts" / "submit.py"
SAID = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS", "GAMUT_RUNS_DIR")
PORTS = (*HEAD_PORTS, *NODE_PORTS)


def end_tree(process):
    """Ends a process and all that it has started, however it was started; no other Ray's."""
    tree = psutil.Process(process.pid)
    alive = [*tree.children(recursive=True), tree]
    process.terminate()
    _, alive = psutil.wait_procs(alive, timeout=15)
    for each in alive:
        each.kill()
    psutil.wait_procs(alive, timeout=15)
    process.wait(timeout=15)


@pytest.fixture(scope="module")
def cluster():
    """A head with a token, on ports of its own; ``env`` is that of a user who has the token."""
    folder = Path(tempfile.mkdtemp(prefix="gj-", dir="/tmp"))  # sockets allow no long paths
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    bare = {name: value for name, value in os.environ.items() if name not in SAID}
    bare |= {"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    env = {**bare, "RAY_AUTH_TOKEN_PATH": str(token)}
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    command = [
        *(*RAY, "start", "--head", "--block", "--disable-usage-stats"),
        *("--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--temp-dir={folder}/ray"),
        *("--num-cpus=2", "--num-gpus=0", "--object-store-memory=100000000"),
        *("--min-worker-port=0", "--max-worker-port=0", '--resources={"gamut_game": 4}'),
        *(f"{name}={port}" for name, port in ports.items()),
    ]
    with (folder / "head.log").open("w") as log:
        head = subprocess.Popen(
            command,
            env={**env, "RAY_AUTH_MODE": "token"},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{ports['--dashboard-port']}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in SAID:
                patch.delenv(name, raising=False)
            patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
            found = wait_for_dashboard(url, head, folder / "head.log")
            client = connect(found)
        address = f"127.0.0.1:{ports['--port']}"
        yield SimpleNamespace(
            url=url, address=address, env=env, bare=bare, client=client, token=token
        )
    finally:
        end_tree(head)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_dashboard(url, head, log):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and head.poll() is None:
        with contextlib.suppress(ConfigError):
            return require_dashboard(url)
        time.sleep(0.5)
    raise AssertionError(f"the head did not come up: {log.read_text()}")


def submitting(cluster, *arguments, env=None):
    return subprocess.Popen(
        [sys.executable, str(SUBMIT), "--address", cluster.url, *map(str, arguments)],
        env=env or cluster.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def submit(cluster, *arguments, env=None, timeout=600):
    with submitting(cluster, *arguments, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return SimpleNamespace(status=process.returncode, out=out, err=err)


def named(out):
    """The name of the job that a submission has told."""
    return out.split("job ", 1)[1].split()[0]


def job_of(process):
    """The name of a job whose log begins to come."""
    seen = ""
    for line in process.stdout:
        seen += line
        if line.startswith("sent; "):
            return named(seen)
    raise AssertionError(f"it was not sent: {seen} {process.stderr.read()}")


def test_the_log_is_followed_and_the_status_is_that_of_the_driver(cluster, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "seven.py").write_text(
        "import os, sys\n"
        "print('here', sorted(os.listdir()))\n"
        "print('runs', os.environ['GAMUT_RUNS_DIR'], os.environ['RAY_JOB_STOP_WAIT_TIME_S'])\n"
        "sys.exit(7)\n"
    )
    (folder / "held_back.mp4").write_text("film")
    done = submit(cluster, "--working-dir", folder, "--", "python", "seven.py")
    assert done.status == 7, done.err
    assert "here ['.rayignore', 'seven.py']" in done.out
    assert f"runs {folder} 60" in done.out
    assert done.err.splitlines()[-1] == f"job {named(done.out)} failed, status 7"
    assert cluster.client.get_job_info(named(done.out)).driver_exit_code == 7


def test_a_driver_for_which_there_is_no_machine_is_not_sent(cluster, tmp_path):
    before = len(cluster.client.list_jobs())
    done = submit(cluster, "--working-dir", tmp_path, "--needs", "gamut_gaem=1", "--", "true")
    assert done.status == 2
    assert "no machine of the cluster has any (nearest that exist: gamut_game)" in done.err
    assert len(cluster.client.list_jobs()) == before
    line = "echo done && true"
    done = submit(cluster, "--working-dir", tmp_path, "--needs", "gamut_game=1", "--", line)
    assert done.status == 0, done.err
    assert "\ndone\n" in done.out


def test_who_stops_following_leaves_the_job_running(cluster, tmp_path):
    with submitting(cluster, "--working-dir", tmp_path, "--", "sleep", "100") as process:
        name = job_of(process)
        assert wait_for(lambda: cluster.client.get_job_info(name).status == "RUNNING", 600)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert f"RAY_AUTH_MODE=token ray job stop --address {cluster.url} {name}" in err
    assert len(err.splitlines()) == 1
    assert cluster.client.get_job_info(name).status == "RUNNING"
    cluster.client.stop_job(name)
    assert wait_for(lambda: cluster.client.get_job_info(name).status == "STOPPED", 600)


@pytest.mark.long
def test_a_training_that_is_stopped_has_saved_and_ends_with_143(cluster, tmp_path):
    """The shell tells the training's own status, since Ray keeps none of a job that was stopped.

    It takes its time for it, more than the three seconds that Ray would give.
    """
    write_config(tmp_path, merged(SMALL, {"checkpoint": {"every": 10**6}}), output="jobs/small")
    train = f"python scripts/train.py --config {tmp_path}/config.yaml --set ray.address=null"
    line = f"trap : TERM; {train}; code=$?; sleep 5; echo training ended with $code; exit $code"
    run = tmp_path / "runs" / "jobs" / "small"
    arguments = ("--working-dir", ROOT, "--runs-dir", tmp_path / "runs", "--", line)
    with submitting(cluster, *arguments) as process:
        try:
            name = job_of(process)
            metrics = run / "metrics.jsonl"
            trains = wait_for(
                lambda: metrics.exists() and "train/update" in metrics.read_text(), 120
            )
            assert trains, cluster.client.get_job_logs(name)
            cluster.client.stop_job(name)
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 143, err
    assert "training ended with 143" in out
    assert "stopped by SIGTERM; continue with --resume" in out
    assert err.splitlines()[-1] == f"job {name} stopped, status 143"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert find_checkpoint(run).about["update"] == summary["results"]["updates"] >= 1


def plain(cluster, *arguments, env_vars=None):
    """The command line of Ray itself, which needs to be told the mode."""
    runtime = json.dumps({"env_vars": env_vars or {}})
    options = ["--address", cluster.url, "--working-dir", str(ROOT), "--runtime-env-json", runtime]
    return subprocess.run(
        ["ray", "job", "submit", *options, "--", *arguments],
        env={**cluster.env, "RAY_AUTH_MODE": "token"},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.long
def test_plain_ray_job_submit_trains_as_well(cluster, tmp_path):
    path = write_config(tmp_path, SMALL, output="small", env_steps=128)
    runs = {"GAMUT_RUNS_DIR": str(tmp_path / "runs")}
    command = ("python", "scripts/train.py", "--config", str(path))
    done = plain(cluster, *command, env_vars=runs)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "runs" / "small" / "summary.json").read_text())
    assert summary["status"] == "done"
    assert summary["results"]["env_steps"] == 128


@pytest.mark.long
def test_a_relative_output_that_would_go_away_with_the_job_is_refused(cluster, tmp_path):
    path = write_config(tmp_path, SMALL, output="small", env_steps=128)
    done = plain(cluster, "python", "scripts/train.py", "--config", str(path))
    assert done.returncode == 1
    assert "goes away with the job; give an absolute output, or set GAMUT_RUNS_DIR" in done.stdout
    assert "exit code 2" in done.stdout + done.stderr


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_nothing_is_sent_and_it_is_reported_in_a_line(cluster, tmp_path, token):
    env = cluster.bare if token is None else {**cluster.bare, "RAY_AUTH_TOKEN": token}
    before = len(cluster.client.list_jobs())
    done = submit(cluster, "--working-dir", tmp_path, "--", "true", env=env)
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    said = "asks for a token, and there is none" if token is None else "refuses the token"
    assert said in done.err
    assert len(cluster.client.list_jobs()) == before


@pytest.mark.parametrize("token", [pytest.param(None, marks=pytest.mark.long), "wrong"])
def test_a_program_without_the_token_gets_one_line(cluster, tmp_path, token):
    env = cluster.bare if token is None else {**cluster.bare, "RAY_AUTH_TOKEN": token}
    settings = merged(SMALL, {"ray": {"address": cluster.address}, "runners": 1})
    path = write_config(tmp_path, settings, env_steps=128)
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "train.py"), "--config", str(path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    said = "asks for a token, and there is none" if token is None else "refuses the token"
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: ray.address={cluster.address} {said}")
    assert "Traceback" not in done.stderr


def test_needs_are_checked_against_the_machines_of_the_cluster(cluster):
    """The program joins by address, with the token; it asks the cluster for the mode."""
    code = f"""
from rollout.api import Resources
from rollout.errors import ConfigError
from rollout.host.session import ray_session
with ray_session({cluster.address!r}):
    import ray
    from rollout.cluster.resources import actor_options, require_resources
    needs = Resources(cpus=1.0, memory_mb=100, custom={{"gamut_game": 1}})
    require_resources(needs, 4)
    options = actor_options(needs, 3)
    where = ray.remote(**options)(lambda: ray.get_runtime_context().get_assigned_resources())
    print(options, ray.get(where.remote(), timeout=600))
    for bad in (Resources(cpus=3), Resources(custom={{"gamut_gmae": 1}})):
        try:
            require_resources(bad, 1)
        except ConfigError as error:
            print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=cluster.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    placed, processors, unknown = done.stdout.splitlines()
    assert "'num_cpus': 0.6666" in placed
    assert "'gamut_game': 1.0" in placed
    assert "has 2 CPU; ask for less, or add a bigger machine" in processors
    assert "nearest that exist: gamut_game" in unknown
