"""A Ray that dies is noticed before Ray notices it, and named."""

import os
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from rollout.errors import RayUnavailable
from rollout.host import ray_watch
from rollout.host.ray_watch import conclude_if_lost, lost, lost_after, require_ray, watched

pytestmark = pytest.mark.process


@pytest.fixture
def part():
    """A process that stands for one of Ray's."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def cluster(gcs_address="127.0.0.1:1", session="/none", **processes):
    """A Ray whose node on this machine has started the given processes."""
    infos = {kind: [SimpleNamespace(process=process)] for kind, process in processes.items()}
    node = SimpleNamespace(all_processes=infos, gcs_address=gcs_address, raylet_socket_name="/none")
    node.get_session_dir_path = lambda: str(session)
    return SimpleNamespace(_private=SimpleNamespace(worker=SimpleNamespace(_global_node=node)))


@pytest.mark.parametrize(("kind", "name"), [("raylet", "raylet"), ("gcs_server", "head (GCS)")])
def test_a_part_that_is_killed_is_named_at_once(part, caplog, monkeypatch, tmp_path, kind, name):
    monkeypatch.setattr(ray_watch, "_POLL_S", 0.02)
    (tmp_path / "logs").mkdir()
    reason = "[2026-11-29 06:27:08,001 E 7 7] (raylet) agent_manager.cc:80: One agent failed"
    (tmp_path / "logs" / "raylet.out").write_text(f"[2026 I 7 7] begun\n{reason}\n")
    (tmp_path / "logs" / "runtime_env_agent.err").write_text("ImportError: aiohttp\n")
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        with watched(cluster(address, tmp_path, **{kind: part})):
            require_ray()
            part.kill()
            said = f"Ray's {name} on this machine, process {part.pid}, was killed by SIGKILL"
            assert lost(10.0) == said
            with pytest.raises(RayUnavailable) as caught:
                require_ray()
            assert str(caught.value) == said
            if kind == "gcs_server":
                require_ray(head=False)
            assert lost_after(ValueError("of ours")) == said
            ray_watch._current._thread.join(10.0)
            assert f"{said}; the run ends" in caplog.text
            assert f"raylet.out: {reason}" in caplog.text
            assert "runtime_env_agent.err: ImportError: aiohttp" in caplog.text
            assert "begun" not in caplog.text
    assert lost() == said, "for what ends after it"
    ray_watch.forget()
    assert lost() == ""


def test_logs_that_cannot_be_read_keep_no_run_from_ending(monkeypatch, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "raylet.out").write_text("of another user")

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(ray_watch.Path, "open", refuse)
    ray_watch.log_errors(tmp_path)


def test_a_part_that_is_stopped_is_given_time_to_be_continued(part, caplog, monkeypatch):
    for name, value in (("_POLL_S", 0.02), ("_WARN_S", 0.05), ("_GONE_S", 1.0)):
        monkeypatch.setattr(ray_watch, name, value)
    with watched(cluster(gcs_server=part)):
        said = f"Ray's head (GCS) on this machine, process {part.pid}, is stopped"
        part.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 10.0
        while f"{said}; it is given 1 s" not in caplog.text:
            assert time.monotonic() < end
            time.sleep(0.01)
        part.send_signal(signal.SIGCONT)
        time.sleep(1.1)
        assert lost() == ""
        part.send_signal(signal.SIGSTOP)
        assert lost(10.0).startswith(f"{said} for ")
    ray_watch.forget()


@pytest.mark.parametrize(("of_ray", "given"), [("", 1), ("1", 1), ("ten", 1), ("4", 3)])
def test_a_head_elsewhere_is_given_time_to_come_back(caplog, monkeypatch, of_ray, given):
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", of_ray)
    for name, value in (("_POLL_S", 0.02), ("_WARN_S", 0.05), ("_GONE_S", 1.0)):
        monkeypatch.setattr(ray_watch, name, value)
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
    with watched(cluster(f"127.0.0.1:{port}")):
        assert lost(10.0).startswith(f"Ray's head at 127.0.0.1:{port} does not answer (Connection")
    assert f"it is given {given} s to come back" in caplog.text
    ray_watch.forget()


def test_a_raylet_that_was_joined_is_found_by_its_socket(tmp_path):
    path = str(tmp_path / "raylet")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        assert ray_watch._listener(path) == os.getpid()


WAITS = """
import importlib.util, os, subprocess, sys, threading
from types import SimpleNamespace
from rollout.host import ray_watch
import stand_in as ray
sys.modules["ray"] = ray
ray_watch._POLL_S, ray_watch._GRACE_S = 0.02, 0.1
raylet = subprocess.Popen(["sleep", "600"])
infos = {"raylet": [SimpleNamespace(process=raylet)]}
node = SimpleNamespace(all_processes=infos, gcs_address="127.0.0.1:1", raylet_socket_name="")
node.get_session_dir_path = lambda: "/none"
ray._private = SimpleNamespace(worker=SimpleNamespace(_global_node=node))
with ray_watch.watched(ray), ray_watch.conclude_if_lost(lambda: "3 steps"):
    raylet.kill()
    ray.wait()
"""


def test_a_wait_for_a_ray_that_is_dead_ends(tmp_path):
    """Ctrl-C does not end it: Ray never looks for signals there."""
    package = tmp_path / "stand_in"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import threading\ndef wait():\n    threading.Event().wait(600)\n"
    )
    root = str(ray_watch.Path(ray_watch.__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{root}"}
    done = subprocess.run(
        [sys.executable, "-c", WAITS],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "was killed by SIGKILL. Saved: 3 steps; continue with --resume" in done.stderr


def test_without_ray_nothing_is_lost():
    with conclude_if_lost(lambda: ""):
        assert lost() == ""
    require_ray()
