"""Share of the commands of MCU's task configurations that the embedded Minecraft executes.

The configurations are the user's: the folder ``task_configs`` of MCU, or that of MineStudio's wheel
(MIT), each with folders ``simple``, ``hard`` and maybe ``compositional`` of YAML files. Every start
is begun in the embedded world, with the commands of its file that are accepted; a command that
fails there is left out and the start begun again. Needs Node; run from the root of the repository:

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
) -> tuple[Counter[str], dict[tuple[str, str], str]]:
    """Returns how many configurations and commands are executed, and what is refused and why."""
    found, failed = Counter[str](), {}
    for path in sorted(folder.glob("*.yaml")):
        lines = [str(line) for line in load_yaml(path)["custom_init_commands"]]
        left = []
        for line in lines:
            try:
                left.append(parse_command(line))
            except CommandError as error:
                failed[line, str(error)] = folder.name
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
                failed[bad.text(), match[2]] = folder.name
        found.update(files=1, given=len(lines), done=len(left), whole=len(left) == len(lines))
    return found, failed


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
    parser.add_argument("--configs", type=Path, required=True, help="folder with simple, hard ...")
    parser.add_argument("--source", default="a user's copy", help="whose copy it is")
    args = parser.parse_args()
    bridge = MineflayerBridge(view_distance=2)
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        game = bridge.launch(Path(folder), (), width=1, timeout_s=TIMEOUT_S)
        assert isinstance(game, MineflayerInstance)
        try:
            for name in SETS:
                if not (args.configs / name).is_dir():
                    continue
                found, failed = count(args.configs / name, game, bridge.spec.state_space)
                whole = f"{found['whole']} of {found['files']}"
                done = f"{found['done']} of {found['given']}"
                rows.append([name, done, f"{found['done'] / found['given']:.1%}", whole])
                failures += [[of, f"`{line}`", why] for (line, why), of in failed.items()]
        finally:
            game.close()
    head = ["configurations", "commands executed", "share", "configurations whole"]
    text = f"\nThe configurations are those of {args.source}.\n\n" + table(head, rows)
    text += "\nWhat is refused, before launch unless it says otherwise:\n\n"
    text += table(["set", "command", "reason"], failures)
    publish("mineflayer_commands", TITLE, text, save=args.save)


if __name__ == "__main__":
    main()
