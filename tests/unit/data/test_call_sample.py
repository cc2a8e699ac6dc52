"""The sample of calls of models that dashboards show."""

from types import SimpleNamespace

import numpy as np

from rollout.api import CALLS, Call
from rollout.data import CallSample
from rollout.data.tables import read_table


def fragment(episode, calls):
    """Two slots, of which the second is idle; ``calls`` are those of each step of the first."""
    length = len(calls)
    column = np.zeros((length, 2), object)
    for t, each in enumerate(calls):
        column[t] = [None, None]
        column[t, 0] = each
    index = np.stack([np.zeros(length, np.int32), np.full(length, -1, np.int32)], axis=1)
    return SimpleNamespace(
        extras={CALLS: column},
        valid=index >= 0,
        starts=[SimpleNamespace(episode=episode)],
        start_index=index,
        step=np.stack([np.arange(length)] * 2, axis=1),
    )


def call(number, **more):
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": f"n{number}"}]
    known = {"asked": "tiny", "messages": messages, "answer": f"a{number}", "action": "up", **more}
    return Call(**known).as_json()


def written(sample, path):
    sample.write(path / "tables" / "calls.parquet")
    table = read_table(path / "tables" / "calls.parquet")
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def test_a_call_becomes_a_row_and_what_is_unknown_stays_unknown(tmp_path):
    sample = CallSample()
    known = {"input_tokens": 100, "output_tokens": 7, "usd": 0.25, "seconds": 1.5}
    parts = [{"type": "image", "digest": "d"}, {"type": "text", "text": "look"}]
    shown = [{"role": "user", "content": parts}]
    bad = {"usable": False, "action": None, "input_tokens": 3, "output_tokens": None}
    sample.add(fragment(4, [[call(0, **bad), call(1, **known)], [], [call(2, messages=shown)]]))
    sample.add(SimpleNamespace(extras={}))  # of a policy without models
    unusable, first, picture = written(sample, tmp_path)
    assert (unusable["usable"], unusable["action"], first["usable"]) == (False, "", True)
    assert np.isnan([unusable["tokens"], unusable["usd"], picture["seconds"]]).all()
    assert (first["tokens"], first["usd"], first["seconds"]) == (107, 0.25, 1.5)
    assert (first["prompt"], first["answer"], first["model"]) == ("n1", "a1", "tiny")
    assert [(row["episode"], row["step"]) for row in (first, picture)] == [(4, 0), (4, 2)]
    assert picture["prompt"] == "[image]\nlook"


def test_of_many_calls_there_is_a_sample_of_all_in_their_order(tmp_path):
    sample = CallSample()
    for episode in range(40):
        sample.add(fragment(episode, [[call(50 * episode + t)] for t in range(50)]))
    sample.add(fragment(40, [[call(2000, answer="x" * 3000)]] * 500))
    assert sample.seen == 2500
    rows = written(sample, tmp_path)
    assert len(rows) == 500
    places = [50 * row["episode"] + row["step"] for row in rows]
    assert places == sorted(set(places))
    assert 300 < np.mean([place < 2000 for place in places]) * 500 < 450  # 400 are expected
    assert max(len(row["answer"]) for row in rows) == 2004
