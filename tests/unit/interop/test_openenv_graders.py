"""The graders find what they look for, in servers that do it wrong."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from rollout.api import Limits, Task
from rollout.config import HostConfig, StateSetConfig
from rollout.interop.games import Games
from rollout.interop.listening import Listener
from rollout.interop.openenv_graders import CHECKS, Server, main, run
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator


class Ending:
    """Ends a server at once when it is told to."""

    def __init__(self):
        self.told = threading.Event()

    def begins(self):
        return self.told.is_set()

    def due(self, playing):
        return True


@contextmanager
def served(bridge, *, games=2, states=None):
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=30))
    ending, host = Ending(), HostConfig(isolation="in_process")
    with (
        Listener("127.0.0.1", 0, 50, 10_000) as listener,
        Games(bridge, task, games=games, host=host, state_set=states) as played,
    ):
        serve = threading.Thread(
            target=listener.serve,
            args=(played, "fake", None),
            kwargs={"idle_s": 60, "ending": ending},
        )
        serve.start()
        try:
            yield listener.url
        finally:  # a test that fails must not leave the thread, which would keep pytest alive
            ending.told.set()
            serve.join(20)
        assert not serve.is_alive()


def found(url):
    return {
        check_id.partition(".")[2]: run(check_id, Server(url, most=1.0)).status
        for check_id in CHECKS
    }


def test_a_good_server_passes(tmp_path, capsys):
    with served(FakeBridge(slip=0.2)) as url:
        assert found(url) == dict.fromkeys(found(url), "pass") | {"oracle_max": "skip"}
        main([url])
        assert "SKIP  semantic.floor_gap" in capsys.readouterr().out
        # From one cell to the next to its east, a move of the oracle's.
        plan = {
            "seed": 1,
            "options": {"state": {"map": 0, "colour": "red", "start": 0, "target": 1}},
        }
        file = tmp_path / "plan.json"
        for moves, status in ((20, "PASS"), (0, "FAIL")):
            file.write_text(json.dumps({"reset": plan, "actions": [{"move": 4}] * moves}))
            main([url, "--oracle", str(file), "--most", "0.8"])
            assert f"{status}  semantic.oracle_max" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bridge", "options", "fails"),
    [
        (FakeBridge(unseeded=True, slip=0.9), {}, {"seed_control", "episode_determinism"}),
        (FakeBridge(slip=0), {"states": StateSetConfig(states=(17,))}, {"seed_control"}),
    ],
)
def test_a_wrong_server_fails(bridge, options, fails):
    with served(bridge, **options) as url:
        status = found(url)
        assert fails <= {name for name, status in status.items() if status == "fail"}


def test_one_session_is_enough_for_all_but_isolation():
    with served(FakeBridge(), games=1) as url:
        status = found(url)
    assert status.pop("episode_isolation") == "skip"
    assert "error" not in status.values()


def test_a_key_that_names_the_answer_is_found(monkeypatch):
    with served(replace(FakeBridge(), with_details=True)) as url:
        server = Server(url)
        assert run("semantic.no_solution_leakage", server).status == "pass"
        request = Server.request

        def leaking(self, path, data=None):
            return {**request(self, path, data), "expected": [{"Task_Solution": 1}]}

        monkeypatch.setattr(Server, "request", leaking)
        assert run("semantic.no_solution_leakage", server).status == "fail"


def test_no_server_is_an_error():
    assert run("runtime.seed_control", Server("http://127.0.0.1:9")).status == "error"
