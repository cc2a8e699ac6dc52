"""MineNPC-Task's tasks: their conditions on made-up runs, their states, what is refused."""

import re
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.minenpc import experts
from bridges.mineflayer.minenpc.evaluator import MineNpc
from bridges.mineflayer.minenpc.predicates import Places, number
from bridges.mineflayer.minenpc.scene import PAPER, case_of, tasks
from bridges.mineflayer.minenpc.subtasks import subtasks
from bridges.mineflayer.minenpc.trace import Trace
from bridges.mineflayer.spaces import MOST_CODE
from rollout.api import Frame, Outcome, Start, State
from rollout.commands import judge_again
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.notes import notes_sections
from rollout.tasks import load_task
from rollout.yaml12 import load_yaml

TRACES = load_yaml(Path(__file__).parent / "data" / "minenpc_traces.yaml", ours=True)
COUNTED = ("dug", "crafted", "tossed", "gave", "took", "put")


def frame(details):
    no = np.zeros(1, np.bool_)
    return Frame({}, {}, no, no, np.zeros(1, np.int64), [details])


def given(name):
    """The agent's items at the start."""
    fields = {
        "n": tasks()[name].get("counts", [0])[0],
        "m": tasks()[name].get("materials", [""])[0],
    }
    give = tasks()[name].get("give", {}).items()
    return {item.format(**fields): number(str(n).format(**fields)) for item, n in give}


def at(case, words):
    return [int(each) for each in words] if len(words) == 3 else case.places.points[words[0]]


class Run:
    """The details of a run, from lines of the data file."""

    def __init__(self, name, lines):
        self.case = case_of({"npc": name, **PAPER})
        self.items, self.events, self.drops, self.blocks = dict(given(name)), [], [], {}
        self.place = [3.5, 64, 2.5]
        for line in lines:
            words, _, where = line.partition(" @")
            self.add(words.split(), where.replace("tool=", "").replace("age=", "").split())

    def add(self, words, where):
        kind, *rest = words
        extra = {k: v for k, _, v in (word.partition("=") for word in rest if "=" in word)}
        rest = [word for word in rest if "=" not in word]
        tool = next((word for word in where if not word.lstrip("-").isdigit()), "")
        position = [int(word) for word in where if word.lstrip("-").isdigit()] or [31, 65, 0]
        event = {"type": kind, "tick": 5, "who": "a0", "position": position}
        if kind == "d":
            self.items[rest[0]] = self.items.get(rest[0], 0) + int(rest[1])
        elif kind == "dug":
            about = {"block": rest[0], "tool": extra.get("tool", tool)}
            about["properties"] = {"age": int(extra["age"])} if "age" in extra else {}
            self.events += [{**event, **about}] * int(rest[1])
        elif kind in ("took", "put"):
            chest = self.case.places.points[rest[0]]
            about = {"item": rest[1], "count": int(rest[2]), "position": chest}
            self.events += [{**event, **about}] * bool(about["count"])
        elif kind == "gave":
            self.events.append({**event, "item": rest[0], "count": int(rest[1]), "to": "Player1"})
        elif kind == "lie":
            lying = {"item": rest[0], "count": int(rest[1]), "position": position, "thrower": "a0"}
            self.drops.append(lying)
        elif kind == "say":
            self.events.append({**event, "type": "chat", "text": " ".join(rest)})
        elif kind == "at":
            self.place = at(self.case, rest)
        elif kind == "crops":
            for cell in self.case.places.cells["bare"][: int(rest[0])]:
                self.blocks[cell] = "wheat"
        elif kind == "block":
            corners = [int(each) for each in rest[1:]]
            ranges = [range(corners[k], corners[k + 3] + 1) for k in range(3)]
            for cell in product(*ranges):
                self.blocks[cell] = rest[0]
        else:
            self.events.append({**event, "item": rest[0], "count": int(rest[1])})

    def details(self, tick, *more):
        shown = {f"{x} {y - 64} {z}": block for (x, y, z), block in self.blocks.items()}
        items = {k: {"name": name, "count": n} for k, (name, n) in enumerate(self.items.items())}
        return {
            "name": "a0",
            "tick": tick,
            "inventory_all": items,
            "location_stats": {"pos": self.place},
            "trace": [*self.events, *more],
            "privileged": {"regions": {"all": shown}, "drops": self.drops},
        }

    def outcome(self, *more):
        """The outcome after the run, and the evaluator."""
        name = self.case.name
        evaluator = MineNpc().build(1)
        start = Run(name, []).details(0)
        start["privileged"]["drops"] = []
        values = {"npc": name, **PAPER}
        evaluator.reset([0], [Start(State(0, values), 1)], frame(start))
        evaluator.judge({}, frame(self.details(10, *more)))
        self.events = []
        return Outcome(evaluator.judge({}, frame(self.details(100))).outcome[0]), evaluator


def one_less(line):
    """The last line of a run, with one less of what it has."""
    words, sign, where = line.partition(" @")
    words = words.split()
    if words[0] == "at":
        return []
    if words[0] == "block":
        corner = words[-3:]
        return [line, " ".join(["block", "air", *corner, *corner])]
    place = next(k for k, word in enumerate(words) if word.lstrip("-").isdigit())
    count = int(words[place])
    words[place] = str(count - (1 if count > 0 else -1))
    return [" ".join(words) + sign + where]


@pytest.mark.parametrize("name", tasks())
def test_a_run_passes_a_near_miss_fails_and_a_violation_is_invalid(name):
    lines = TRACES[name]
    won, evaluator = Run(name, lines).outcome()
    assert won == Outcome.SUCCESS, evaluator.why(0)
    missed, evaluator = Run(name, [*lines[:-1], *one_less(lines[-1])]).outcome()
    assert missed == Outcome.RUNNING
    assert evaluator.why(0)
    assert 0 < evaluator.share()[0] < 1
    breach = {"type": "violation", "who": "a0", "tick": 6, "rule": "commands", "evidence": "/give"}
    invalid, evaluator = Run(name, lines).outcome(breach)
    assert invalid == Outcome.INVALID
    assert evaluator.why(0) == ["violation of commands"]
    asked = {"type": "chat", "who": "a0", "tick": 6, "text": "How many?"}
    assert Run(name, lines).outcome(asked)[0] == Outcome.SUCCESS
    assert Run(name, lines).outcome(asked, asked)[0] == Outcome.RUNNING


SOLID = "block {0} 4 64 4 {1} {2} {1}"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("T01", ["took pickaxe_chest iron_pickaxe 1", "put pickaxe_chest iron_pickaxe 1"]),
        ("K03", [*TRACES["K03"], "took block_storage sand 1"]),
        ("S01", [*TRACES["S01"], "took chest_before oak_log 1"]),
        ("S01", ["put chest_before oak_log 3", "took chest_before oak_log 3", *TRACES["S01"][2:],
                 "put chest_before oak_log 4", "d oak_log -5"]),
        ("C01", [SOLID.format("sand", 8, 68)]),
        ("C02", ["block oak_planks -32 64 18 -28 67 22", "block air -31 64 19 -29 66 21"]),
        ("C03", ["dug dirt 80", SOLID.format("dirt", 8, 66)]),
        ("R11", [*TRACES["R11"], "say How many? Tell me", "say Which \uff1f"]),
    ],
    ids=range(8),
)  # fmt: skip
def test_what_only_looks_like_the_task_does_not_pass(name, lines):
    outcome, evaluator = Run(name, lines).outcome()
    assert outcome == Outcome.RUNNING
    assert evaluator.why(0)


def test_an_evaluator_notes_what_reports_show():
    _, evaluator = Run("K03", [*TRACES["K03"], "say How many?"]).outcome()
    good = {"why": [], "class": "", "clarified": True, "preferred": True}
    assert evaluator.notes(0) == good
    _, evaluator = Run("K03", [*TRACES["K03"][:-1], "took block_storage sand 1"]).outcome()
    bad = evaluator.notes(0)
    assert (bad["class"], bad["clarified"], bad["preferred"]) == ("referencing", False, False)
    roles = {"plan": {"calls": 2, "seconds": 3.0, "input_tokens": 70, "output_tokens": 5}}
    text = notes_sections([good, {**bad, "roles": roles}, {"roles": roles}])
    assert "Did as the profile of the player says: 1 of 2 episodes" in text
    assert "| plan | 4 | 1.50 | 140 | 10 |" in text
    assert "| referencing | 1 |" in text
    assert "took(block_storage, glass_pane) >= 8 | 1 |" in text


def test_what_was_taken_by_mistake_may_be_put_back():
    lines = ["took block_storage sand 3", *TRACES["K03"], "put block_storage sand 3"]
    assert Run("K03", lines).outcome()[0] == Outcome.SUCCESS


def test_the_player_answers_questions_only():
    [player] = case_of({"npc": "T01", **PAPER}).scene.cast
    [(pattern, _)] = player.data()["answers"]
    said = {"Which pickaxe?": True, "Is it iron? Say so": True, "Plan: 1 take an iron one": False}
    assert {line: bool(re.search(pattern, line, re.IGNORECASE)) for line in said} == said


@pytest.mark.parametrize("name", tasks())
def test_doing_nothing_passes_no_variant(name):
    outcome, _ = Run(name, []).outcome()
    assert outcome == Outcome.RUNNING


def test_every_variant_can_be_set_up_and_turns_with_its_places():
    spec = MineflayerBridge(minenpc=True).spec
    for name in tasks():
        space = load_task(spec, "mineflayer", f"minenpc/{name}").state_space
        assert space.size >= 96, name
        for number_of in range(0, space.size, space.size // 5):
            assert case_of(space.state(number_of).values).scene.commands
    known = case_of({"npc": "R04", **PAPER})
    turned = case_of({"npc": "R04", **PAPER, "turn": 90})
    x, y, z = known.places.points["treasure_box"]
    assert turned.places.points["treasure_box"] == (-z, y, x)
    keys = [entry["key"] for entry in known.memory]
    hidden = case_of({"npc": "R04", **PAPER, "memory": "hidden"})
    assert [key for key in keys if key != "treasure_box"] == [e["key"] for e in hidden.memory]
    stale = case_of({"npc": "R04", **PAPER, "memory": "stale"})
    assert stale.places.points["treasure_box"] != (x, y, z)
    assert [x, y, z] in [entry["value"] for entry in stale.memory]


def test_conditions_are_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="cobblestone"):
        MineNpc(goal=("d(cobblestoen) >= 3",))
    with pytest.raises(UnknownNameError, match="pickaxe"):
        MineNpc(goal=("dug(stone, tool='*_pickax') >= 3",))
    with pytest.raises(UnknownNameError, match="dug"):
        MineNpc(goal=("dig(stone) >= 3",))
    with pytest.raises(UnknownNameError, match="place"):
        MineNpc(goal=("near(Farm, 3)",))
    with pytest.raises(ConfigError, match="expected took"):
        MineNpc(goal=("took(P) >= 3",))
    with pytest.raises(ConfigError, match="no condition"):
        MineNpc(goal=("d(dirt >= 3",))
    with pytest.raises(ConfigError, match="expected a call"):
        MineNpc(goal=("__import__",))
    assert MineNpc(goal=("near(Farm, 3)",), places={"Farm": (1, 64, 2)}).conditions()


def test_each_task_has_an_expert_that_knows_its_request():
    assert experts.programs().keys() == tasks().keys()
    for name in tasks():
        case = case_of({"npc": name, **PAPER, "count": 1, "material": 1, "turn": 270})
        assert experts.task_of(case.request)[0] == name
        assert len(experts.program(case.told())) < MOST_CODE
    told = {"request": "Give me 4 oak_log.", "memory": [], "user": {}}
    program = experts.program(told)
    assert experts.task_of(told["request"]) == ("R11", {"n": 4, "m": "oak_log"})
    assert 'const ASKED = {"n": 4, "m": "oak_log"};' in program
    assert "function give(" in program
    assert "function walk(" in program  # used by what it uses
    assert "function mine(" not in program
    details = [{}, case.told()]
    acts = experts.play({"life": np.zeros((2, 1))}, details, explore=False)
    assert acts["kind"].tolist() == [0, 1]
    assert not acts["code"][0]
    with pytest.raises(ConfigError, match="no expert knows"):
        experts.task_of("Sing a song.")


class Recorded:
    """A dataset of one episode, as its reader gives it."""

    columns = ("details", judge_again.TELEMETRY)

    def __init__(self, shown):
        self.shown = shown

    def read(self, ref, columns):
        if columns == [judge_again.TELEMETRY]:
            asked = {"kind": "asked", "role": "plan", "calls": 2, "seconds": 3.0}
            events = [{**asked, "input_tokens": 50}, {"kind": "preference", "hit": True}]
            return SimpleNamespace(columns={judge_again.TELEMETRY: [{"events": events}, None]})
        return SimpleNamespace(columns={"details": self.shown[:-1]}, final_details=self.shown[-1])


def test_recorded_runs_are_judged_again_without_the_game():
    spec = MineflayerBridge(minenpc=True).spec
    task = load_task(spec, "mineflayer", "minenpc/R11")
    state = task.state_space.index({f.name: f.values[0] for f in task.state_space})
    breach = {"type": "violation", "who": "a0", "tick": 6, "rule": "commands", "evidence": "/give"}
    found = []
    for number_of, (lines, more) in enumerate(
        [(TRACES["R11"], ()), (["tossed cobblestone 3"], ()), (TRACES["R11"], (breach,))]
    ):
        run = Run("R11", lines)
        shown = [
            Run("R11", []).details(0),
            run.details(10, *more),
            {**run.details(100), "trace": []},
        ]
        ref = SimpleNamespace(
            episode=number_of, state=state, seed=1, end="truncated", outcome=Outcome.RUNNING
        )
        found.append(judge_again._judged(Recorded(shown), ref, task))
    assert [each["now"] for each in found] == ["success", "running", "invalid"]
    assert found[1]["why"] == ["gave(cobblestone) >= 4", "d(cobblestone) == -4"]
    assert found[1]["class"] == "inventory or tool"
    assert found[2]["why"] == ["violation of commands"]
    report = judge_again.write_report(found)
    assert "| mining | 1 / 2 | 0.500 [0.095, 0.905] | 1 |" in report
    assert "| gave(cobblestone) >= 4 | 1 |" in report
    assert "| 0 | running | success |" in report
    assert "Asked exactly if something was open: 3 of 3 episodes, 1.000 [0.439, 1.000]" in report
    assert "Remembered preferences: 3 hits, 0 misses." in report
    assert "| plan | 6 | 1.50 | 150 | 0 |" in report


def test_what_cannot_be_judged_again_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="directory of a run"):
        judge_again.judge_again(tmp_path)
    task = "{bridge: {name: blockworld}, task: hunt_sheep}"
    (tmp_path / "config.yaml").write_text(task)
    with pytest.raises(ConfigError, match="judged by signals"):
        judge_again.judge_again(tmp_path)


def test_the_subtasks_are_the_papers_and_their_checks_can_be_read():
    all_of_them = subtasks()
    assert [each.number for each in all_of_them] == list(range(1, 217))
    assert sum(not each.repeats for each in all_of_them) == 204
    known = case_of({"npc": "A06", **PAPER}).places
    points = {**known.points, "target": (5, 64, 5)}
    places = Places(points, {**known.cells, "targets": ((5, 64, 5),)})
    for each in all_of_them:
        assert each.condition(places).predicates, each
    kinds = Counter(each.kind for each in all_of_them)
    assert (kinds["near"], kinds["see"], kinds["inv"], kinds["take"]) == (47, 39, 35, 16)
    domains = Counter(each.category for each in all_of_them)
    assert domains["navigation and movement"] == 64
    assert domains["resource collection"] == 48
    done = Trace(path=[(12, 64, 0)], events=[{"type": "chat", "who": "a0", "text": "at 5 64 5"}])
    near, see = all_of_them[12], all_of_them[14]
    assert near.condition(places).holds(done)
    assert see.condition(places).holds(done)
    assert not near.condition(places).holds(Trace(path=[(20, 64, 0)]))


def test_judging_what_recorded_nothing_ends_in_a_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.yaml").write_text("bridge: {name: mineflayer}\ntask: minenpc/R01\n")
    for folder, said in ((tmp_path, "holds no dataset"), (tmp_path / "none", "config.yaml")):
        monkeypatch.setattr("sys.argv", ["gamut judge", "--again", str(folder)])
        assert judge_again.main() == 2
        assert said in capsys.readouterr().err
