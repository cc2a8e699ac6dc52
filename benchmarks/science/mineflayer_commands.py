"""Share of the commands of MCU's task configurations that the embedded Minecraft executes.

The configurations are the user's: the folder ``task_configs`` of MCU, that of MineStudio's wheel
(MIT), or both, each with folders ``simple``, ``hard`` and maybe ``compositional`` of YAML files.
Every start is begun in the embedded world, with the commands of its file that are accepted; a
command that fails there is left out and the start begun again. The report has the reasons of what
is refused, without the commands, since MCU has no licence. Needs Node; run from the root of the
repository:

    .venv/bin/python -m benchmarks.science.mineflayer_commands --configs task_configs --save
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.report import arguments, publish, table
from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.commands import CommandError, parse_command
from bridges.mineflayer.factors import start_message
from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.scene import Scene
from rollout.api import Start, StateSpace
from rollout.errors import StateError
from rollout.yaml12 import load_yaml

TITLE = "Mineflayer: MCU's commands in the embedded world"
SETS = ("simple", "hard", "compositional")
TIMEOUT_S = 300.0


def count(
    folder: Path, game: MineflayerInstance, space: StateSpace
) -> tuple[Counter[str], list[str]]:
    """Returns how many configurations and commands are executed, and why others are refused."""
    found, failed = Counter[str](), list[str]()
    for path in sorted(folder.glob("*.yaml")):
        lines = [str(line) for line in load_yaml(path)["custom_init_commands"]]
        left = []
        for line in lines:
            try:
                left.append(parse_command(line))
            except CommandError as error:
                failed.append(str(error))
        while True:
            try:
                begin(game, space, Scene({}, tuple(left)))
                break
            except StateError as error:
                match = re.match(r"the command /(.*) failed: (.*)", str(error))
                if match is None:
                    raise
                bad = next(each for each in left if each.text() == match[1])
                left.remove(bad)
                failed.append(f"in the world: {match[2]}")
        found.update(files=1, given=len(lines), done=len(left), whole=len(left) == len(lines))
    return found, failed


def _reason(error: str) -> str:
    """Returns why a command was refused, without its text."""
    return re.sub(r" at position \d+: .*?<--\[HERE\].*?(?=\. (?:Nearest|Expected)|$)", "", error)


def begin(game: MineflayerInstance, space: StateSpace, scene: Scene) -> None:
    """Begins an episode with a scene.

    Raises:
        StateError: a command failed.
    """
    state = space.state(0).values | {"difficulty": "easy", "site": "wild", "biome": "plains"}
    start = Start(space.state(space.index(state)), 1)
    told = start_message(space, start, (), scene)
    game.driver.ask("reset", {"slots": [0], "starts": [told]}, timeout_s=TIMEOUT_S)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--configs", type=Path, required=True, nargs="+", help="folders with simple, hard ..."
    )
    parser.add_argument("--source", nargs="+", default=["a user's copy"], help="whose they are")
    args = parser.parse_args()
    if len(args.source) != len(args.configs):
        parser.error(f"expected a --source for each of {len(args.configs)} folders")
    bridge = MineflayerBridge(view_distance=2)
    rows: list[list[str]] = []
    failures = Counter[tuple[str, str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        game = bridge.launch(Path(folder), (), width=1, timeout_s=TIMEOUT_S)
        assert isinstance(game, MineflayerInstance)
        try:
            for folder_of, source in zip(args.configs, args.source, strict=True):
                for name in SETS:
                    if not (folder_of / name).is_dir():
                        continue
                    found, failed = count(folder_of / name, game, bridge.spec.state_space)
                    whole = f"{found['whole']} of {found['files']}"
                    done = f"{found['done']} of {found['given']}"
                    share = f"{found['done'] / found['given']:.1%}"
                    rows.append([source, name, done, share, whole])
                    failures.update((source, name, _reason(why)) for why in failed)
        finally:
            game.close()
    head = ["source", "configurations", "commands executed", "share", "configurations whole"]
    text = "\n" + table(head, rows) + "\nWhy commands are refused, before launch unless it says "
    text += "otherwise:\n\n"
    listed = [[*key, str(number)] for key, number in failures.items()]
    text += table(["source", "set", "reason", "commands"], listed)
    publish("mineflayer_commands", TITLE, text, save=args.save)


if __name__ == "__main__":
    main()
