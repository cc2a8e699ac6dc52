"""Alex, with a scripted model in all roles and a world of plain values."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from policies.alex.mind import AlexLimits, Retrieve, Thinking
from policies.alex.policy import _PROMPTS, Alex, AlexPolicy
from policies.companion.asking import RoleClient, load_roles
from policies.vlm.options import History, Picture
from policies.vlm.pictures import Pictures
from rollout.api import Outcome, Start
from rollout.cli import main
from rollout.data import Dataset
from rollout.errors import ConfigError
from rollout.models.sections import Endpoint
from rollout.suite.jobs import job_of
from rollout.testing.chat_server import ChatServer
from rollout.testing.fakes import FakeBridge
from rollout.yaml12 import dump_yaml, load_yaml

ROOT = Path(__file__).resolve().parents[3]
_PLACE = Path(__file__).with_name("scripted.py")
_FOUND = importlib.util.spec_from_file_location("alex_scripted", _PLACE)
s = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(s)

OPTIONS = {"endpoint": Endpoint(url="http://127.0.0.1:9/v1"), "model": "m"}
ANSWERS = {
    "special": {"reasoning": "", "handling": True},
    "see": {"image_summary": "An oak to the left."},
    "long_plan": {"reasoning": "", "long_term_plan": "wood, then tools"},
    "short_plan": {"reasoning": "", "short_term_plan": "Mine 3 oak_log"},
    "act": {"explain": "", "plan": "", "code": "await mineBlock('oak_log', 3)"},
    "critic": {"reasoning": "", "success": True, "critique": ""},
    "skill": {"name": "mine logs", "description": "Mines oak_log with the hand."},
}
FAILED = {"reasoning": "", "success": False, "critique": "only two logs"}


class Game:
    """An agent in a world of plain values; a step at a time."""

    def __init__(self, *, answers=(), rgb=False, multitask=True, **limits):
        spec = MineflayerBridge(actions="code", observe=("rgb", "code_state")).spec
        self.model = s.Model(**{**ANSWERS, **dict(answers)})
        self.requests = []
        ask = self.model.ask
        self.model.ask = lambda request: self.requests.append(request) or ask(request)
        pictures = Pictures(spec, History(images=int(rgb)), Picture())
        client = RoleClient(AlexPolicy(**OPTIONS), load_roles(_PROMPTS, spec), 2)
        thinking = Thinking(
            client, s.TASK, retrieve=Retrieve(), limits=AlexLimits(**limits), multitask=multitask,
            tokens=1536, kind="image/png",
        )  # fmt: skip
        self.policy, self.world = Alex(thinking, pictures, self.model), s.World()
        self.memory = self.policy.initial_memory([Start(s.SPEC.state_space.state(0), 7)])

    def step(self, *, running=False, error="", ticks=20, events=(), trace=()):
        """Plays a step; returns the roles that were asked, whether it is new, and the telemetry."""
        before = len(self.model.asked)
        info = {"is_running": running, "code_tick": ticks, "last_code": "x", "logs": []}
        info["code_error"] = {"error_type": "TypeError", "error_message": error} if error else {}
        self.world.more = {"code_info": info, "trace": list(trace)}
        details = self.world.details()
        details["event"] = [*details["event"], *events]
        observations = {"rgb": np.zeros((1, 32, 32, 3), np.uint8)}
        decision = self.policy.act(observations, self.memory, details=[details], explore=False)
        self.memory, self.world.tick = decision.memory, self.world.tick + 20
        self.stop = decision.stops[0] if decision.stops else ""
        told = decision.extras["companion/telemetry"][0][0]["events"]
        roles = [role for role, _ in self.model.asked[before:]]
        return roles, bool(decision.actions["kind"][0]), told

    @property
    def mind(self):
        return self.memory["mind"][0]


def test_it_plans_acts_waits_and_judges():
    game = Game()
    assert game.step()[:2] == (["long_plan", "short_plan", "act"], True)
    assert game.step(running=True)[:2] == ([], False)
    roles, new, told = game.step()
    assert (roles, new) == (["critic", "skill", "short_plan", "act"], True)
    assert [each.result for each in game.mind.plans] == ["success", "unfinished"]
    assert {"kind": "judged", "verdict": {"success": True, "critique": ""}} in told
    assert "mine logs: Mines oak_log" in game.model.told("act")  # what succeeded is remembered
    assert "Mine 3 oak_log (success)" in game.model.told("short_plan")
    limits = {r.identity[-2]: r.fields["max_tokens"] for r in game.requests}
    assert (limits["act"], limits["critic"]) == (1536, 1024)


def test_a_plan_that_fails_is_tried_again_then_replaced():
    game = Game(answers={"critic": FAILED}, critic=2)
    game.step()
    assert game.step()[0] == ["critic", "act"]
    assert "only two logs" in game.model.told("act")
    assert game.step()[0] == ["critic", "short_plan", "act"]
    assert game.mind.plans[0].result == "failed: only two logs"


def test_an_error_is_mended_until_the_plan_is_too_difficult():
    game = Game(code_errors=3)
    game.step()
    for _ in range(2):
        assert game.step(error="no tree")[0] == ["act"]
        assert "TypeError: no tree" in game.model.told("act")
    assert game.step(error="no tree")[0] == ["short_plan", "act"]
    assert game.mind.plans[0].result == "too difficult: TypeError: no tree"


def test_special_events_interrupt_a_program():
    calls, other = "a0, help me!", "b7, help me!"
    game = Game()
    game.step()
    game.world.says("Ann", calls)
    roles, new, told = game.step(running=True)
    assert (roles, new) == (["special", "short_plan", "act"], True)
    assert told[1] == {"kind": "interrupt", "reasons": [f"<Ann> {calls}"]}
    assert game.mind.plans[0].result == "do it later"  # the same plan was made again
    game.model.answers["special"] = {"reasoning": "", "handling": False}
    hurt = {"type": "entityHurt", "entity_type": "self", "message": "a0 was hurt"}
    assert game.step(running=True, events=[hurt])[:2] == (["special"], False)
    assert game.step(running=True, ticks=510)[0] == ["special"]
    assert game.step(running=True, ticks=620)[0] == []  # once in 500 ticks
    assert game.step(running=True, ticks=1010)[0] == ["special"]
    game.world.says("Ann", other)
    assert game.step(running=True)[0] == []
    single = Game(multitask=False)
    single.step()
    single.world.says("Ann", calls)
    assert single.step(running=True)[0] == []


def test_memories_are_found_by_similarity_and_a_death_ends_the_long_plan():
    game = Game(rgb=True, answers={"critic": FAILED}, critic=1)
    assert game.step()[0] == ["see", "long_plan", "short_plan", "act"]
    request = game.requests[0]
    parts = request.messages[1]["content"]
    assert [part["type"] for part in parts] == ["text", "image", "text"]
    assert parts[1]["digest"] in request.images
    for text in ("The creeper is at the lake.", "Bread is in my chest.", *map(str, range(90))):
        game.world.says("Ann", text)
        game.step(running=True)
    died = {"type": "death", "username": "a0", "message": "a0 died"}
    game.world.says("Ann", "Is the bread still in the chest?")
    roles, _, _ = game.step(events=[died])
    assert roles == ["critic", "see", "long_plan", "short_plan", "act"]
    told = game.model.told("short_plan")[-1]["text"]
    assert '"Ann: Bread is in my chest."' in told
    assert "creeper" not in told
    assert "An oak to the left." in told


def test_an_answer_that_is_no_program_leaves_the_agent_waiting():
    game = Game(answers={"act": "I would rather not."})
    roles, new, told = game.step()
    assert (roles, new) == (["long_plan", "short_plan", "act", "act", "act"], False)
    assert told[-1]["kind"] == "unusable"


def test_an_episode_ends_with_its_programs():
    game = Game(programs=1)
    game.step()
    assert game.stop == ""
    game.step(running=True)
    assert game.stop == ""
    assert game.step()[:2] == ([], False)
    assert game.stop == "the episode has used its 1 programs (limits.programs)"


@pytest.mark.long
def test_agents_build_together_by_the_shipped_configuration(tmp_path):
    stub = ROOT / "examples" / "alex_model.py"
    found = importlib.util.spec_from_file_location("alex_model", stub)
    model = importlib.util.module_from_spec(found)
    found.loader.exec_module(model)
    data = load_yaml(ROOT / "configs" / "mineflayer" / "alex.yaml")
    data |= {"tasks": {"build": {"pillar": "build_pillar"}}, "width": 2, "state_set": {"size": 2}}
    data |= {"output": str(tmp_path / "run"), "wandb": {"mode": "disabled"}}
    with ChatServer(model.answer) as server:
        data["players"] = {"two": data["players"]["two"]}
        data["players"]["two"]["policy"]["endpoint"]["url"] = server.url
        (tmp_path / "alex.yaml").write_text(dump_yaml(data))
        job, config = job_of(data)
        assert main(job, config, "", ["--config", str(tmp_path / "alex.yaml")]) == 0
    with Dataset(tmp_path / "run" / "runs" / "build.pillar.two") as dataset:
        refs = dataset.episodes()
        assert [ref.outcome for ref in refs] == [Outcome.SUCCESS] * 2
        columns = dataset.read(refs[1]).columns
    assert [call["role"] for call in columns["extra/calls"][0]] == [
        *("see", "long_plan", "short_plan", "act"),
    ]
    kinds = [event["kind"] for event in columns["extra/companion/telemetry"][0][0]["events"]]
    assert kinds.count("plan") == 2


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="alex acts by programs"):
        AlexPolicy(**OPTIONS).build(FakeBridge().spec, s.TASK, seed=0)
    with pytest.raises(ConfigError, match=r"vision=true: endpoint\.images=false"):
        AlexPolicy(endpoint=Endpoint(url="http://127.0.0.1:9/v1", images=False), model="m")
    with pytest.raises(ConfigError, match=r"name one in picture\.column"):
        AlexPolicy(**OPTIONS).build(
            MineflayerBridge(actions="code", observe=("code_state",)).spec, s.TASK, seed=0
        )


def test_what_the_server_refuses_is_told_and_alex_goes_on():
    game = Game()
    game.step()
    broken = {"type": "violation", "rule": "protocol_access", "evidence": "set_creative_slot {}"}
    _, _, told = game.step(trace=[broken])
    [violation] = next(each["violations"] for each in told if each["kind"] == "refused")
    assert (violation["layer"], violation["rule"]) == ("server", "protocol_access")
    assert violation["why"]
    assert not game.stop
