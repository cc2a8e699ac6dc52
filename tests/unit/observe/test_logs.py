import contextvars
import io
import logging
import re
import threading
from functools import partial
from pathlib import Path

import pytest

from rollout.api import EpisodeResult, Loss, Outcome, Start, State
from rollout.observe.logs import about, bound_fields, log_losses, log_notices, set_up_logging

logger = logging.getLogger("rollout.test")


def test_a_record_carries_what_it_is_about(capsys, tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "run.log")
    with about(run="r1", instance=3), about(slot=0, instance=4):
        logger.warning("no answer after %d s", 5)
    logger.info("done")
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d WARNING no answer after 5 s \[run=r1 instance=4 slot=0\]", first
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d INFO done", second)
    first, second = (tmp_path / "run.log").read_text().splitlines()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"
    tail = r"WARNING rollout\.test no answer after 5 s \| run=r1 instance=4 slot=0"
    assert re.fullmatch(f"{time} {tail}", first)
    assert re.fullmatch(f"{time} INFO rollout.test done", second)


def test_what_a_game_says_of_an_end_is_reported(tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "run.log")
    ended = partial(EpisodeResult, Start(State(7, {}), 1, episode=17), 3, 2)
    told = ended("terminated", Outcome.FAILURE, 31, 1.0, 0.0, 2.0, notice="a0 was removed: lag")
    quiet = ended("truncated", Outcome.RUNNING, 90, 1.0, 0.0, 2.0)
    log_notices(logger, [told, quiet])
    (line,) = (tmp_path / "run.log").read_text().splitlines()
    assert line.endswith(
        "WARNING rollout.test episode ended after 31 steps: a0 was removed: lag"
        " | instance=3 slot=2 episode=17"
    )


def test_a_loss_says_where_it_happened(tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "run.log")
    losses = [
        Loss(Start(State(7, {}), 1, episode=17), 3, 2, "step", "it hangs", 40),
        Loss(Start(State(8, {}), 1, episode=18), 4, 0, "reset", "it died", 0),
    ]
    with about(run="r1"):
        log_losses(logger, losses)
    first, second = (tmp_path / "run.log").read_text().splitlines()
    assert first.endswith(
        "WARNING rollout.test episode lost in step after 40 steps: it hangs"
        " | run=r1 instance=3 slot=2 episode=17"
    )
    assert second.endswith("it died | run=r1 instance=4 slot=0 episode=18")


def test_the_terminal_counts_what_repeats_and_the_file_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_logging("info", tmp_path / "run.log")
    start = Start(State(7, {}), 1, episode=17)

    def lose(count: int, reason: str) -> None:
        log_losses(
            logger, [Loss(start, 3, 2, "step", f"{reason} [pid {n}]", n) for n in range(count)]
        )

    lose(100, "it died with status 3")
    lose(1, "it hangs")
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 6
    assert "it hangs" in shown[-1]
    monkeypatch.setattr("rollout.observe.logs._EVERY_S", 0.0)
    lose(1, "it died with status 4")
    (line,) = capsys.readouterr().err.splitlines()
    assert "(95 more like it in " in line
    assert len((tmp_path / "run.log").read_text().splitlines()) == 102


def test_values_that_would_be_misread_are_quoted(tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "run.log")
    with about(goal='say "hi" = hello', empty="", line="a\nb"):
        logger.info("x")
    (line,) = (tmp_path / "run.log").read_text().splitlines()
    assert line.endswith(r'| goal="say \"hi\" = hello" empty="" line="a\nb"')


def test_what_is_bound_ends_with_the_block() -> None:
    with pytest.raises(ValueError, match="x"), about(slot=1):
        raise ValueError("x")
    assert bound_fields() == {}


def test_threads_do_not_share_what_is_bound() -> None:
    seen = []
    with about(slot=1):
        context = contextvars.copy_context()
        threads = [
            threading.Thread(target=lambda: seen.append(dict(bound_fields()))),
            threading.Thread(target=lambda: seen.append(context.run(lambda: dict(bound_fields())))),
        ]
        for thread in threads:
            thread.start()
            thread.join()
    assert seen == [{}, {"slot": 1}]


def test_setting_up_again_replaces(capsys, tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "a.log")
    set_up_logging("debug", tmp_path / "b.log")
    logger.debug("once")
    assert capsys.readouterr().err.count("once") == 1
    assert (tmp_path / "a.log").read_text() == ""
    assert "once" in (tmp_path / "b.log").read_text()


def test_levels_are_for_our_own_packages(capsys) -> None:
    set_up_logging("info")
    logging.getLogger("someone.else").info("chatter")
    logging.getLogger("someone.else").warning("trouble")
    logger.debug("detail")
    shown = capsys.readouterr().err
    assert "trouble" in shown
    assert "chatter" not in shown
    assert "detail" not in shown


def test_the_terminal_is_regardless_of_stderr_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up_logging("info")
    later = io.StringIO()
    monkeypatch.setattr("sys.stderr", later)
    logger.info("moved")
    assert "moved" in later.getvalue()


def test_an_exception_is_kept(tmp_path: Path) -> None:
    set_up_logging("info", tmp_path / "run.log")
    try:
        1 / 0  # noqa: B018 - raises
    except ZeroDivisionError:
        logger.exception("oops")
    assert "ZeroDivisionError" in (tmp_path / "run.log").read_text()
