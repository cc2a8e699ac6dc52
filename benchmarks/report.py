"""What benchmarks share: options, and reports with machine, versions, date and command."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from rollout import reports
from rollout.run_directory import versions

RESULTS = Path(__file__).resolve().parent / "results"

_VERSIONS = versions()
"""Read at the start: what a program has saved changes tracked files, and it may save again."""


def machine() -> str:
    """Returns one line about the processor, the GPU and the load."""
    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    found = ""
    if asked := shutil.which("nvidia-smi"):
        command = [asked, "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found = "".join(f"{name}, " for name in names.splitlines())
    return f"{model}, {os.cpu_count()} cores, {found}{platform.system()}, load {load}"


def arguments(about: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark, which describes it and has the option ``--save``."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=shape)
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/")
    return parser


def command() -> str:
    """Returns the command that runs this program, without folders of this machine."""
    given = [Path(x).name if Path(x).is_absolute() else x for x in sys.argv[1:]]
    spec = sys.modules["__main__"].__spec__
    name = spec.name.removesuffix(".__main__") if spec else Path(sys.argv[0]).name
    return shlex.join(["python", "-m", name, *given])


def header(title: str) -> str:
    """Returns the head of a report."""
    left_out = ("platform", "cpus", "working_directory")
    known = ", ".join(f"{k} {v}" for k, v in _VERSIONS.items() if k not in left_out)
    return "\n".join(
        [
            f"# {title}",
            "",
            f"- date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"- machine: {machine()}",
            f"- versions: {known}",
            f"- command: `{command()}`",
            "",
        ]
    )


def run_line() -> str:
    """Returns when, on which commit and at which load something was measured, in one line."""
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    commit, _, dirty = str(_VERSIONS["commit"]).partition("-")
    commit = f"{commit[:12]}{dirty and '-dirty'}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, load {load}"


def spread(values: list[float], digits: int = 0) -> str:
    """Returns median and range: ``123 (100 to 130)``."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    return reports.table(head, rows) + "\n"


def publish(name: str, title: str, body: str, *, save: bool) -> None:
    """Prints a report; writes it to ``benchmarks/results/`` if it is to be saved."""
    text = f"{header(title)}\n{body.lstrip()}"
    print(text)
    if save:
        (RESULTS / f"{name}.md").write_text(text)
