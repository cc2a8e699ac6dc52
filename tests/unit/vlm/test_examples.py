"""Recorded episodes as examples in the prompts of the policy ``vlm``."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from policies.vlm import VlmPolicy
from policies.vlm.options import History
from rollout.api import Start, Task, allocate
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from rollout.errors import ConfigError
from rollout.models.examples import ExampleLibrary
from rollout.models.sections import Endpoint, Examples
from rollout.tasks import load_task
from rollout.testing.chat_server import ChatServer, digest_of
from rollout.testing.fakes import FakeBridge

pytestmark = pytest.mark.heavy

SPEC = FakeBridge().spec
SPACE = SPEC.state_space
[KEY] = SPEC.action_space.spaces


@dataclass
class Runs:
    """Runs of random actions, and the task they were for."""

    folder: Path
    task: Task

    def record(self, name, **options):
        config = {"bridge": {"name": "fake"}, "policy": "random", "actors": 0, "episodes": 6}
        config |= {"output": str(self.folder / name), "task": str(self.folder / "walk.yaml")}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**config, **options}))
        assert main(collect, CollectConfig, "Plays.", ["--config", str(path)]) == 0
        return str(self.folder / name)

    def library(self, name="train", **options):
        chosen = Examples(dataset=str(self.folder / name), **{"only": "all", **options})
        return ExampleLibrary(chosen, SPEC, self.task)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 6}}
    (folder / "walk.yaml").write_text(yaml.safe_dump({"goal": "Walk.", **task}))
    found = Runs(folder, load_task(SPEC, "fake", str(folder / "walk.yaml")))
    found.record("train")
    return found


def refs_of(runs, name="train"):
    with Dataset(runs.folder / name) as dataset:
        return dataset.episodes()


def distance(one, other):
    pairs = zip(SPACE.digits(one.state), SPACE.digits(other.state), strict=True)
    return sum(a != b for a, b in pairs)


def policy_of(runs, url, **options):
    examples = {"dataset": str(runs.folder / "train"), "only": "all", **options.pop("examples", {})}
    recipe = VlmPolicy(
        endpoint=Endpoint(url=url),
        model="m",
        fallback="random",
        examples=Examples(**examples),
        **options,
    )
    return recipe.build(SPEC, runs.task, seed=0)


def asked(runs, server, state, steps=1, **options):
    """The messages of the last of some steps of an episode from a state."""
    policy = policy_of(runs, server.url, **options)
    memory = policy.initial_memory([Start(SPACE.state(state), 7)])
    for _ in range(steps):
        observations = allocate(SPEC.observation_space, 1)
        memory = policy.act(observations, memory, details=None, explore=True).memory
    return server.requests[-1]["messages"]


def test_the_nearest_states_come_first_and_never_the_own(runs):
    refs = refs_of(runs)
    for ref in refs:
        found = runs.library(count=3).nearest(ref.state)
        assert ref.state not in [each.state for each in found]
        others = [distance(r, ref) for r in refs if r.state != ref.state]
        assert [distance(each, ref) for each in found] == sorted(others)[:3]
        again = runs.library(count=3).nearest(ref.state)
        assert [r.episode for r in again] == [r.episode for r in found]


def test_no_example_is_of_the_own_state_even_where_there_is_no_other(runs):
    runs.record("one", state_set={"size": 1}, episodes=2)
    [state] = {ref.state for ref in refs_of(runs, "one")}
    assert runs.library("one").nearest(state) == []


def test_examples_stand_before_the_episode_in_each_of_its_requests(runs):
    state = refs_of(runs)[0].state
    with ChatServer(lambda _: "<thought>t</thought><action>1</action>") as server:
        first = asked(runs, server, state, examples={"count": 2, "steps": 3})
        third = asked(runs, server, state, 3, examples={"count": 2, "steps": 3})
    lengths = [min(3, ref.length) for ref in runs.library(count=2).nearest(state)]
    count = 2 * sum(lengths)
    assert [m["role"] for m in first] == ["system", *["user", "assistant"] * sum(lengths), "user"]
    assert first[1]["content"].startswith("Example 1, from an earlier episode. Its goal: Walk.\n\n")
    assert first[1 + 2 * lengths[0]]["content"].startswith("Example 2")
    assert first[-1]["content"].startswith("Now your own episode. Your goal: Walk.\n\nStep 0.")
    assert third[: 1 + count] == first[: 1 + count]
    assert third[1 + count]["content"] == first[-1]["content"]
    assert third[-1]["content"].startswith("Step 2.")
    ref = runs.library(count=2).nearest(state)[0]
    with Dataset(runs.folder / "train") as dataset:
        actions = dataset.read(ref, [f"action/{KEY}"]).columns[f"action/{KEY}"]
    assert first[2]["content"] == f"<action>{actions[0]}</action>"


def test_pictures_are_shown_where_the_model_sees_pictures(runs):
    state = refs_of(runs)[0].state
    with ChatServer(lambda _: "<action>1</action>") as server:
        history = History(texts=0, images=1)
        messages = asked(runs, server, state, prompt="act", history=history)
    with_pictures = [m for m in messages if isinstance(m["content"], list)]
    assert len(with_pictures) == len([m for m in messages if m["role"] == "user"])


def test_what_was_answered_is_found_again_with_examples(runs, tmp_path):
    state = refs_of(runs)[0].state
    with ChatServer(lambda _: "<action>1</action>") as server:
        for _ in range(2):
            asked(runs, server, state, 2, prompt="act", replies=str(tmp_path))
        assert len(server.requests) == 2
        assert len({digest_of(request) for request in server.requests}) == 2


def test_thoughts_of_a_recorded_model_are_shown_where_the_prompt_has_such_a_field(runs):
    with ChatServer(lambda _: "<thought>because</thought><action>1</action>") as server:
        policy = {"name": "vlm", "endpoint": {"url": server.url}, "model": "m", "prompt": "react"}
        runs.record("thinker", policy={**policy, "fallback": "random"}, episodes=2)
        own = {"dataset": str(runs.folder / "thinker")}
        messages = asked(runs, server, 0, examples=own, prompt="react")
        assert messages[2]["content"] == "<thought>because</thought>\n<action>1</action>"
        messages = asked(runs, server, 0, examples=own, prompt="act")
        assert messages[2]["content"] == "<action>1</action>"


@pytest.mark.parametrize(
    ("split", "says"),
    [
        ("test", "none of its 6 episodes began in a training state"),
        ("all", "state_set.split=train"),
    ],
)
def test_held_out_states_are_never_examples(runs, split, says):
    runs.record(split, state_set={"split": split})
    with pytest.raises(ConfigError, match=says):
        runs.library(split)


def test_bad_datasets_are_refused_by_name(runs):
    with pytest.raises(ConfigError, match=r"examples\.dataset=.*nowhere"):
        runs.library("nowhere")
    other = Task("other", "Walk.", SPACE, runs.task.evaluator)
    chosen = Examples(dataset=str(runs.folder / "train"), only="all")
    with pytest.raises(ConfigError, match="the task differ: expected other, got walk"):
        ExampleLibrary(chosen, SPEC, other)
    small = FakeBridge(side=4).spec
    with pytest.raises(ConfigError, match="the factors of its states differ"):
        ExampleLibrary(chosen, small, Task("walk", "Walk.", small.state_space, runs.task.evaluator))
    runs.record("idle", policy={"name": "scripted", "actions": {KEY: [0]}, "after": "repeat_last"})
    with pytest.raises(ConfigError, match=r"fits examples\.only=success"):
        runs.library("idle", only="success")


def test_a_training_refuses_examples(runs):
    recipe = VlmPolicy(
        endpoint=Endpoint(url="http://h/v1"), model="m", examples=Examples(dataset="x")
    )
    with pytest.raises(ConfigError, match="leave it out where a model learns"):
        recipe.example_builder(SPEC, runs.task)
