"""Records and memories of companions: bounds, provenance, scope, staleness, the file's world."""

import pytest

from policies.companion.memory import MOST_ENTRIES, Memory, given_memory, load_memory
from policies.companion.schemas import Plan, Scope, ValidationOutput, read_reply
from rollout.errors import ConfigError

STEP = '{"index": %d, "subtask": "%s", "dependencies": %s, "success_criteria": "d(x) >= 1"}'


def plan(*steps):
    made = (STEP % (index, name, after) for index, name, after in steps)
    return f'{{"task_plan": [{", ".join(made)}]}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (plan((1, "a", []), (2, "b", [])), "at least 3 items"),
        (plan(*((n, f"s{n}", []) for n in range(1, 7))), "at most 5 items"),
        (plan((1, "a", [3]), (2, "b", []), (3, "c", [])), "earlier ones only"),
        (plan((1, "a", []), (2, "b", []), (3, "A", [])), "must not repeat"),
        (plan((2, "a", []), (1, "b", []), (3, "c", [])), "count from 1"),
        ("I would first go there.", "expected one JSON object"),
        ('{"task_plan": 1}', "valid list"),
    ],
)
def test_a_reply_that_is_no_plan_says_why(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_reply(Plan, text)


def test_replies_are_strict_and_bounded():
    with pytest.raises(ValueError, match="confidence_score"):
        read_reply(ValidationOutput, '{"is_task_completed": true, "confidence_score": 11}')
    with pytest.raises(ValueError, match="is_task_completed"):
        read_reply(ValidationOutput, '{"is_task_completed": "yes", "confidence_score": 9}')
    fenced = '```json\n{"is_task_completed": true, "confidence_score": 9}\n```'
    assert read_reply(ValidationOutput, fenced).is_task_completed


def test_retrieval_is_scoped_and_prefers_what_was_named():
    memory = Memory("w")
    for key, x in (("storage", 40), ("pickaxe_chest", 90), ("mine", 1)):
        value = {"position": [x, 64, 0], "radius": 6}
        memory = memory.remember("landmark", key, value, "told", scope=Scope(player="Ann"))
    memory = memory.remember(
        "landmark", "chest", {"position": [2, 64, 0]}, "told", scope=Scope(player="Ben")
    )
    found = memory.nearest(
        "get the pickaxe from the pickaxe chest",
        k=2,
        scope=Scope(player="Ann"),
        position=(0, 64, 0),
    )
    assert [each.key for each in found] == ["pickaxe_chest", "mine"]


def test_what_is_inferred_replaces_what_is_stale_only():
    memory = Memory("w").remember("preference", "search_radius", 10, "told")
    assert memory.remember("preference", "search_radius", 99, "inferred") == memory
    assert memory.binding("search radius").value == 10
    stale = memory.mark_stale(1)
    assert stale.binding("search_radius") is None
    assert stale.confirm(1, tick=7).binding("search_radius").provenance == "seen"
    assert stale.remember("preference", "search_radius", 9, "inferred").binding("radius").value == 9


def test_a_full_memory_forgets_what_was_used_least():
    memory = Memory("w").remember("artifact", "kept", 0, "seen")
    memory = memory.used(1, tick=5)
    for number in range(MOST_ENTRIES):
        memory = memory.remember("artifact", f"a{number}", number, "seen", tick=number)
    assert len(memory.entries) == MOST_ENTRIES
    keys = {each.key for each in memory.entries.values()}
    assert "kept" in keys
    assert "a0" not in keys


def test_a_file_of_another_world_is_refused(tmp_path):
    path = tmp_path / "memory.json"
    memory = Memory("w1").remember("preference", "colour", "blue", "told")
    memory.save(path)
    assert load_memory(path, "w1") == memory
    with pytest.raises(ConfigError, match="belongs to the world 'w1'"):
        load_memory(path, "w2")
    path.write_text('{"world": "w1", "entries": [{"kind": "rumour"}]}')
    with pytest.raises(ConfigError, match="entries"):
        load_memory(path, "w1")
    path.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_memory(path, "w1")


def test_places_of_a_task_are_relative_to_the_first_agent():
    entry = {
        "kind": "landmark",
        "key": "mine",
        "value": {"position": [26, 0, -2], "radius": 6},
        "provenance": "told",
    }
    memory = given_memory(
        "w", {"memory": [entry], "user": {"user_info": {"user_name": "Ann"}}}, "t", (100.5, 64, 0.5)
    )
    assert memory.entries[1].value["position"] == [126, 64, -2]
    assert memory.user.user_info.user_name == "Ann"
    for broken, where in (([{"kind": "x"}], r"memory\[0\]"), ("x", "a list")):
        with pytest.raises(ConfigError, match=where):
            given_memory("w", {"memory": broken}, "the task t")
    with pytest.raises(ConfigError, match="the task t: user"):
        given_memory("w", {"user": {"name": "Ann"}}, "the task t")


def test_two_runs_that_write_one_file_lose_nothing(tmp_path):
    path = tmp_path / "memory.json"
    begun = Memory("w").remember("preference", "count", 8, "told")
    begun.save_with(path)
    one = load_memory(path, "w").remember("artifact", "chest", "full", "seen")
    other = load_memory(path, "w").remember("preference", "Count", 4, "told")
    one.save_with(path)
    other.save_with(path)
    found = {entry.key: entry.value for entry in load_memory(path, "w").entries.values()}
    assert found == {"chest": "full", "Count": 4}
    path.write_text(path.read_text()[:40])
    with pytest.raises(ConfigError, match="cannot be read"):
        other.save_with(path)
