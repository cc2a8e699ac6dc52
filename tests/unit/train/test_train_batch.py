"""Batches of fragments that were really played, with crashes, limits and idle slots."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollout.testing import FakeBridge, make_fragments
from rollout.train.batch import env_steps, join, part
from rollout.train.gae import CUT, RUNNING, TERMINATED, advantages
from rollout.train.ppo.gather import gather
from tests.unit.train.learning_tools import make_plan, make_schedule, network_of, small

pytestmark = pytest.mark.heavy


def played(folder, bridge, policy, fragments=6, **options):
    """Fragments of a real player, every one checked."""
    plan = make_plan(bridge, policy, **options)
    player = plan.build(0, 0, folder)
    schedule = make_schedule(bridge)
    out = []
    try:
        while len(out) < fragments:
            player.offer(schedule.take(2 * plan.slots - len(player.starts)))
            out.append(player.next_fragment())
            out[-1].check()
    finally:
        player.close()
    return out, player.policy.network


def batch_of(fragment, network, policy, bridge, steps):
    return gather(fragment, network, reads=policy.reads(bridge.spec.observation_space), steps=steps)


def what_follows(fragment, t, b):
    """The observation that truly came after a row, before any reset."""
    ends = fragment.final_index.tolist()
    if [t, b] in ends:
        return {k: v[ends.index([t, b])] for k, v in fragment.final_observations.items()}
    if t == fragment.length - 1:
        return {k: v[b] for k, v in fragment.next_observations.items()}
    return {k: v[t + 1, b] for k, v in fragment.observations.items()}


def check_rows(fragment, batch, network, reads, steps):
    """Every row of a fragment lies at its place, and says truly what comes after it."""
    t, b = fragment.length, fragment.width
    assert batch["valid"].shape == (b, steps)
    assert env_steps(batch) == fragment.env_steps
    np.testing.assert_array_equal(batch["valid"][:, :t], fragment.valid.T)
    assert not batch["valid"][:, t:].any()
    for name in ("reward", "first"):
        np.testing.assert_array_equal(batch[name][:, :t], getattr(fragment, name).T)
        assert not batch[name][:, t:].any()
    for prefix, columns in (("observation/", fragment.observations), ("action/", fragment.actions)):
        for key, own in part(batch, prefix).items():
            np.testing.assert_array_equal(own[:, :t], columns[key].swapaxes(0, 1))
    assert (batch["end"][~batch["valid"]] == TERMINATED).all()
    assert (batch["end"][:, -1] != RUNNING).all()
    assert (batch["version"] == fragment.version[0]).all()
    for slot, row in np.argwhere(batch["valid"]):
        at = (row, slot)
        limit = fragment.truncated[at] or fragment.lost[at]
        border = row == t - 1 and not fragment.done[at]
        expected = TERMINATED if fragment.terminated[at] else CUT if limit or border else RUNNING
        assert batch["end"][slot, row] == expected
        if expected == CUT:
            seen = what_follows(fragment, row, slot)
            with torch.no_grad():
                rows = {k: torch.from_numpy(np.array(seen[k])[None]) for k in reads}
                value = network(rows, {})[1].item()
            assert batch["next_value"][slot, row] == pytest.approx(value, abs=1e-5)


def test_a_played_batch_with_every_kind_of_end(tmp_path):
    bridge = FakeBridge(side=4, crash_on_step=0.02, max_steps=9)
    policy = small(cnn="impala", columns=("position", "image"), cnn_width=0.3, cnn_features=8)
    fragments, network = played(tmp_path, bridge, policy, 12, width=5, steps=16)
    kinds = {"terminated": 0, "truncated": 0, "lost": 0, "short": 0}
    for fragment in fragments:
        if not fragment.length:
            continue
        batch = batch_of(fragment, network, policy, bridge, 16)
        check_rows(fragment, batch, network, ("image", "position"), 16)
        kinds["short"] += fragment.length < 16
        for name in ("terminated", "truncated", "lost"):
            kinds[name] += int(getattr(fragment, name).sum())
    assert min(kinds.values()) > 0, kinds


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    width=st.integers(1, 6), length=st.integers(1, 9), more=st.integers(0, 5),
    episodes=st.sampled_from([None, 3]), lost=st.booleans(),
)  # fmt: skip
def test_batches_of_any_size(width, length, more, episodes, lost):
    """Short fragments, idle slots and losses at every width."""
    bridge, policy = FakeBridge(side=4, max_steps=4), small()
    fragments = make_fragments(
        3, length=length, width=width, episodes=episodes, lost_after=(1,) if lost else (),
        bridge=bridge,
    )  # fmt: skip
    network = network_of(bridge, policy)
    for fragment in fragments:
        batch = batch_of(fragment, network, policy, bridge, length + more)
        check_rows(fragment, batch, network, ("position",), length + more)


def test_rows_before_a_loss_are_worth_what_the_critic_expected_after_them(tmp_path):
    """A crash says nothing of the policy: its last row is neither an end nor a limit of 0."""
    bridge, policy = FakeBridge(side=4, crash_on_step=7, slip=0.0), small()
    plan = make_plan(bridge, policy, width=3, steps=16, limit=None, retries=0)
    player = plan.build(0, 0, tmp_path)
    try:
        player.offer(make_schedule(bridge).take(3))
        fragment = player.next_fragment()
        assert fragment.lost.any()
        network = player.policy.network
    finally:
        player.close()
    batch = batch_of(fragment, network, policy, bridge, 16)
    _, target = advantages(
        batch["reward"], batch["value"], batch["next_value"], batch["end"], gamma=0.9, lambda_=1.0
    )
    checked = 0
    for slot in np.flatnonzero(fragment.lost.any(0)):
        last = int(np.flatnonzero(fragment.lost[:, slot])[0])
        seen = what_follows(fragment, last, slot)
        with torch.no_grad():
            rest = network({"position": torch.from_numpy(seen["position"][None])}, {})[1].item()
        for row in range(last, -1, -1):
            rest = batch["reward"][slot, row] + 0.9 * rest
            assert target[slot, row] == pytest.approx(rest, abs=1e-4)
            checked += 1
    assert checked >= 6


def test_batches_join_one_below_the_other():
    bridge, policy = FakeBridge(side=4, max_steps=4), small(memory="gru")
    network = network_of(bridge, policy)
    fragments = make_fragments(2, length=8, width=3, bridge=bridge, policy=policy)
    batches = [batch_of(f, network, policy, bridge, 8) for f in fragments]
    joined = join(batches)
    for key, array in joined.items():
        np.testing.assert_array_equal(array[:3], batches[0][key])
        np.testing.assert_array_equal(array[3:], batches[1][key])
    assert env_steps(joined) == sum(map(env_steps, batches))
    assert join(batches[:1]).keys() == joined.keys()
