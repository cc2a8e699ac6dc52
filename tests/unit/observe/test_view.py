"""``scripts/watch.py``: what is read from a run directory, and how it looks on a screen."""

import json
import os
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from rollout.commands.watch import main
from rollout.errors import RunDirectoryError
from rollout.observe.metrics import Metrics
from rollout.observe.run_status import duration, read_status
from rollout.observe.view import screen
from tests.processes import killed_at_end

ROOT = Path(__file__).parents[3]
NOW = 1_800_000_000.0
DEAD_PID = 2**22 + 1  # above what Linux gives


def iso(when):
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds")


class Run:
    """A run directory in the making; times are seconds before ``NOW``."""

    def __init__(self, folder, kind="TrainConfig", *, began=600, pid=None, host=None):
        self.folder, self.kind, self.sessions = folder, kind, []
        folder.mkdir(parents=True)
        self.begin(began, pid=pid, host=host)

    def begin(self, ago, *, pid=None, host=None):
        pid = os.getpid() if pid is None else pid
        host = socket.gethostname() if host is None else host
        self.sessions.append({"started": iso(NOW - ago), "pid": pid, "host": host})
        about = {"run_id": "20270115-000000-abcdef", "kind": self.kind, "sessions": self.sessions}
        self.write("run.json", json.dumps(about), ago)

    def write(self, name, text, ago):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (NOW - ago, NOW - ago))

    def config(self, text):
        self.write("config.yaml", text, 600)

    def lines(self, *lines):
        """Appends lines of metrics: seconds before ``NOW``, steps, and values."""
        times = iter([NOW])  # the writer looks at the clock when it opens the file
        constants = {"resume_count": len(self.sessions) - 1}
        path = self.folder / "metrics.jsonl"
        with Metrics(path, constants=constants, clock=lambda: next(times)) as metrics:
            for ago, steps, values in lines:
                times = iter([NOW - ago])
                metrics.write(steps, values)
        os.utime(path, (NOW - lines[-1][0],) * 2)

    def log(self, *records, ago=30):
        self.write("run.log", "".join(f"{record}\n" for record in records), ago)

    def end(self, status, ago=5):
        summary = {"status": status, "resume_count": len(self.sessions) - 1}
        self.write("summary.json", json.dumps(summary), ago)

    def look(self, **more):
        return read_status(self.folder, now=NOW, **more)

    def screen(self, **more):
        return shown(self.look(), **more)


def shown(look, *, width=80, height=None, color=False):
    """The screen of a job as text."""
    console = Console(width=width, force_terminal=color, color_system="standard" if color else None)
    with console.capture() as captured:
        console.print(screen(look, console, height=height))
    return "\n".join(row.rstrip() for row in captured.get().splitlines())


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "first")


def told(when, text, level="WARNING"):
    return f"{iso(when).replace('+00:00', '.123+00:00')} {level} rollout.collect {text}"


FULL = {
    "episodes": 2768,
    "lost": 3,
    "lost/step": 2,
    "lost/reset": 1,
    "rate/steps_per_s": 121.4,
    "episode/return": 5.294,
    "episode/length": 175.04,
    "episode/success": 0.25,
    "train/update": 123,
    "train/staleness": 1,
    "train/policy_loss": -0.00304,
    "train/value_loss": 0.0255,
    "games/instances": 64,
    "games/ready": 0.953125,
    "games/memory_mb": 12345.6,
    "queue/waiting": 12,
    "restarts/failed": 4,
    "restarts/recycled": 0,
    "seconds/sample": 30.8,
}


def test_a_training_run_on_one_screen(run):
    run.config("env_steps: 1000000\n")
    run.lines((590, 100_000, {}), (90, 300_000, {}), (3, 503_808, FULL))
    run.write("checkpoints/00000100/about.json", "{}", 629)
    os.utime(run.folder / "checkpoints" / "00000100", (NOW - 629,) * 2)
    run.log(told(NOW - 50, "episode lost in step: it hangs | run=x instance=3 slot=0"), ago=4)
    assert run.screen().splitlines() == [
        "first  train  running" + " " * 37 + "20270115-000000-abcdef",
        str(run.folder)[:80] if len(str(run.folder)) <= 80 else str(run.folder)[:79] + "…",
        f"process {os.getpid()} on {socket.gethostname()}, last heard of 3s ago",
        "━" * 15 + " " * 17 + "50.3%  left 12m01s  session 1, up 10m00s",
        "steps       503,808   now 121/s   mean 688/s",
        "episodes    2,768   lost 3 (2 in step, 1 in reset)",
        "return      5.294   length 175.0   success 0.250",
        "updates     123   staleness 1   sample s 30.8",
        "losses      policy -0.00304   value 0.0255",
        "games       61 of 64 up   waiting 12   memory MB 12,346",
        "restarts    failed 4",
        "checkpoint  00000100, 10m29s old",
        "",
        "last warnings (UTC)",
        f"{iso(NOW - 50)[11:19]}  [instance=3 slot=0] episode lost in step: it hangs",
    ]


def test_calls_of_models_are_shown_beside_the_limits_of_the_run(run):
    spent = {"calls": 240, "tokens": 130_500, "usd": 1.234}
    calls = {"models": {"in_flight": 12, "tokens_per_s": 1530.4, "spent": spent}}
    run.lines((3, 100, {**calls, "models/limit": {"calls": None, "tokens": None, "usd": 5.0}}))
    shown = run.screen().splitlines()
    assert "calls now  in flight 12   tokens/s 1,530" in shown
    assert "spent      calls 240   tokens 130,500   USD 1.23 of 5.00" in shown
    run.end("done")
    shown = run.screen()
    assert "in flight" not in shown
    assert "USD 1.23 of 5.00" in shown


@pytest.mark.parametrize(
    ("known", "shown"),
    [({}, "USD unknown"), ({"usd": 1.234}, "USD >=1.23")],
)
def test_a_price_that_is_not_known_is_not_shown_as_zero(run, known, shown):
    models = {"spent": {"calls": 3, "tokens": 90, **known}, "unpriced": 2}
    calls = {"": 3, "unpriced": 2, **known}
    values = {f"calls/{name}".rstrip("/"): value for name, value in calls.items()}
    run.lines((3, 100, {**values, "models": models}))
    lines = run.screen().splitlines()
    assert f"models  calls 3   {shown}" in lines
    assert f"spent   calls 3   tokens 90   {shown}" in lines


def test_a_run_that_has_measured_nothing_yet(run):
    look = run.look()
    assert (look.state, look.done, look.left, look.values) == ("silent", None, "", {})
    assert " ?%  session 1" in run.screen()
    assert read_status(run.folder, now=NOW - 570).state == "running"


def test_the_share_that_lines_tell_goes_before_the_budget(run):
    run.config("env_steps: 1000\nepisodes: 10\n")
    run.lines((100, 100, {"done": 0.2}), (0, 900, {"done": 0.3}))
    assert (run.look().done, run.look().left) == (0.3, "11m40s")


@pytest.mark.parametrize(
    "config", ["env_steps: null\n", "env_steps: [", "episodes: x\n", "\udcff", "3\n", ""]
)
def test_without_a_budget_the_share_is_not_known(run, config):
    (run.folder / "config.yaml").write_bytes(config.encode(errors="surrogateescape"))
    run.lines((100, 100, {}), (0, 900, {}))
    assert (run.look().done, run.look().left) == (None, "")
    assert run.look().steps_per_s == 8.0


def test_the_budget_nearest_to_its_end_counts(run):
    run.config("env_steps: 1000\nepisodes: 10\n")
    run.lines((100, 100, {"episodes": 1}), (0, 200, {"episodes": 9}))
    assert run.look().done == 0.9


@pytest.mark.parametrize("status", ["done", "interrupted", "ended short"])
def test_the_summary_says_how_it_ended(run, status):
    run.lines((100, 100, {"done": 0.1}), (50, 900, {"done": 0.4}))
    run.end(status, ago=40)
    look = run.look()
    assert (look.state, look.ended, look.left) == (status, True, "")
    assert look.done == (1.0 if status == "done" else 0.4)
    assert f"first  train  {status}" in run.screen()
    assert "ended 40s ago" in run.screen()
    assert "took 9m20s" in run.screen()


def test_the_summary_of_a_session_before_says_nothing(run):
    run.lines((500, 100, {"done": 0.1}), (400, 200, {"done": 0.2}))
    run.end("interrupted", ago=400)
    run.begin(100)
    run.lines((50, 300, {"done": 0.3}), (10, 700, {"done": 0.5}))
    look = run.look()
    assert (look.state, look.session, look.up_s) == ("running", 1, 100.0)
    # The rate and the time left are those of this session.
    assert (look.steps_per_s, look.left) == (10.0, "1m40s")


def test_a_job_that_was_killed_is_reported(tmp_path):
    run = Run(tmp_path / "killed", pid=DEAD_PID)
    run.lines((200, 1, {}), (30, 2, {}))
    assert run.look().state == "gone"
    screen = run.screen()
    assert f"last heard of 30s ago: process {DEAD_PID} on " in screen
    assert "is gone; continue with --resume" in screen


@pytest.mark.process
def test_a_process_that_nobody_buried_is_gone(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        run = Run(tmp_path / "zombie", pid=child.pid)
        run.lines((30, 2, {}))
        assert run.look().state == "gone"
    finally:
        child.wait()


def test_its_files_may_come_after_its_process(tmp_path):
    run = Run(tmp_path / "ends", pid=DEAD_PID)
    run.lines((30, 1, {}), (5, 2, {}))
    assert run.look().state == "running"


def test_a_job_elsewhere_can_only_be_silent(tmp_path):
    run = Run(tmp_path / "elsewhere", pid=DEAD_PID, host="another-machine")
    run.lines((51, 1, {}), (50, 2, {}))
    assert run.look().state == "running"
    assert read_status(run.folder, now=NOW + 30).state == "silent"
    screen = shown(read_status(run.folder, now=NOW + 30))
    assert (
        f"last heard of 1m20s ago, which is long: process {DEAD_PID} on another-machine" in screen
    )


def test_who_writes_rarely_is_silent_later(run):
    run.lines((700, 1, {}), (400, 2, {}), (100, 3, {}))
    assert run.look().state == "running"
    assert read_status(run.folder, now=NOW + 1500).state == "silent"


def test_a_log_that_grows_is_a_sign_of_life(run):
    run.lines((400, 1, {}), (399, 2, {}))
    assert run.look().state == "silent"
    run.log("progress", ago=7)
    assert (run.look().state, run.look().silent_s) == ("running", 7.0)


def bytes_read():
    """What this process has read so far, in bytes."""
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


def test_only_the_ends_of_long_files_are_read(run):
    """Also the first line of a session is found without reading all before it."""
    count, session = 30_000, 3
    path = run.folder / "metrics.jsonl"
    with path.open("w") as file:
        for i in range(count):
            line = {"time": NOW - count + i, "env_steps": 10 * i, "resume_count": i // 10_000}
            file.write(json.dumps({**line, "text": "x" * 200}) + "\n")
    for _ in range(session - 1):
        run.begin(100)
    before = bytes_read()
    look = run.look()
    assert bytes_read() - before < path.stat().st_size / 10
    assert look.steps_per_s == 10.0
    assert look.values["env_steps"] == 10 * (count - 1)


@pytest.mark.parametrize("session", [0, 1, 2, 4])
def test_the_first_line_of_a_session_is_the_first(run, session):
    """Whichever session, one of a single line and one without lines among them."""
    lengths = [700, 1, 900, 0, 600]
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    steps = 0
    with (run.folder / "metrics.jsonl").open("w") as file:
        for number, length in enumerate(lengths[: session + 1]):
            for _ in range(length):
                # Steps per second differ by session, so that a wrong first line would show.
                moment = NOW - 5000 + steps
                line = {"time": moment, "env_steps": steps * (number + 1), "resume_count": number}
                file.write(json.dumps({**line, "text": "x" * 150}) + "\n")
                steps += 1
    for _ in range(session):
        run.begin(100)
    rate = run.look().steps_per_s
    assert rate == (None if lengths[session] == 1 else session + 1)
    assert begins[session] < steps


def test_a_line_that_is_being_written_and_a_damaged_one_are_left_out(run):
    run.lines((20, 5, {}), (10, 6, {}))
    with (run.folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"env_steps": \n[1]\n{"time": 1, "env_st')
    os.utime(run.folder / "metrics.jsonl", (NOW - 10,) * 2)
    assert run.look().values["env_steps"] == 6
    assert "2 of the last lines of metrics.jsonl are damaged" in run.screen()


def test_the_last_warnings_are_shown_without_what_hangs_on_to_them(run):
    records = [told(NOW - 500 + i, f"lost number {i}") for i in range(9)]
    records += [told(NOW - 5, "all is well", "INFO"), "Traceback (most recent call last):"]
    records += [told(NOW - 4, "\x1b[2Jclears ä the screen", "ERROR")]
    run.log(*records)
    rows = run.screen().splitlines()
    assert [row.split("  ", 1)[1] for row in rows[-5:]] == [
        "lost number 5",
        "lost number 6",
        "lost number 7",
        "lost number 8",
        r"\x1b[2Jclears ä the screen",
    ]


def test_a_long_warning_is_wrapped_and_the_newest_stay_where_there_is_no_room(run):
    run.log(*[told(NOW - 3 + i, f"some words {i} " * 9 + "| run=x") for i in range(3)])
    rows = run.screen().splitlines()
    assert rows[-2].startswith(f"{iso(NOW - 1)[11:19]}  some words 2")
    assert rows[-1].startswith(" " * 10 + "words 2")
    rows = run.screen(height=9).splitlines()
    assert len(rows) <= 9
    assert rows[-2].startswith(f"{iso(NOW - 1)[11:19]}  some words 2")


def test_a_bar_in_a_warning_is_no_end_of_it(run):
    run.log(told(NOW, "a | b=c | d | run=x slot=0"), told(NOW, "e | f"))
    assert [(w.text, w.about) for w in run.look().warnings] == [
        ("a | b=c | d", "slot=0"),
        ("e | f", ""),
    ]


def sweep_of(tmp_path, count=30):
    sweep = Run(tmp_path / "sweep", "SweepConfig")
    sweep.log(
        f"{iso(NOW - 9)} INFO rollout.observe.progress sweep 36% runs=17/48 left=1h48m | run=x"
    )
    for i in range(count):
        trial = Run(sweep.folder / "runs" / f"random-n{i:03}-s0", began=300)
        trial.config("env_steps: 1000\n")
        trial.lines((20, 100, {}), (i, 500, {"rate/steps_per_s": 10, "episode/return": 1.5}))
        if i >= 3:
            trial.end("done")
            scores = {"train": {"sampled": 0.5}, "test": {"sampled": i / 100}}
            trial.write("result.json", json.dumps({"scores": scores}), 5)
    evaluated = sweep.folder / "runs" / "random-n001-s0"
    (evaluated / "evaluation-abc").mkdir()
    file = evaluated / "evaluation-abc" / "results.jsonl"
    file.write_text("")
    os.utime(file, (NOW - 1,) * 2)
    (sweep.folder / "runs" / "random-n000-s0.log").write_text("")
    (sweep.folder / "runs" / "no-run-at-all").mkdir()
    return sweep


def test_a_sweep_shows_the_table_of_its_runs(tmp_path):
    sweep = sweep_of(tmp_path)
    rows = sweep.screen(height=24).splitlines()
    assert len(rows) == 24
    assert "36.0%  left 1h48m" in rows[3]
    assert rows[4] == "steps  15,000   now 20/s"
    assert rows[6] == "runs   2 running   1 evaluating   27 done"
    assert rows[7].split() == ["run", "state", "done", "steps/s", "return", "train", "test"]
    assert [row.split()[:3] for row in rows[8:12]] == [
        ["random-n000-s0", "running", "50%"],
        ["random-n001-s0", "evaluating", "50%"],
        ["random-n002-s0", "running", "50%"],
        ["random-n003-s0", "done", "100%"],
    ]
    assert rows[11].split()[3:] == ["1.5", "0.500", "0.030"]
    assert rows[-1] == "... and 15 more"
    assert len(sweep.screen().splitlines()) == 38


def test_a_run_that_shares_the_training_of_another_is_shown(tmp_path):
    sweep = sweep_of(tmp_path, 4)
    shared = sweep.folder / "runs" / "random-n003-s1"
    shared.mkdir()
    (shared / "result.json").write_text('{"scores": {"test": {"sampled": 0.25}}}')
    rows = [row.split() for row in sweep.screen().splitlines()]
    assert ["random-n003-s1", "done", "100%", "0.250"] in rows


@pytest.mark.parametrize("scores", [True, ["test"], {"test": False}, {"test": {"sampled": "x"}}])
def test_damaged_scores_of_a_run_are_not_shown(tmp_path, scores):
    sweep = sweep_of(tmp_path, 4)
    folder = sweep.folder / "runs" / "random-n003-s0"
    (folder / "result.json").write_text(json.dumps({"scores": scores}))
    rows = [row.split() for row in sweep.screen().splitlines()]
    assert ["random-n003-s0", "done", "100%", "1.5"] in rows


def test_a_sweep_whose_runs_live_is_no_silent_one(tmp_path):
    sweep = sweep_of(tmp_path, 2)
    sweep.log("", ago=400)
    assert sweep.look().state == "running"


def test_the_trials_of_a_search_are_runs_too(tmp_path):
    search = Run(tmp_path / "search", "SearchConfig")
    search.log(f"{iso(NOW)} INFO rollout.observe.progress search 12% trials=1/9 steps=3 | run=x")
    Run(search.folder / "trials" / "00000-lr=0.1", pid=DEAD_PID).lines((40, 7, {}))
    look = search.look()
    assert (look.kind, look.done, look.left) == ("search", 0.12, "")
    assert [(t.name, t.state) for t in look.trials] == [("00000-lr=0.1", "gone")]


def test_a_trial_that_its_search_abandoned_was_not_killed(tmp_path):
    search = Run(tmp_path / "search", "SearchConfig")
    trial = Run(search.folder / "trials" / "00000-lr=0.1", pid=DEAD_PID)
    trial.lines((40, 7, {}))
    trial.end("ended early")
    assert [t.state for t in search.look().trials] == ["ended early"]
    assert "1 ended early" in search.screen()


def test_the_scores_of_an_evaluation_wrap(tmp_path):
    run = Run(tmp_path / "evaluation", "EvaluateConfig")
    values = {f"evaluate/player-number-{i}/test/sampled/score": i / 10 for i in range(9)}
    run.lines((3, 7, {**values, "evaluate/x/test/sampled/success": 1.0}))
    rows = run.screen().splitlines()
    scores = [row for row in rows if "player-number-" in row]
    assert scores[0].startswith("score  player-number-0/test/sampled 0 ")
    assert [row[:7] for row in scores[1:]] == [" " * 7] * (len(scores) - 1)
    assert sum(row.count("player-number-") for row in scores) == 9


@pytest.mark.parametrize("width", [80, 60, 40, 200])
@pytest.mark.parametrize("height", [24, 16])  # rich cuts off what is still higher
def test_no_line_is_wider_and_no_screen_higher(tmp_path, run, width, height):
    run.lines((100, 100, {}), (3, 503_808, FULL))
    run.log(*[told(NOW, "x" * 300) for _ in range(9)])
    for each in (run, sweep_of(tmp_path)):
        rows = each.screen(width=width, height=height).splitlines()
        assert len(rows) <= height
        assert max(map(len, rows)) <= width
        coloured = each.screen(width=width, height=height, color=True)
        plain = [row.rstrip() for row in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()]
        assert plain[4:] == rows[4:]
        assert "\x1b[36m" in coloured  # of what is running


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0s"), (59.6, "1m00s"), (3599, "59m59s"), (3600, "1h00m"), (90_000, "1d01h")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


# -- the script ------------------------------------------------------------------------------


def test_once_it_is_shown_once(run, capsys):
    run.lines((10, 5, {}))
    assert main([str(run.folder), "--once"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("first  train  ")
    assert "\x1b" not in output


def test_what_has_ended_needs_no_more_looks(run, capsys):
    run.end("done")
    assert main([str(run.folder), "--every", "1000"]) == 0
    assert "ended" in capsys.readouterr().out


@pytest.mark.process
def test_it_looks_until_the_job_ends(run):
    run.lines((10, 5, {}))
    command = [
        sys.executable,
        str(ROOT / "scripts" / "watch.py"),
        str(run.folder),
        "--every",
        "0.1",
    ]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with killed_at_end(started) as shown:
        assert shown.stdout.readline().startswith("first  train  ")
        run.end("done")
        rest, _ = shown.communicate(timeout=120)
    assert shown.returncode == 0
    assert "first  train  done" in rest


@pytest.mark.process
def test_who_reads_no_further_is_no_error(run):
    run.lines((10, 5, {}))
    command = [
        sys.executable,
        str(ROOT / "scripts" / "watch.py"),
        str(run.folder),
        "--every",
        "0.1",
    ]
    pipe = subprocess.PIPE
    started = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
    with killed_at_end(started) as shown:
        shown.stdout.readline()
        shown.stdout.close()
        assert shown.wait(timeout=120) == 0
        assert not shown.stderr.read()


def test_a_folder_without_a_run_is_reported_with_the_runs_nearby(run, tmp_path, capsys):
    for wrong, expected in (
        (tmp_path, "is no run directory: expected the folder of a run, with a run.json in it"),
        (tmp_path / "frist", "there is no folder"),
        (tmp_path / "none" / "at" / "all", "there is no folder"),
        (run.folder / "run.json", "is no run directory"),
    ):
        assert main([str(wrong), "--once"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert expected in error
        assert error.count("\n") == 1
        if wrong != run.folder / "run.json":
            assert f"There are {run.folder}." in error


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"sessions": []}', '{"run_id": 3, "sessions": [{}]}']
)
def test_a_run_json_that_is_damaged_is_reported(run, text, capsys):
    run.write("run.json", text, 0)
    with pytest.raises(RunDirectoryError, match="does not describe a run"):
        run.look()
    assert main([str(run.folder)]) == 2
    assert "restore the file" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "often"])
def test_a_pause_of_nothing_is_refused(run, every, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([str(run.folder), "--every", every])
    assert stopped.value.code == 2
    assert "expected seconds above 0" in capsys.readouterr().err
