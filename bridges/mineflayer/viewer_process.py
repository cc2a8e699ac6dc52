"""The renderer ``prismarine``: prismarine-viewer in a process beside the game; an extra.

It draws what the ray-caster draws, from the same scenes, in the game's own looks: the pictures come
from npm with prismarine-viewer, are Mojang's, and are not in this repository.
"""

from __future__ import annotations

import itertools
import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.driver import Driver, Message
from bridges.mineflayer.node import find_node, packages_problem, shared_game
from rollout.errors import ConfigError, GameCrashed, GameError, GameTimeout, InputError

VIEWER = Path(__file__).with_name("viewer")
"""Folder of the program, of its ``package.json`` and of its lock file."""

BUILT = ("gl",)
"""Packages of it whose install scripts are run: headless-gl, which is compiled."""

INSTALL_VIEWER = (
    "`python -m bridges.mineflayer.setup --viewer` installs them (about 900 MB, and some minutes "
    "of compiling; see docs/mineflayer-viewer.md), with --shared for all checkouts and jobs of a "
    "machine; or leave out renderer=prismarine"
)
INSTALL_XVFB = (
    "renderer=prismarine draws through Xvfb, which is not on the PATH; install it (Debian: apt-get "
    "install xvfb libgl1-mesa-dri), or leave out renderer=prismarine"
)
VIEWER_CLOSE_S = 3.0
"""Seconds that its end may take, before that of the game."""
VIEWER_MB = 700
"""Memory of it and of its X server."""

_FOLDER = "viewer"  # in the instance's own, for its log
_LIBRARY = Path("gl/build/Release/webgl.node")
_DRAW_S = 60.0  # the first picture of a place means making its meshes: a second of computing
_TABLE = ("appearances", "entities", "items", "biomes")
# One way of drawing on every machine, whatever its graphics card, in one thread: the picture would
# be the same with more, and instances share the cores.
_MESA = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe", "LP_NUM_THREADS": "0"}


def viewer_problem(viewer: Path = VIEWER) -> str:
    """Returns what is wrong with the packages in a folder; empty when they are as locked."""
    if not (viewer / "package-lock.json").exists():
        return "its packages are not installed"
    problem = packages_problem(viewer)
    if not problem and not (viewer / "node_modules" / _LIBRARY).exists():
        return "its package gl is not compiled"
    return problem


def viewer_packages(viewer: Path = VIEWER) -> Path:
    """Returns the ``node_modules`` to use: those beside the program, else those that are shared.

    Raises:
        ConfigError: they are missing or outdated; the message has the command to run.
    """
    problem, shared = viewer_problem(viewer), shared_game(viewer)
    if not problem:
        return viewer / "node_modules"
    if not viewer_problem(shared):
        return shared / "node_modules"
    raise ConfigError(
        f"renderer=prismarine is an extra: {problem}, nor are there any in {shared}; "
        f"{INSTALL_VIEWER}"
    )


def viewer_command() -> tuple[list[str], dict[str, str], str]:
    """Returns the command that runs the viewer, its environment, and the path of Xvfb.

    Raises:
        ConfigError: Node, its packages or Xvfb are missing.
    """
    node, packages = find_node(), viewer_packages()
    xvfb = shutil.which("Xvfb")
    if xvfb is None:
        raise ConfigError(INSTALL_XVFB)
    return [str(node.program), str(VIEWER / "main.js")], {"NODE_PATH": str(packages), **_MESA}, xvfb


class ViewerScene:
    """What one agent has around it; the blocks themselves are in the viewer's process.

    Attributes:
        number: what it is called there.
        updates: those that the process has not had yet.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.updates: list[Mapping[str, Any]] = []

    def apply(self, update: Mapping[str, Any]) -> None:
        """Keeps what has changed until the scene is drawn."""
        self.updates.append(update)


class Viewer:
    """The viewer's process as a renderer; see ``bridges.mineflayer.pictures``.

    Args:
        hello: what the game said at its start, with the table of what scenes speak of.
        workdir: the instance's folder; the log is in its subfolder ``viewer``.
        version: of Minecraft.
        size: height and width of pictures, in pixels.
        timeout_s: seconds its start may take.
        failed: called when it fails, before the error is raised.

    Raises:
        ConfigError: the extra is not installed.
        GameCrashed: it did not come up.
        GameTimeout: likewise, in time.
    """

    def __init__(
        self,
        hello: Mapping[str, Any],
        workdir: Path,
        *,
        version: str,
        size: tuple[int, int],
        timeout_s: float,
        failed: Callable[[], None],
    ) -> None:
        command, env, xvfb = viewer_command()
        self._failed = failed
        self._numbers = itertools.count(1)
        self._gone: list[int] = []  # scenes that nobody holds any more
        folder = workdir / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        self.driver = Driver(command, folder, close_s=VIEWER_CLOSE_S, env=env)
        try:
            table = {key: hello[key] for key in _TABLE}
            config = {"version": version, "height": size[0], "width": size[1], "table": table}
            self.opengl = str(self._ask("hello", {"xvfb": xvfb, **config}, timeout_s)["opengl"])
        except BaseException:
            self.close()
            raise

    def scene(self) -> ViewerScene:
        """Returns an empty scene; the process lets go of it when nobody holds it any more."""
        scene = ViewerScene(next(self._numbers))
        weakref.finalize(scene, self._gone.append, scene.number).atexit = False
        return scene

    def render(self, scene: Any, out: NDArray[np.uint8]) -> None:
        """Draws a scene.

        Raises:
            GameCrashed: the process ended or answered garbage; it counts as a crash of the game.
            GameTimeout: no picture came in time.
        """
        updates, scene.updates = scene.updates, []
        gone, self._gone[:] = list(self._gone), []
        fields = {"scene": scene.number, "updates": updates, "forget": gone}
        picture = self._ask("draw", fields, _DRAW_S).get("picture")
        if not isinstance(picture, bytes) or len(picture) != out.size:
            self._failed()
            raise GameCrashed(f"the viewer drew no picture of {out.size} bytes")
        out[:] = np.frombuffer(picture, np.uint8).reshape(out.shape)

    def close(self) -> None:
        """Ends the process and its X server. Idempotent; never raises."""
        self.driver.close()

    def _ask(self, op: str, fields: Mapping[str, Any], timeout_s: float) -> Message:
        try:
            return self.driver.ask(op, fields, timeout_s=timeout_s)
        except (GameError, InputError) as error:
            self._failed()
            kind = GameTimeout if isinstance(error, GameTimeout) else GameCrashed
            said = str(error).removeprefix("the game")  # as the driver calls what it runs
            raise kind(f"renderer=prismarine: the viewer{said}") from error


class ViewedDriver(Driver):
    """A game's process that has a viewer beside it; they end together.

    Attributes:
        viewer: None until there is one.
    """

    viewer: Viewer | None = None

    def close(self) -> None:
        """Ends both. Idempotent; never raises."""
        if self.viewer is not None:
            self.viewer.close()
        super().close()
