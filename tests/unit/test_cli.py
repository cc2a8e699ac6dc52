import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.cli import Session, main
from rollout.config import RunConfig, Section, key
from rollout.configuration import document
from rollout.errors import BudgetExhausted, DatasetError, DiskFullError
from rollout.signals import Stop, Stopped
from tests.processes import killed_at_end


class Config(RunConfig):
    seed: int = key(0, "Seed of everything.")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    yield
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def run(function, *argv: str) -> int:
    return main(function, Config, "Does a thing.", ["--set", "output=x", *argv])


def test_the_function_gets_its_configuration_and_its_session(tmp_path: Path) -> None:
    seen = []
    (tmp_path / "c.yaml").write_text("seed: 1\noutput: y\n")

    def function(config: Config, session: Session) -> None:
        seen.append((config.seed, config.output, session.resume))

    arguments = ["--config", str(tmp_path / "c.yaml"), "--set", "seed=2", "seed=3", "--resume"]
    assert main(function, Config, "", arguments) == 0
    assert main(function, Config, "", ["--set", "seed=4", "--set", "output=z"]) == 0
    assert seen == [(3, Path("y"), True), (4, Path("z"), False)]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--set", "sede=3"], "error: --set: sede: unknown key. Nearest: seed."),
        (["--set", "seed"], "error: --set 'seed': expected KEY=VALUE"),
        (["--config", "/no/such.yaml"], "error: there is no file /no/such.yaml"),
        (["--confg", "x"], "error: unrecognized arguments: --confg x; see --help"),
        (["--config"], "error: argument --config: expected one argument; see --help"),
        (["--help", "lgo"], "error: unknown section or key 'lgo'. Nearest: log."),
    ],
)
def test_wrong_input_is_one_line_and_status_2(capsys, argv, message) -> None:
    assert run(lambda *_: pytest.fail("must not run"), *argv) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_configuration_that_comes_with_gamut_is_found_by_its_name_alone(
    tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "shipped" / "sweeps").mkdir(parents=True)
    (tmp_path / "shipped" / "sweeps" / "c.yaml").write_text("seed: 7\n")
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(document, "packaged_folder", lambda: tmp_path / "shipped")
    monkeypatch.chdir(tmp_path / "mine")
    seeds: list[int] = []

    def function(config: Config, session: Session) -> None:
        seeds.append(config.seed)

    assert run(function, "--config", "c.yaml") == 0
    assert f"using {tmp_path}/shipped/sweeps/c.yaml" in capsys.readouterr().err
    for mistyped in ("configs/c.yaml", "sweeps/c.yaml", "../mine/c.yaml"):
        assert run(function, "--config", mistyped) == 2
        assert f"there is no file {mistyped}" in capsys.readouterr().err
    (tmp_path / "mine" / "c.yaml").write_text("seed: 8\n")
    assert run(function, "--config", "c.yaml") == 0
    assert "comes with Gamut" not in capsys.readouterr().err
    assert seeds == [7, 8]


def test_wrong_input_found_later_is_one_line_too(capsys) -> None:
    def function(config: Config, session: Session) -> None:
        raise DatasetError("expected a,\ngot b")

    assert run(function) == 2
    assert capsys.readouterr().err == "error: expected a, got b\n"


def test_an_error_of_an_actor_is_shown_without_its_remote_traceback(capsys) -> None:
    class RemoteError(DatasetError):
        cause = DatasetError("the shard is damaged")

    def function(config: Config, session: Session) -> None:
        raise RemoteError("ray::Actor.append() (pid=3)\n  File ...")

    assert run(function) == 2
    assert capsys.readouterr().err == "error: the shard is damaged\n"


def test_a_run_that_ends_early_says_so_with_status_3(capsys) -> None:
    assert run(lambda *_: "3 of 5 episodes; the rest were lost") == 3
    assert capsys.readouterr().err == "ended short: 3 of 5 episodes; the rest were lost\n"

    def function(config: Config, session: Session) -> None:
        raise BudgetExhausted("slot 3 failed 5 times")

    assert run(function) == 3
    assert capsys.readouterr().err == "ended short: slot 3 failed 5 times\n"


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), DiskFullError("no room for the shard")],
)
def test_a_full_disk_ends_it_early_and_says_how_to_continue(capsys, error) -> None:
    def function(config: Config, session: Session) -> None:
        raise error

    assert run(function) == 3
    said = capsys.readouterr().err
    assert str(error) in said
    assert "--resume" in said


def test_any_other_error_of_the_system_is_a_bug() -> None:
    def function(config: Config, session: Session) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(PermissionError):
        run(function)


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run(lambda *_: 1 / 0)


def test_help_explains_every_key(capsys) -> None:
    assert run(lambda *_: pytest.fail("must not run"), "--help") == 0
    out = capsys.readouterr().out
    assert "Does a thing." in out
    assert "--resume" in out
    assert "  seed  (int, default 0)\n      Seed of everything." in out
    assert "log.level" not in out  # sections have one line each
    assert re.search(r"^  log +Log output\.$", out, re.MULTILINE)


class Endless(Section):
    seed: int = key(0, "Seed of everything.")


def test_a_script_without_an_output_has_nothing_to_continue(capsys) -> None:
    def function(config: Endless, session: Session) -> None:
        assert not session.resume
        raise Stopped(signal.SIGTERM)

    assert main(function, Endless, "", ["--help"]) == 0
    assert "--resume" not in capsys.readouterr().out
    assert main(function, Endless, "", ["--resume"]) == 2
    assert "unrecognized arguments: --resume" in capsys.readouterr().err
    assert main(function, Endless, "", []) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "stopped by SIGTERM\n"


def test_help_explains_a_section_or_everything(capsys) -> None:
    assert run(lambda *_: pytest.fail("must not run"), "--help", "log") == 0
    out = capsys.readouterr().out
    assert "  log.level  (" in out
    assert "Seed of everything." not in out
    assert run(lambda *_: pytest.fail("must not run"), "-h", "all") == 0
    out = capsys.readouterr().out
    assert "  log.level  (" in out
    assert "Seed of everything." in out


def test_help_works_with_a_wrong_file(capsys) -> None:
    assert run(lambda *_: None, "--help", "--config", "/no/such.yaml") == 0
    assert "Seed of everything." in capsys.readouterr().out


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_unwinds_the_function(capsys, signum, status) -> None:
    cleaned = []

    def function(config: Config, session: Session) -> None:
        try:
            os.kill(os.getpid(), signum)
            threading.Event().wait(10)
            pytest.fail("the signal did not come")
        finally:
            cleaned.append(session.stop.requested)

    assert run(function) == status
    assert cleaned == [True]
    assert (
        capsys.readouterr().err
        == f"stopped by {signal.Signals(signum).name}; continue with --resume\n"
    )


def test_a_sigterm_that_became_a_plain_interrupt_on_its_way_is_one() -> None:
    """As of Ray, which forgets what was raised while it waited."""

    def function(config: Config, session: Session) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(10)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    assert run(function) == 143


def test_a_deferred_signal_comes_at_the_end_of_the_block() -> None:
    seen = []

    def function(config: Config, session: Session) -> None:
        with session.stop.deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            assert session.stop.requested
            seen.append("went on")
        pytest.fail("must have been raised")

    assert run(function) == 143
    assert seen == ["went on"]


def test_a_second_signal_is_not_deferred() -> None:
    def twice() -> None:
        with stop.deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(5)
            pytest.fail("the second signal did not come")

    with Stop() as stop, pytest.raises(Stopped, match="SIGINT"):
        twice()


def test_an_error_in_a_deferred_block_is_not_hidden_by_the_signal() -> None:
    def fail() -> None:
        with stop.deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested
            raise ValueError("mine")

    with Stop() as stop, pytest.raises(ValueError, match="mine"):
        fail()


def test_the_handlers_can_be_put_back_after_ray_replaced_them() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stop() as stop:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
        stop.install()
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_rays_own_handler_counts_as_terminated() -> None:
    assert run(lambda *_: sys.exit(signal.SIGTERM)) == 143
    assert run(lambda *_: sys.exit(7)) == 1


def test_outside_the_main_thread_nothing_is_handled() -> None:
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(run(lambda *_: None)))
    thread.start()
    thread.join()
    assert statuses == [0]


@pytest.mark.process
def test_a_real_process_ends_with_the_status(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys, threading
        from rollout.cli import main
        from rollout.config import RunConfig

        class Config(RunConfig):
            crash: bool = False

        def work(config, session):
            if config.crash:
                raise RuntimeError("a bug")
            print("ready", flush=True)
            with session.stop.deferred():
                while not session.stop.requested:
                    threading.Event().wait(0.01)
            print("not reached", flush=True)

        if __name__ == "__main__":
            sys.exit(main(work, Config, "Waits."))
        """)
    )
    command = [sys.executable, str(script), "--set", "output=x"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    started = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)
    with killed_at_end(started) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        out, error = process.communicate(timeout=300)
    assert (process.returncode, out) == (143, "")
    assert error == "stopped by SIGTERM; continue with --resume\n"
    crashed = subprocess.run(
        [*command, "crash=true"], capture_output=True, text=True, env=environment, check=False
    )
    assert crashed.returncode == 1
    assert "RuntimeError: a bug" in crashed.stderr
    assert "Traceback" in crashed.stderr
