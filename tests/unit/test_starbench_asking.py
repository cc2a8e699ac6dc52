"""Ask-or-act: retrieval, its bounds, the choice before a battle, and the metrics of Table 6."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.starbench import StarbenchBridge
from bridges.starbench.asking import (
    MOST_WORDS,
    Entry,
    Notes,
    allowed,
    echo_score,
    efficiency,
    metrics,
    read_log,
    write_log,
)
from bridges.starbench.options import NO_OP, QUESTION
from rollout.api import ACTION, Start
from rollout.errors import ConfigError, InputError
from rollout.tasks import load_task

NOTES = Notes()


def test_the_corpus_is_frozen():
    assert 60 <= len(NOTES.passages) <= 100
    assert Notes().passages == NOTES.passages
    assert all(allowed(passage) for passage in NOTES.passages.values())


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("How do I deal damage to the Swarm King with a Quantum team?", "implant"),
        ("what heals Phantylia", "lotus of abundance"),
        ("When should I renew Fu Xuan's matrix?", "one turn of the matrix"),
        ("how many cycles does a wave count", "150 action value"),
    ],
)
def test_answers_are_found(question, part):
    answer = NOTES.ask(question)
    assert part in answer.text
    assert answer == NOTES.ask(question)
    assert set(answer.doc_ids) <= set(NOTES.passages)


@given(st.text(max_size=60))
def test_no_question_breaks_it(question):
    try:
        answer = NOTES.ask(question)
    except InputError:
        return
    assert len(answer.text.split()) <= MOST_WORDS
    assert allowed(answer.text)


def test_coordinates_never_get_through(tmp_path):
    (tmp_path / "a.md").write_text(
        "# Skill\n\nClick (1760, 990) for it. Play (0, 1, 5). Use skill.\n"
    )
    assert Notes(tmp_path).ask("skill click play").text == "Use skill."
    with pytest.raises(ConfigError, match="found none"):
        Notes(tmp_path / "nothing")


# Table 6: AR in percent, effect and the efficiency that was printed.
TABLE6 = [
    *((52.5, 82.8, 19.7), (22.5, 49.4, 27.4), (97.5, 47.4, 6.1)),
    *((62.5, 17, 3.4), (100, 16, 2.0), (100, 0, 0)),
    *((100, 10800, 1350), (100, 6400, 800), (100, 2000, 250)),
    *((100, 3002, 375.3), (100, 2817, 352.1), (100, 380, 47.5)),
]


@pytest.mark.parametrize(("rate", "effect", "printed"), TABLE6)
def test_efficiencies_of_table_6(rate, effect, printed):
    assert efficiency(effect, rate) == pytest.approx(printed, abs=0.051)


def test_metrics_by_hand(tmp_path):
    entries = [
        Entry("cocolia", 1, "ask", -30.0),
        Entry("cocolia", 2, "ask", -24.0, -30.0),
        Entry("cocolia", 3, "act", -28.0, -24.0),
        Entry("feixiao", 1, "act", -300.0),
    ]
    found = metrics(entries)
    assert found["AR"] == 50.0
    assert (found["effect"], found["effect_abs"]) == (6.0, -27.0)
    assert found["efficiency"] == pytest.approx(6 / (8 * 0.5))
    assert metrics(entries[2:])["efficiency"] == 0.0
    assert metrics(entries[:1])["effect"] is None
    log = tmp_path / "ask_log.jsonl"
    write_log(log, entries)
    with log.open("a") as file:
        file.write('{"task": "coc')  # the run was killed
    assert read_log(log) == entries
    assert echo_score(31, True) == -31
    assert echo_score(300, False) == -300
    with pytest.raises(InputError, match="'ask' or 'act'"):
        Entry("cocolia", 1, "wait", 0.0)


def test_the_answer_is_shown_in_every_later_step(tmp_path):
    log = tmp_path / "ask_log.jsonl"
    bridge = StarbenchBridge(ask=True, ask_log=str(log))
    instance = bridge.launch(tmp_path, (), width=1, timeout_s=5)
    state = load_task(bridge.spec, "starbench", "cocolia").state_space.state(0)

    def play(question):
        frame = instance.reset([0], [Start(state, 1)], timeout_s=5)
        assert "you may ask one question" in frame.details[0]["text"]
        asked = {ACTION: np.array([NO_OP]), QUESTION: np.array([question], object)}
        frame = instance.step(asked, timeout_s=5)
        assert frame.tick[0] == 0
        shown = []
        while not frame.game_over[0]:
            shown.append("Answer to your question" in frame.details[0]["text"])
            frame = instance.step(asked, timeout_s=5)
        return shown

    assert all(play("Which lances should I defeat first?"))
    assert not any(play(""))
    first, second = map(json.loads, log.read_text().splitlines())
    assert (first["choice"], first["k"], first["prev_score"]) == ("ask", 1, None)
    assert "battles/" in first["doc_ids"][0]
    assert (second["choice"], second["k"], second["prev_score"]) == ("act", 2, -300.0)
    with pytest.raises(ConfigError, match="not to dc"):
        StarbenchBridge(view="dc", ask=True)
