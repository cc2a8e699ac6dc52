"""What was played and what is learned from agree: the test that catches most mistakes.

A player acts step by step, slots share batches as they come, episodes end anywhere. Recomputed
from the batch, in one pass, the log-probability and the value of every step must be what the
player wrote down.
"""

import numpy as np
import pytest
import torch

from rollout.testing import FakeBridge
from rollout.train.batch import MEMORY, OBSERVATION, join, part
from rollout.train.ppo.gather import following_values
from tests.unit.train.learning_tools import (
    RichBridge,
    make_plan,
    make_schedule,
    network_of,
    sampling,
    small,
)

pytestmark = pytest.mark.heavy

SEEN = ("cell", "image", "position")
POLICIES = {
    "mlp": {"columns": ("cell", "position")},
    "separate": {"columns": ("cell", "position"), "shared": False},
    "embedding": {"columns": ("cell",), "embedding": 3, "activation": "relu"},
    "cnn": {"columns": SEEN, "cnn": "impala", "cnn_width": 0.3, "cnn_features": 8},
    "lstm": {"columns": ("cell", "position"), "memory": "lstm"},
    "gru": {"columns": ("cell", "position"), "memory": "gru", "shared": False},
    "cnn lstm": {
        "columns": SEEN, "cnn": "impala", "cnn_width": 0.3, "cnn_features": 8, "memory": "lstm",
    },
}  # fmt: skip
HOSTS = {
    "one slot": {"instances": 1, "width": 1},
    "several games": {"instances": 3, "width": 2},
    "wide": {"instances": 1, "width": 6},
}


def bolder(network, factor=200.0):
    """Weights under which actions have very different probabilities."""
    state = {k: v.clone() for k, v in network.state_dict().items()}
    state["policy_head.weight"] *= factor
    return state


def recomputed(network, batch):
    """Log-probabilities and values of every row, from the batch alone, ``(N, T)``."""
    seen = {k: torch.from_numpy(v).swapaxes(0, 1) for k, v in part(batch, OBSERVATION).items()}
    memory = {k: torch.from_numpy(v) for k, v in part(batch, MEMORY).items()}
    with torch.no_grad():
        logits, values, _ = network.unroll(seen, memory, torch.from_numpy(batch["first"]).T)
        choices = network.layout.encode(part(batch, "action/"))
        choices[~torch.from_numpy(batch["valid"])] = 0  # rows without a step chose nothing
        choices = choices.swapaxes(0, 1)
        logp = network.distribution(logits).log_prob(choices)
    return logp.T.numpy(), values.T.numpy()


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("options", POLICIES.values(), ids=POLICIES)
def test_behaviour_is_recomputed_exactly(options, host):
    bridge, policy = RichBridge(FakeBridge(side=4, crash_on_step=0.02)), small(**options)
    with sampling(bridge, policy, steps=8, limit=9, **host) as sampler:
        network = sampler._policy.network
        sampler.load(bolder(network), 3)
        samples = [sampler.sample() for _ in range(8)]
        batch = join([s.batch for s in samples if s.env_steps])
        assert sum(len(s.losses) for s in samples) > 0
        assert {s.version for s in samples} == {3}
    valid = batch["valid"]
    logp, value = recomputed(network, batch)
    assert np.abs(logp - batch["logp"])[valid].max() < 1e-4
    assert np.abs(value - batch["value"])[valid].max() < 1e-4
    assert batch["logp"][valid].std() > 0.1


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_ignoring_where_episodes_begin_would_be_noticed(memory):
    """The test above can fail: without resets, or without the memory, the numbers are others."""
    bridge, policy = RichBridge(), small(memory=memory)
    with sampling(bridge, policy, steps=16, limit=50, width=8) as sampler:
        network = sampler._policy.network
        sampler.load(bolder(network), 1)
        batch = join([sampler.sample().batch for _ in range(6)])
    assert batch["first"][:, 1:].any()
    logp, _ = recomputed(network, batch)
    assert np.abs(logp - batch["logp"])[batch["valid"]].max() < 1e-4
    for wrong in (
        {"first": np.zeros_like(batch["first"])},
        {k: np.zeros_like(v) for k, v in batch.items() if k.startswith(MEMORY)},
    ):
        logp, _ = recomputed(network, {**batch, **wrong})
        assert np.abs(logp - batch["logp"])[batch["valid"]].max() > 1e-2


@pytest.mark.parametrize("memory", ["none", "lstm", "gru"])
def test_following_values_are_those_of_stepping_by_hand(memory, tmp_path):
    """The memory with which a final observation is valued is that of its own episode."""
    bridge, policy = FakeBridge(side=4, crash_on_step=0.03), small(memory=memory)
    player = make_plan(bridge, policy, width=3, steps=10, limit=4).build(0, 0, tmp_path)
    schedule, fragments = make_schedule(bridge), []
    try:
        while len(fragments) < 6:
            player.offer(schedule.take(6 - len(player.starts)))
            fragments.append(player.next_fragment())
    finally:
        player.close()
    network, checked = player.policy.network, 0
    for fragment in fragments:
        final, following = following_values(network, fragment, ("position",))
        expected = by_hand(network, fragment)
        assert final.shape == (len(fragment.final_index),)
        assert following.shape == (3,)
        for number, (t, b) in enumerate(fragment.final_index):
            assert final[number] == pytest.approx(expected[t, b], abs=1e-5)
            checked += 1
        for slot in range(3):
            assert following[slot] == pytest.approx(expected[fragment.length - 1, slot], abs=1e-5)
    assert checked > 10


@torch.no_grad()
def by_hand(network, fragment):
    """The value of what came after each row, with the memory after that row."""
    memory = {k: torch.from_numpy(fragment.memory[k].copy()) for k in network.memory_keys}
    ends = {tuple(at): k for k, at in enumerate(fragment.final_index.tolist())}
    out = {}
    for t in range(fragment.length):
        blank = torch.from_numpy(fragment.first[t])[:, None]
        memory = {k: torch.where(blank, 0.0, v) for k, v in memory.items()}
        seen = {"position": torch.from_numpy(fragment.observations["position"][t])}
        _, _, memory = network(seen, memory)
        last = t == fragment.length - 1
        for b in range(fragment.width):
            source, row = fragment.next_observations, b
            if (t, b) in ends:
                source, row = fragment.final_observations, ends[t, b]
            elif not last:
                continue
            one = {"position": torch.from_numpy(source["position"][row][None].copy())}
            own = {k: v[b : b + 1] for k, v in memory.items()}
            out[t, b] = network(one, own)[1].item()
    return out


@pytest.mark.parametrize("options", [POLICIES["embedding"], POLICIES["gru"]], ids=["mlp", "gru"])
def test_slots_that_never_play_disturb_nobody(options, tmp_path):
    """Two episodes for five slots, as at the end of an evaluation: the others show only zeros."""
    bridge, policy = RichBridge(), small(**options)
    played = []
    for width in (2, 5):
        (tmp_path / str(width)).mkdir()
        player = make_plan(bridge, policy, width=width, steps=32, limit=20).build(
            0, 0, tmp_path / str(width)
        )
        player.policy.load(bolder(network_of(bridge, policy, seed=4)), 1)
        player.offer(make_schedule(bridge).take(2))
        fragment = player.next_fragment()
        player.close()
        assert fragment.valid.any(0).sum() == 2
        played.append([fragment.actions["camera"][:, b][fragment.valid[:, b]] for b in (0, 1)])
    for two, five in zip(*played, strict=True):
        np.testing.assert_array_equal(two, five)
