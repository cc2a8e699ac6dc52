"""A private X server with real key and mouse events, for tests of the window."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("Xvfb", "xdotool")
WHY_NOT = "needs Xvfb and xdotool: say `make xvfb`, or install the packages xvfb and xdotool"


def missing():
    return [program for program in NEEDED if shutil.which(program) is None]


class Desk:
    """One X server; close it."""

    def __init__(self):
        read, write = os.pipe()
        self._server = subprocess.Popen(
            [
                "Xvfb",
                "-displayfd",
                str(write),
                "-screen",
                "0",
                "1280x900x24",
                "-nolisten",
                "tcp",
                "-noreset",
            ],
            pass_fds=[write],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as number:  # it writes the number of a display that was free
            display = f":{number.readline().strip()}"
        self.env = {
            **os.environ,
            "DISPLAY": display,
            "SDL_AUDIODRIVER": "dummy",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        self.env.pop("WAYLAND_DISPLAY", None)
        self.env.pop("SDL_VIDEODRIVER", None)
        self._programs = []

    def play(self, *settings, config=None, resume=False):
        """Starts ``scripts/play.py``."""
        command = [sys.executable, str(ROOT / "scripts" / "play.py"), "--set", *settings]
        command += ["--config", str(config)] if config else []
        command += ["--resume"] if resume else []
        program = subprocess.Popen(
            command,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._programs.append(program)
        return program

    def do(self, *words):
        """Sends events by xdotool, and returns what it says."""
        command = ["xdotool", *map(str, words)]
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=300, check=False
        )
        return done.stdout.strip()

    def title(self):
        """Title of the window; empty while there is none."""
        windows = self.do("search", "--class", "gamut").split()
        return self.do("getwindowname", windows[-1]) if windows else ""

    def wait_for(self, found, *, program, within_s=600):
        """Waits until ``found(title)`` holds; fails with what the program said if it ends first."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            title = self.title()
            if found(title):
                return
            if program.poll() is not None:
                raise AssertionError(f"it ended with {program.returncode}: {program.stdout.read()}")
            time.sleep(0.05)
        program.kill()
        raise AssertionError(f"still {title!r} after {within_s} s: {program.stdout.read()}")

    def close(self):
        for program in self._programs:
            if program.poll() is None:
                program.kill()
            program.communicate(timeout=300)
        self._server.terminate()
        self._server.wait(20)


def at_step(least, episode=None):
    """For ``wait_for``: the window shows that step, or a later one, of that episode or a later."""

    def found(title):
        if ": episode " not in title:
            return False
        now, step = title.rpartition(": episode ")[2].split(", step ")
        return (int(now), int(step)) >= (episode or 0, least)

    return found
