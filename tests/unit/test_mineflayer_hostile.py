"""Programs against the real game: whatever they say, its process and the neighbours go on."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.node import packages_problem
from bridges.mineflayer.spaces import neutral
from rollout.api import Start

PATIENT_S = 120.0
pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]
CALM = {"difficulty": "peaceful", "site": "flat", "time": "noon", "weather": "clear"}


def begin(folder, agents, **options):
    """Returns an instance of one world, whose agents act by programs, at tick 0."""
    bridge = MineflayerBridge(actions="code", agents=agents, spawning=False, **options)
    game = bridge.launch(folder, (), width=agents, timeout_s=PATIENT_S)
    space = bridge.spec.state_space
    first = {factor.name: factor.values[0] for factor in space}
    start = Start(space.state(space.index(first | CALM)), 40)
    game.reset(range(agents), [start] * agents, timeout_s=PATIENT_S)
    return game


def play(game, width, *programs):
    """Returns the details after a step in which the first slots begin these programs."""
    actions = neutral("code", width)
    actions["kind"][: len(programs)] = 1
    texts = [*programs, *[""] * (width - len(programs))]
    actions["code"] = np.array(texts, dtype=object)
    return game.step(actions, timeout_s=PATIENT_S).details


def texts(value):
    """All texts of nested data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (*texts(key), *texts(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


def test_declared_memory_holds_all_programs_at_their_limit():
    few, many = (MineflayerBridge(actions="code", agents=n).spec.resources for n in (1, 64))
    assert many.memory_mb - few.memory_mb >= 63 * 32
    walkers = MineflayerBridge(agents=64).spec.resources
    assert walkers.memory_mb < many.memory_mb


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    game = begin(tmp_path_factory.mktemp("two"), 2)
    yield game
    game.close()


# Halves of surrogate pairs, alone, swapped and where a limit of a host text cuts a pair.
ODD = st.lists(st.sampled_from("ab\ud83d\ude00\ud800\udfff\x00\n§\U0001f600"), max_size=40)
SAYS = (
    "console.log(T);",
    "throw T;",
    "throw new Error(T);",
    "throw {name: T, message: T, stack: T};",
    "const e = new Error(T); e.stack = T; throw e;",
    "bot.chat(T);",
    "bot.lookUp(T);",
    "bot.findBlock({matching: T});",
    "bot[T]();",
    "await bot.equip(T);",
    "bot.setControlState(T, true);",
    "bot.on(T, () => 0);",
    "setTimeout(() => { throw T; }, 1);",
    "(async () => { throw new Error(T); })(); await bot.dig(T);",
    "throw Symbol(T);",
    "eval(T);",
)


@settings(max_examples=40)
@given(st.sampled_from(SAYS), ODD.map("".join), st.sampled_from([0, 279, 299, 499, 1999]))
def test_all_texts_are_well_formed(two, says, odd, before):
    program = f"const T = {json.dumps('a' * before + odd)}; {says}"
    details = [*play(two, 2, program), *play(two, 2)]
    for text in texts(list(details)):
        text.encode()  # raises for a lone surrogate
