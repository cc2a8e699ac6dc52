"""The command ``gamut submit``: checks, sends and follows a job."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

from rollout.checkout import COMMIT, WORKING_COMMIT, commit_of, working_commit
from rollout.cluster.addresses import (
    ADDRESS,
    MODE,
    TOKEN,
    TOKEN_PATH,
    Dashboard,
    dashboard_url,
    is_this_machine,
)
from rollout.cluster.addresses import require_dashboard as require
from rollout.cluster.jobs import (
    STOP_WAIT,
    NoAnswerError,
    RayJob,
    connect,
    exit_status,
    follow,
    send,
)
from rollout.cluster.package import (
    LIMIT_BYTES,
    RAYIGNORE,
    Package,
    ignored_by_default,
    mib,
    read_package,
    write_rayignore,
)
from rollout.configuration.secrets import hidden
from rollout.errors import DONE, ENDED_SHORT, WRONG_INPUT, ConfigError, InputError, nearest
from rollout.observe.run_files import RUNS_DIR
from rollout.signals import Stop, Stopped, say, tell

_GRACE_S = 60  # from SIGTERM to SIGKILL: long enough to write a checkpoint
_SHOWN = 10  # paths that are listed
_RESERVED = (ADDRESS, MODE, TOKEN, TOKEN_PATH, "RAY_JOB_CONFIG_JSON_ENV_VAR")
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_PACKAGES = ("ray", "torch", "pyarrow", "pydantic", "yaml", "gymnasium")
_INSTALL = "install Gamut there, or give the path of the one that has it (docs/clusters.md)"
_OURS = "rollout/cluster/submit.py"  # where this is sent, scripts/ are ours
_EXAMPLE = "gamut submit -- gamut train --config configs/train_hunt_sheep.yaml"


@dataclass(frozen=True)
class Submission:
    """A job and its options from the command line; ``notes`` are shown before it is sent."""

    url: str
    job: RayJob
    wait: bool = True
    dry_run: bool = False
    notes: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def _parser() -> _Parser:
    parser = _Parser(
        prog="submit.py",
        usage="submit.py [options] -- COMMAND ...",
        description="Sends a command and the working directory to a Ray cluster as a job, follows "
        "its log, and ends with its exit status.",
        epilog=f"Example: {_EXAMPLE}. A command of one word that holds spaces is given to the "
        f"shell as it is.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--address", metavar="URL", help="of the dashboard; default: this machine's"
    )
    parser.add_argument(
        "--working-dir", metavar="DIR", type=Path, default=Path(), help="what is sent; default: ."
    )
    parser.add_argument(
        "--runs-dir",
        metavar="DIR",
        help=f"folder, on the cluster, of relative outputs; default: {RUNS_DIR}, or the working "
        f"directory as it is called here",
    )
    for name, metavar, text in (
        ("--env", "K=V", "environment variable of the job"),
        (
            "--needs",
            "K=N",
            "resource that is kept for the driver and decides where it runs, e.g. GPU=1 or "
            "gamut_learner=0.01; default: the head, and nothing is kept",
        ),
    ):
        parser.add_argument(name, metavar=metavar, action="append", default=[], help=text)
    parser.add_argument("--no-wait", action="store_true", help="do not follow the log")
    parser.add_argument("--dry-run", action="store_true", help="show all of it, and send nothing")
    return parser


def parse_submission(argv: Sequence[str]) -> Submission:
    """Returns the submission of a command line; reads the working directory, not the cluster."""
    end = list(argv).index("--") if "--" in argv else len(argv)
    arguments = _parser().parse_args(argv[:end])
    command = list(argv[end + 1 :])
    if not "".join(command).strip():
        raise ConfigError(f"no command is given; write it after --, e.g. {_EXAMPLE}")
    if any(hidden(word) != word for word in command):
        raise ConfigError(
            "the command holds a key or a URL with a password, which everyone who can see the "
            "dashboard would see; give it with --env, and name the variable"
        )
    url = dashboard_url(arguments.address)
    folder = arguments.working_dir.expanduser().absolute()
    env = _pairs("--env", arguments.env)
    for name in env:
        if name in _RESERVED:
            raise ConfigError(f"--env {name}: Ray sets it in every job; leave it out")
    runs, remote = _runs_dir(arguments.runs_dir, env, folder, url)
    env = {STOP_WAIT: str(_GRACE_S), **env, RUNS_DIR: str(runs)}
    if (folder / _OURS).is_file() and (commit := commit_of(folder.resolve())):
        env = {COMMIT: commit, **env}
    working = working_commit(folder.resolve()) if folder.is_dir() else None
    if working:
        env = {WORKING_COMMIT: working, **env}
    package = read_package(folder, ignored_by_default(folder) if folder.is_dir() else ())
    _require_sent(command, package)
    notes = [remote] if remote else []
    if working is not None and working.endswith("-dirty"):
        notes.append(
            "the working directory differs from its commit; the run records that, not the changes"
        )
    notes += [
        f"{name} is shown, as it is, to everyone who can see the dashboard"
        for name in env
        if _SECRET.search(name) or hidden(env[name]) != env[name]
    ]
    return Submission(
        url,
        RayJob(
            entrypoint=command[0] if len(command) == 1 else shlex.join(command),
            package=package,
            env=env,
            needs=_numbers("--needs", arguments.needs),
            check=_check(command, package),
        ),
        wait=not arguments.no_wait,
        dry_run=arguments.dry_run,
        notes=tuple(notes),
    )


def _check(command: Sequence[str], package: Package) -> str:
    """Returns shell code that ends a job with status 2 where it would run without our packages.

    Only commands that are ours are checked: ``gamut``, and Python with one of our scripts.
    """
    program = PurePosixPath(command[0]).name
    if len(command) == 1:
        return ""  # a line for the shell
    if program == "gamut":
        said = f"error: there is no {command[0]} on the cluster; {_INSTALL}"
        test = f"command -v {shlex.quote(command[0])} >/dev/null"
        return f"{test} || {{ echo {shlex.quote(said)} >&2; exit 2; }}; exec "
    scripts = [os.path.normpath(word) for word in command[1:] if word.endswith(".py")]
    sent = {path for path, _ in package.files}
    ours = scripts and scripts[0].startswith("scripts/") and {scripts[0], _OURS} <= sent
    if not program.startswith("python") or not ours:
        return ""
    code = (
        f"import importlib.util, sys; m = [n for n in {_PACKAGES} if not importlib.util.find_spec"
        f"(n)]; m and (sys.stderr.write('error: ' + sys.executable + ', the Python of the job on "
        f"the cluster, has no ' + ', '.join(m) + '; {_INSTALL}\\n'), sys.exit(2))"
    )
    return f"{shlex.join([command[0], '-c', code])} && exec "


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigError(f"{option} {text}: expected NAME=VALUE")
        if name in pairs:
            raise ConfigError(f"{option} {name} is given twice; give it once")
        pairs[name] = value
    return pairs


def _numbers(option: str, texts: Sequence[str]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, text in _pairs(option, texts).items():
        try:
            numbers[name] = float(text)
        except ValueError:
            numbers[name] = -1.0
        if not 0 <= numbers[name] < float("inf"):
            raise ConfigError(f"{option} {name}={text}: expected a number that is not negative")
    return numbers


def _runs_dir(
    given: str | None, env: dict[str, str], folder: Path, url: str
) -> tuple[Path, str | None]:
    """Returns the folder of relative outputs of the job, and a note on it; None for no note."""
    if given is not None and RUNS_DIR in env:
        raise ConfigError(f"--runs-dir and --env {RUNS_DIR} say the same; give one")
    given = given or env.get(RUNS_DIR)
    chosen = given or os.environ.get(RUNS_DIR) or str(folder)
    runs = Path(chosen).expanduser()
    sure = given is not None and runs.is_absolute()
    # As it would be for the same command here: relative to where it is given.
    runs = runs.resolve()
    if sure or is_this_machine(url):
        return runs, None
    return runs, (
        f"relative outputs go to {runs} on another machine; if that is no storage which all "
        f"machines share, give --runs-dir"
    )


def _require_sent(command: Sequence[str], package: Package) -> None:
    """Checks that the command's script is there, and that no ignore file holds back its files."""
    if len(command) == 1:
        return  # a line for the shell: any word of it may be anything
    sent = {path for path, _ in package.files}
    scripts = [word for word in command[1:] if word.endswith(".py")][:1]
    for word in command[1:]:
        path = PurePosixPath(os.path.normpath(word))
        if path.is_absolute() or path.parts[:1] == ("..",) or path.as_posix() in sent:
            continue
        if (package.folder / path).is_file():
            raise ConfigError(
                f"the command names {word}, which is not sent: .gitignore, {RAYIGNORE} or Ray's "
                f"own rules leave it out; move it, or give its absolute path on the cluster"
            )
        if word in scripts:
            close = nearest(path.as_posix(), (p for p in sent if p.endswith(".py")))
            hint = f"; nearest: {', '.join(close)}" if close else ""
            raise ConfigError(f"there is no {word} in {package.folder}{hint}")


def describe(submission: Submission) -> str:
    """Returns a description of the submission, several lines."""
    job, package = submission.job, submission.job.package
    share = 100 * package.size / LIMIT_BYTES
    lines = [
        f"job        {job.name}",
        f"address    {submission.url}",
        f"command    {job.entrypoint}",
        *(
            f"env        {name}={'***' if _SECRET.search(name) else shlex.quote(hidden(value))}"
            for name, value in job.env.items()
        ),
        *(f"needs      {name}={value:g}" for name, value in job.needs.items()),
        f"directory  {package.folder}",
        f"size       {mib(package.size)}, {share:.1f} % of what Ray takes, in "
        f"{len(package.files):,} file{'s' * (len(package.files) != 1)}",
        *(f"  {mib(size):>10}  {path}" for path, size in package.files[:_SHOWN]),
        "folders    "
        + (", ".join(f"{p} {mib(size)}" for p, size in package.folders()[:_SHOWN]) or "none"),
        f"not sent   {', '.join(package.left_out) or 'nothing is held back'}",
        *(f"note       {note}" for note in submission.notes),
    ]
    return "\n".join(lines) + "\n"


def run(argv: Sequence[str] | None = None) -> int:
    """Runs ``gamut submit`` and returns its exit status.

    Args:
        argv: its arguments; those of the process when None.

    Returns:
        that of the job's driver; 143 if the job was stopped; 0 with ``--no-wait`` and
        ``--dry-run``; 2 if the input is wrong, nothing being sent; 3 if the cluster no longer
        answers; 130 if the user no longer wants to follow.
    """
    with Stop() as stop:
        try:
            submission = parse_submission(sys.argv[1:] if argv is None else argv)
            package = submission.job.package
            if submission.dry_run or package.size >= LIMIT_BYTES:
                _out(describe(submission))
            package.require_sendable()
            if submission.dry_run:
                if package.excludes:
                    _out(f"{RAYIGNORE} would be written: there is none\n")
                _out("nothing was sent\n")
                return DONE
            dashboard = require(submission.url)
            _out(describe(submission))
            job = submission.job
            if write_rayignore(package.folder):
                _out(f"wrote {package.folder / RAYIGNORE}: there was none\n")
                job = replace(job, package=replace(package, excludes=()))
            client = connect(dashboard)
            send(client, job)
        except InputError as error:
            return _end(WRONG_INPUT, f"error: {error}")
        except KeyboardInterrupt as error:
            return _end(_interrupted(error), "interrupted; see `ray job list` for what was sent")
        stop.install()  # importing Ray may have changed who gets the signals
        return _followed(client, dashboard, submission)


def _followed(client: object, dashboard: Dashboard, submission: Submission) -> int:
    job = submission.job
    if not submission.wait:
        _out(f"sent; {_commands(dashboard, job.name)}\n")
        return DONE
    _out(f"sent; its log follows. {_commands(dashboard, job.name)}\n")
    try:
        info = follow(client, job.name, _out)
    except NoAnswerError as error:
        return _end(ENDED_SHORT, f"ended short: {error}; {_commands(dashboard, job.name)}")
    except KeyboardInterrupt as error:
        text = f"no longer followed: the job continues; {_commands(dashboard, job.name)}"
        return _end(_interrupted(error), text)
    status = exit_status(info, job.env)
    # Of a driver that ran, the log has said why; of one that never did, only Ray knows.
    silent = info.driver_exit_code is None and info.status == "FAILED"
    why = f": {info.message}" if silent and info.message else ""
    return _end(status, f"job {job.name} {str(info.status.value).lower()}, status {status}{why}")


def _commands(dashboard: Dashboard, name: str) -> str:
    # With an address that is given, Ray sends a token only where the mode is said.
    mode = f"{MODE}=token " if dashboard.token is not None else ""
    return (
        f"stop it by: {mode}ray job stop --address {dashboard.url} {name}; follow it by: "
        f"{mode}ray job logs --follow --address {dashboard.url} {name}"
    )


def _interrupted(error: KeyboardInterrupt) -> int:
    return 128 + (error.signum if isinstance(error, Stopped) else 2)


def _out(text: str) -> None:
    tell(text, end="")
    sys.stdout.flush()


def _end(status: int, text: str) -> int:
    say(" ".join(text.split()))
    return status
