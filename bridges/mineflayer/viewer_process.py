"""The renderer ``prismarine``: prismarine-viewer in a process beside the game; optional.

It draws the same scenes as the ray-caster with the game's own textures: these come from npm with
prismarine-viewer, belong to Mojang, and are not in this repository.
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
"""Packages whose install scripts are run: headless-gl, which is compiled."""

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
"""Seconds that closing it may take, before the game is closed."""
VIEWER_MB = 700
"""Memory of the viewer and of its X server."""

_FOLDER = "viewer"  # within the instance's folder, for its log
_LIBRARY = Path("gl/build/Release/webgl.node")
_DRAW_S = 60.0  # the first picture of a place needs its meshes: a second of computing
_TABLE = ("appearances", "entities", "items", "biomes")
# One way of rendering on every machine, for any graphics card, in one thread: more threads would
# give the same picture, and instances share the cores.
_MESA = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe", "LP_NUM_THREADS": "0"}


def viewer_problem(viewer: Path = VIEWER) -> str:
    """Returns what is wrong with the packages in a folder; empty if they match the lock file."""
    if not (viewer / "package-lock.json").exists():
        return "its packages are not installed"
    problem = packages_problem(viewer)
    if not problem and not (viewer / "node_modules" / _LIBRARY).exists():
        return "its package gl is not compiled"
    return problem


def viewer_packages(viewer: Path = VIEWER) -> Path:
    """Returns the ``node_modules`` to use: those beside the program, else the shared ones.

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
    """The surroundings of one agent; the blocks themselves are in the viewer's process.

    Attributes:
        number: its id in that process.
        updates: those that the process has not received yet.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.updates: list[Mapping[str, Any]] = []

    def apply(self, update: Mapping[str, Any]) -> None:
        """Keeps changes until the scene is drawn."""
        self.updates.append(update)


class Viewer:
    """The viewer's process as a renderer; see ``bridges.mineflayer.pictures``.

    Args:
        hello: the game's start-up message, with the table of appearances that scenes refer to.
        workdir: the instance's folder; the log is in its subfolder ``viewer``.
        version: of Minecraft.
        size: height and width of pictures, in pixels.
        timeout_s: seconds its start may take.
        failed: called when it fails, before the error is raised.

    Raises:
        ConfigError: the extra is not installed.
        GameCrashed: it did not start.
        GameTimeout: it did not start in time.
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
        self._gone: list[int] = []  # scenes that are no longer in use
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
        """Returns an empty scene; the process frees it when it is no longer in use here."""
        scene = ViewerScene(next(self._numbers))
        weakref.finalize(scene, self._gone.append, scene.number).atexit = False
        return scene

    def render(self, scene: Any, out: NDArray[np.uint8]) -> None:
        """Draws a scene.

        Raises:
            GameCrashed: the process ended or sent an invalid reply; it counts as a crash of the
                game.
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
            said = str(error).removeprefix("the game")  # as the driver names its process
            raise kind(f"renderer=prismarine: the viewer{said}") from error


class ViewedDriver(Driver):
    """A game's process with a viewer beside it; they end together.

    Attributes:
        viewer: None until it was started.
    """

    viewer: Viewer | None = None

    def close(self) -> None:
        """Ends both. Idempotent; never raises."""
        if self.viewer is not None:
            self.viewer.close()
        super().close()
