"""The programs that solve MineLand's tasks, as texts and as policies; nothing is played here."""

import importlib

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge, oracle
from bridges.mineflayer.spaces import CODE, KIND, MOST_CODE, NEW, RESUME
from bridges.mineflayer.task_ids import generate
from policies.callable import CallablePolicy
from policies.scripted import ScriptedPolicy
from rollout.api import Start
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import load_task

pytestmark = pytest.mark.heavy

BRIDGE = MineflayerBridge(actions="code")
TASK = "techtree_1_stone_pickaxe"


@pytest.mark.parametrize(
    "family", ["harvest", "techtree", "combat", "survival", "construction", "stage"]
)
def test_every_task_of_the_decided_families_has_a_program(family):
    space = BRIDGE.spec.action_space[CODE]
    for task_id in generate(family):
        text = oracle.program(task_id)
        assert len(text) <= MOST_CODE
        assert space.contains(text), task_id


def test_a_program_has_the_constants_of_its_task():
    text = oracle.program("harvest_8_cobblestone_with_1_iron_pickaxe")
    assert text.startswith('const TARGET = "cobblestone";\nconst COUNT = 8;\n')
    assert "obtain(TARGET, COUNT)" in text
    assert not any(line.startswith("//") for line in text.splitlines())


def test_programs_of_buildings_and_plays_have_what_the_goal_tells():
    text = oracle.program("build_pillar")
    assert text.startswith('const PLAN = [[0, 0, 0, "cobblestone"], [0, 1, 0, "cobblestone"]')
    assert "async function mine(" not in text  # what it does not use is left out
    text = oracle.program("play_argue")
    assert text.startswith('const ACTS = [["Max", "chat", "The bread is mine."]')
    assert '\nconst HELD = {"Max": [], "Emma": ["bread"]};\n' in text


def test_families_without_a_program_and_unknown_tasks_are_refused():
    with pytest.raises(ConfigError, match="no oracle plays creative tasks"):
        oracle.program("creative_build_a_house")
    with pytest.raises(InputError):
        oracle.program("harvest_1_oak_lgo")


def test_the_policy_begins_the_program_wherever_none_runs():
    act = oracle.player(TASK)
    states = np.array([[0, 0, 0], [1, 9, 0], [0, 12, 4]], np.int32)
    actions = act({"code_state": states}, None, False)
    assert actions[KIND].tolist() == [NEW, RESUME, NEW]
    assert actions[CODE].tolist() == [oracle.program(TASK), "", oracle.program(TASK)]
    with pytest.raises(ConfigError, match="code_state"):
        act({"position": np.zeros((1, 3))}, None, False)


def test_who_does_nothing_waits_in_every_slot_and_begins_again_when_it_has_died():
    states = np.array([[0, 0, 0], [1, 9, 0]], np.int32)
    actions = oracle.idle({"code_state": states}, None, False)
    assert actions[KIND].tolist() == [NEW, RESUME]
    assert actions[CODE].tolist() == [oracle.WAITING, ""]
    assert BRIDGE.spec.action_space[CODE].contains(oracle.WAITING)
    with pytest.raises(ConfigError, match="code_state"):
        oracle.idle({}, None, False)


@pytest.mark.parametrize("task_id", [TASK, "survival_0.05_days"])
def test_policies_find_it_by_its_name(task_id):
    recipe = CallablePolicy(function="bridges.mineflayer.oracle:" + oracle.attribute(task_id))
    policy = recipe.build(BRIDGE.spec, load_task(BRIDGE.spec, "mineflayer", task_id), seed=0)
    observations = {"code_state": np.zeros((2, 3), np.int32)}
    decision = policy.act(observations, {}, details=None, explore=False)
    assert decision.actions[CODE].tolist() == [oracle.program(task_id)] * 2


def test_other_attributes_do_not_exist():
    module = importlib.import_module("bridges.mineflayer.oracle")
    with pytest.raises(AttributeError, match="no task 'nonsense'"):
        _ = module.nonsense
    assert not hasattr(module, "_nonsense")


def test_it_is_a_script_as_well():
    task = load_task(BRIDGE.spec, "mineflayer", TASK)
    policy = ScriptedPolicy(oracle.script(TASK), after="noop").build(BRIDGE.spec, task, seed=0)
    start = Start(task.state_space.state(0), 0, 0)
    memory = policy.initial_memory([start])
    kinds = []
    for _ in range(3):
        decision = policy.act({}, memory, details=None, explore=False)
        memory = decision.memory
        kinds.append((int(decision.actions[KIND][0]), decision.actions[CODE][0]))
    assert kinds == [(NEW, oracle.program(TASK)), (RESUME, ""), (RESUME, "")]


def test_unknown_items_name_the_nearest():
    with pytest.raises(UnknownNameError):
        oracle.player("harvest_1_oak_lgo")
