"""``algorithm=bc``: behaviour cloning on a recorded dataset, and what it refuses."""

import json
import pkgutil
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gamut
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.actor_critic import ActorCriticPolicy
from rollout.api import Progress
from rollout.cli import Session, main
from rollout.collect import collect
from rollout.config import CollectConfig, build_plugin, resolved
from rollout.data import Dataset
from rollout.data.windows import GroupCache
from rollout.errors import ConfigError, DatasetError, InputError
from rollout.observe.metrics import read_metrics
from rollout.signals import Stop
from rollout.testing.fakes import FakeBridge
from rollout.train.checkpoint import find_checkpoint
from rollout.train.dataset_learner import DatasetLearner
from rollout.train.export import export
from rollout.train.offline import learn_offline
from rollout.train.offline_config import Bc, OfflineConfig, weight_of
from rollout.train.reading import decided
from rollout.train.recorded import Demonstrations, PartReader, StepColumns

pytestmark = pytest.mark.heavy

WRITTEN = ["env_steps", "clone/epoch", "clone/loss", "clone/held_out_loss"]
KEPT = ["observation/position", "action/move"]


def expert(observations):
    """A move for each quarter of the map."""
    position = observations["position"]
    return (1 + (position[:, 0] > 0.5) + 2 * (position[:, 1] > 0.5)).astype(np.int64)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run directory of a dataset of the expert."""
    folder = tmp_path_factory.mktemp("demonstrations") / "run"
    config = CollectConfig.model_validate(
        {
            "output": str(folder),
            "bridge": {"name": "fake", "max_steps": 12},
            "policy": {"name": "callable", "function": f"{__name__}:expert"},
            "episodes": 24,
            "actors": 0,
            "width": 8,
            "wandb": {"mode": "disabled"},
        }
    )
    with Stop() as stop:
        assert collect(config, Session(resume=False, stop=stop)) is None
    return folder


def test_spaces_without_keys_are_cloned_too(tmp_path):
    recording = CollectConfig.model_validate(
        {
            "output": str(tmp_path / "recorded"),
            "bridge": {"name": "gymnasium", "id": "CartPole-v1"},
            "policy": {"name": "random"},
            "episodes": 4,
            "actors": 0,
            "wandb": {"mode": "disabled"},
        }
    )
    with Stop() as stop:
        assert collect(recording, Session(resume=False, stop=stop)) is None
    policy = {"name": "actor_critic", "hidden": [16]}
    cloned_run = {"output": str(tmp_path / "run"), "dataset": str(tmp_path / "recorded")}
    assert cloned(OfflineConfig.model_validate({**cloned_run, "policy": policy}))["epochs"] == 10


def config_of(recorded, folder, memory="none", algorithm="bc", **keys):
    policy = {"name": "actor_critic", "hidden": [16], "columns": ["position"], "memory": memory}
    more = {"wandb": keys.pop("wandb")} if "wandb" in keys else {}
    algorithm = {"name": algorithm, "epochs": 4, "minibatch": 32, "bptt": 8, "lr": 0.03, **keys}
    keys = {"output": str(folder), "dataset": str(recorded), "policy": policy, **more}
    return OfflineConfig.model_validate({**keys, "algorithm": algorithm})


def cloned(config, *, resume=False):
    with Stop() as stop:
        learn_offline(config, Session(resume=resume, stop=stop))
    return json.loads((config.output / "summary.json").read_text())["results"]


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_loss_falls_also_on_episodes_that_it_does_not_learn_from(recorded, tmp_path, memory):
    first = cloned(config_of(recorded, tmp_path / "one", memory, epochs=1))
    last = cloned(config_of(recorded, tmp_path / "more", memory, epochs=8))
    assert last["held_out_loss"] < 0.7 * first["held_out_loss"] < 0.7 * np.log(5) + 0.1
    assert last["loss"] < first["loss"]
    assert (last["episodes"], last["held_out_episodes"]) == (22, 2)


def test_the_checkpoint_plays_what_was_shown(recorded, tmp_path):
    cloned(config_of(recorded, tmp_path / "run", epochs=16))
    played = CollectConfig.model_validate(
        {
            "output": str(tmp_path / "played"),
            "bridge": {"name": "fake", "max_steps": 12},
            "policy": {"name": "checkpoint", "path": str(tmp_path / "run")},
            "episodes": 8,
            "actors": 0,
            "explore": False,
            "wandb": {"mode": "disabled"},
        }
    )
    with Stop() as stop:
        assert collect(played, Session(resume=False, stop=stop)) is None
    with Dataset(tmp_path / "played") as dataset:
        episodes = [dataset.read(ref, KEPT).columns for ref in dataset.episodes()]
    seen, moves = (np.concatenate([each[key] for each in episodes]) for key in KEPT)
    assert (moves == expert({"position": seen})).mean() > 0.8


def test_a_resumed_cloning_ends_with_the_same_weights(recorded, tmp_path, monkeypatch):
    whole = config_of(recorded, tmp_path / "whole", "gru")
    cloned(whole)
    part = config_of(recorded, tmp_path / "part", "gru")

    def kill_at(name, number):
        """Kills a session when it writes the line or the checkpoint of an epoch."""
        owner, method = name.rsplit(".", 1)
        own = getattr(pkgutil.resolve_name(owner), method)

        def killed(*args, **keys):
            values = next(a for a in args if isinstance(a, dict))
            if number in (values.get("clone/epoch"), values.get("update")):
                raise RuntimeError("killed")
            return own(*args, **keys)

        with monkeypatch.context() as patch:
            patch.setattr(name, killed)
            with pytest.raises(RuntimeError, match="killed"):
                cloned(part, resume=part.output.exists())

    kill_at("rollout.observe.metrics.Metrics.write", 2)
    kill_at("rollout.train.rounds.write_checkpoint", 3)
    cloned(part, resume=True)
    one, other = (find_checkpoint(config.output).weights() for config in (whole, part))
    assert all((one[key] == other[key]).all() for key in one)
    lines = [list(read_metrics(config.output / "metrics.jsonl")) for config in (whole, part)]
    one, other = ([{k: line[k] for k in WRITTEN} for line in each] for each in lines)
    assert other == one
    assert [line["clone/epoch"] for line in other] == [1, 2, 3, 4]


def test_a_cloning_reads_as_a_training_of_the_game_and_keeps_it(recorded, tmp_path):
    config = config_of(recorded, tmp_path / "run", epochs=1)
    cloned(config)
    kept = find_checkpoint(config.output).policy[1]
    spec = FakeBridge(max_steps=12).spec
    assert kept == decided(config.policy, spec.observation_space).options
    assert (kept["numbers"], kept["symbols"], kept["pictures"]) == (["position"], [], [])
    assert config.policy.options["numbers"] == []


def test_python_runs_it_and_a_callback_ends_it(recorded, tmp_path):
    config = config_of(recorded, tmp_path / "run", wandb={"mode": "disabled"})
    seen = []

    def at_two(record):
        seen.append((record.update, record.env_steps, record.metrics["clone/loss"] > 0))
        return record.update == 2

    for resume in (False, True):  # a resumed run has nothing left to do
        run = gamut.train(resolved(config), on_update=at_two, resume=resume)
        assert run.missing is None
        assert run.summary["results"]["epochs"] == 2
        assert run.summary["results"]["ended_by"].endswith("at_two")
        steps = run.summary["results"]["env_steps"]
        assert seen == [(1, steps, True), (2, 2 * steps, True)]
    assert find_checkpoint(run.path).update == 2


def test_an_error_of_a_callback_ends_it_with_everything_saved(recorded, tmp_path):
    config = config_of(recorded, tmp_path / "run", wandb={"mode": "disabled"})

    def fail_at_two(record):
        if record.update == 2:
            raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        gamut.train(resolved(config), on_update=fail_at_two)
    summary = json.loads((config.output / "summary.json").read_text())
    assert (summary["status"], summary["results"]["epochs"]) == ("ended short", 2)
    assert summary["results"]["ended_by"] is None
    assert find_checkpoint(config.output).update == 2


@pytest.mark.parametrize("recurrent", [True, False])
def test_every_step_is_learned_from_once_in_an_epoch(recurrent):
    lengths = np.array([5, 1, 17, 4, 9])
    shown = Demonstrations({}, lengths)
    found = list(shown.chunks(np.random.default_rng(0), minibatch=12, bptt=4, recurrent=recurrent))
    steps = np.concatenate([index[valid] for index, _, valid in found])
    assert sorted(steps.tolist()) == list(range(36))
    if recurrent:  # a column goes on where it was, or an episode begins
        index, first, valid = (np.concatenate(part) for part in zip(*found, strict=True))
        begins = np.cumsum(lengths) - lengths
        assert (first[valid] == np.isin(index[valid], begins)).all()
        goes_on = valid[1:] & ~first[1:]
        assert (index[1:][goes_on] == index[:-1][goes_on] + 1).all()


WRONG = {
    "policy.name=random": "has no network that could be trained",
    "policy.columns=[positon]": "Nearest: position",
    "algorithm.epochs=0": "epochs",
    "epochs=3": "was renamed to algorithm.epochs",
    "algorithm=ppo": "ppo learns from fragments",
    "held_out=1": "held_out",
    "weight=retrun": "unknown name in a weight 'retrun'. Nearest: return",
    "weight=leg": "expected a task with the evaluator `then`",
    "dataset=/nowhere": "/nowhere",
}


@pytest.mark.parametrize("setting", WRONG)
def test_wrong_input(setting, recorded, tmp_path, capsys):
    file = tmp_path / "clone.yaml"
    file.write_text(json.dumps({"output": str(tmp_path / "run"), "dataset": str(recorded)}))
    given = ["--config", str(file), "--set", setting]
    assert main(learn_offline, OfflineConfig, "Clones.", given) == 2
    assert WRONG[setting] in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_one_episode_is_too_few(recorded, tmp_path, monkeypatch):
    refs = Dataset.episodes
    monkeypatch.setattr(Dataset, "episodes", lambda self, **_: refs(self)[:1])
    with Stop() as stop, pytest.raises(Exception, match="1 finished episodes, and at least 2"):
        learn_offline(config_of(recorded, tmp_path / "run"), Session(resume=False, stop=stop))


def test_a_dataset_larger_than_the_memory_is_read_in_parts(recorded, tmp_path):
    whole = config_of(recorded, tmp_path / "whole", epochs=4)
    parts = config_of(recorded, tmp_path / "parts", epochs=4).model_copy(
        update={"memory_mb": 0.001}
    )
    one, other = cloned(whole), cloned(parts)
    assert (other["epochs"], other["env_steps"]) == (4, one["env_steps"])
    assert other["held_out_loss"] < 1.3 * one["held_out_loss"]
    lines = [line for line in read_metrics(parts.output / "metrics.jsonl") if "clone/epoch" in line]
    count = len(lines) // 4
    assert count > 2
    assert [line["clone/epoch"] for line in lines[count - 1 :: count]] == [1, 2, 3, 4]
    assert lines[-1]["env_steps"] == 4 * lines[count - 1]["env_steps"]  # every step, each time


def test_the_decoded_rows_that_a_reader_holds_are_within_the_memory(
    recorded, tmp_path, monkeypatch
):
    bounds, read = set(), GroupCache.read

    def reading(self, *args):
        bounds.add(self.most_bytes)
        return read(self, *args)

    monkeypatch.setattr(GroupCache, "read", reading)
    config = config_of(recorded, tmp_path / "run", epochs=2)
    cloned(config.model_copy(update={"memory_mb": 0.25}))
    assert bounds == {2**15}  # an eighth


def test_a_training_in_parts_resumes_after_the_last_one(recorded, tmp_path, monkeypatch):
    def config(name):
        made = config_of(recorded, tmp_path / name, algorithm="marwil", epochs=2)
        return made.model_copy(update={"memory_mb": 0.001})

    cloned(config("whole"))
    real, calls = PartReader.part, []

    def killed(self, number):
        calls.append(number)
        if number == 4:
            raise RuntimeError("killed")
        return real(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(PartReader, "part", killed)
        with pytest.raises(RuntimeError, match="killed"):
            cloned(config("part"))
    cloned(config("part"), resume=True)
    one, other = (find_checkpoint(tmp_path / n) for n in ("whole", "part"))
    assert all((one.weights()[k] == other.weights()[k]).all() for k in one.weights())
    assert one.optimizer()["square"] == other.optimizer()["square"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 2000))
def test_parts_divide_the_episodes_of_each_epoch(lengths, kilobytes):
    class Column(StepColumns):
        def read(self, dataset, ref):
            return {"x": np.full((ref.length, 25), ref.episode)}

    refs = [SimpleNamespace(episode=n, length=k) for n, k in enumerate(lengths)]
    reader = PartReader(None, refs, Column([], []), memory_mb=kilobytes / 1024, seed=3)
    orders = []
    for epoch in range(2):
        found = [reader.part(epoch * reader.parts + k).columns["x"] for k in range(reader.parts)]
        steps = sum(lengths)
        if reader.parts > 1:
            most = max(map(len, found))
            assert most <= steps / reader.parts + max(lengths) * reader.parts
        together = np.concatenate(found)[:, 0]
        assert [int((together == n).sum()) for n in range(len(lengths))] == lengths
        orders.append(together.tolist())
    reader.close()
    assert reader.parts <= len(lengths)


@pytest.mark.parametrize("algorithm", ["marwil", "iql"])
def test_good_actions_are_learned_from_mixed_ones(tmp_path, algorithm):
    """Of random steps, whose reward is that of the action: a clone would be random, too."""
    columns = {
        "observation/at": np.random.default_rng(0).uniform(-1, 1, (20_000, 1)).astype(np.float32),
        "action/move": np.random.default_rng(1).integers(3, size=20_000),
    }
    at = columns["observation/at"][:, 0]
    columns["reward"] = (columns["action/move"] == np.where(at > 0, 2, 1)).astype(np.float32)
    columns |= {"return": columns["reward"], "terminated": np.ones(20_000, bool)}
    columns["next/at"] = columns["observation/at"]
    options = build_plugin("algorithms", algorithm, {"minibatch": 500, "lr": 0.005})
    space = spaces.Dict({"move": spaces.Discrete(3)})
    seen = spaces.Dict({"at": spaces.Box(-1.0, 1.0, (1,), np.float32)})
    network = ActorCriticPolicy(hidden=(32,)).network(seen, space, seed=0)
    learner = options.learner(network)
    for update in range(200):
        rows = np.random.default_rng(update).integers(20_000, size=500)
        batch = {k: v[rows][None] for k, v in columns.items()}
        batch |= {"first": np.ones((1, 500), bool), "valid": np.ones((1, 500), bool)}
        figures, _ = learner.update(batch, {}, Progress(update, update, 200, seed=0))
    assert all(np.isfinite(v) for v in figures.values())
    with torch.no_grad():
        outputs, _, _ = network({"at": torch.linspace(-0.9, 0.9, 100).unsqueeze(-1)}, {})
        likely = network.distribution(outputs).log_prob(
            torch.from_numpy(np.where(np.linspace(-0.9, 0.9, 100) > 0, 2, 1))[:, None]
        )
    assert likely.exp().mean() > 0.5  # of a clone: 1/3


def test_iql_refuses_a_memory(recorded, tmp_path, capsys):
    file = tmp_path / "run.yaml"
    policy = {"name": "actor_critic", "columns": ["position"], "memory": "gru"}
    given = {"output": str(tmp_path / "run"), "dataset": str(recorded), "policy": policy}
    file.write_text(json.dumps({**given, "algorithm": {"name": "iql"}}))
    assert main(learn_offline, OfflineConfig, "Learns.", ["--config", str(file)]) == 2
    assert "use policy.memory=none, or bc or marwil" in capsys.readouterr().err


def test_iql_learns_from_a_dataset(recorded, tmp_path):
    config = config_of(recorded, tmp_path / "run", algorithm="iql", epochs=8, lr=0.01)
    first = cloned(config_of(recorded, tmp_path / "one", algorithm="iql", epochs=1, lr=0.01))
    last = cloned(config)
    assert last["held_out_loss"] < first["held_out_loss"]
    assert {"q_loss", "value_loss", "held_out_q_loss"} <= last.keys()
    with Dataset(recorded) as dataset:
        ref = dataset.episodes()[0]
        read = StepColumns(["position"], ["move"], frozenset({"reward", "next"}))
        columns = read.read(dataset, ref)
        final = dataset.read(ref, []).final_observations["position"]
    seen, following = columns["observation/position"], columns["next/position"]
    assert (following[:-1] == seen[1:]).all()
    assert (following[-1] == final).all()


def test_steps_of_weight_0_are_not_learned_from(recorded, tmp_path):
    """Of random actions of which some are the expert's, these alone are cloned."""
    keys = {"epochs": 8, "minibatch": 64}
    weight = "1.0 * (episode < 12)"
    half = config_of(recorded, tmp_path / "half", **keys).model_copy(update={"weight": weight})
    named = half.model_copy(update={"output": tmp_path / "named", "weight": ""})
    named = named.model_copy(update={"filter": "episode < 12 or episode >= 22"})
    one, other = cloned(half), cloned(named)
    assert (one["episodes"], other["episodes"]) == (22, 13)
    assert one["loss"] == pytest.approx(other["loss"], rel=0.5)
    assert "held_out_loss" not in one  # the last episodes weigh nothing
    nothing = half.model_copy(update={"output": tmp_path / "nothing", "weight": "0"})
    with pytest.raises(InputError, match="is 0 for each step of the 22 episodes"):
        cloned(nothing)


@pytest.mark.parametrize(
    ("algorithm", "memory"),
    [("bc", "none"), ("bc", "gru"), ("marwil", "none"), ("marwil", "gru"), ("iql", "none")],
)
def test_a_weight_counts_as_that_many_copies_of_a_step(algorithm, memory):
    rng = np.random.default_rng(0)
    seen = spaces.Dict({"at": spaces.Box(-1.0, 1.0, (1,), np.float32)})
    space = spaces.Dict({"move": spaces.Discrete(3)})
    at = rng.uniform(-1, 1, (4, 6, 1)).astype(np.float32)
    batch = {
        "observation/at": at,
        "next/at": at[::-1].copy(),
        "action/move": rng.integers(3, size=(4, 6)),
        "reward": rng.normal(size=(4, 6)).astype(np.float32),
        "return": rng.normal(size=(4, 6)).astype(np.float32),
        "terminated": rng.random((4, 6)) < 0.3,
        "first": np.arange(24).reshape(4, 6) < 6,
        "valid": np.arange(24).reshape(4, 6) < 22,
    }
    columns = np.array([0, 1, 1, 1, 4, 5, 5])  # of column 1 three, of 5 two, of 2 and 3 none
    weight = np.tile(np.bincount(columns, minlength=6).astype(np.float32), (4, 1))
    weighed, copied = {**batch, "weight": weight}, {k: v[:, columns] for k, v in batch.items()}
    results = []
    for each, width in ((weighed, 6), (copied, 7)):
        network = ActorCriticPolicy(hidden=(8,), memory=memory).network(seen, space, seed=0)
        learner = build_plugin("algorithms", algorithm, {}).learner(network)
        blank = {k: torch.zeros(width, network.memory_size) for k in network.memory_keys}
        figures, _ = learner.update(each, blank, Progress(0, 0, 10, seed=0))
        results.append((figures, [p.detach() for p in network.parameters()]))
    (one, weights), (other, expected) = results
    assert one == pytest.approx(other, rel=1e-4)
    for own, wanted in zip(weights, expected, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-3, atol=1e-5)


class Together:
    """Adds tensors of several threads, in place."""

    def __init__(self, count):
        self._barrier, self._given = threading.Barrier(count), [None] * count

    def of(self, rank):
        def add(tensors):
            self._given[rank] = [tensor.clone() for tensor in tensors]
            self._barrier.wait(60)
            for at, tensor in enumerate(tensors):
                tensor.copy_(sum(given[at] for given in self._given))
            self._barrier.wait(60)

        return add


@pytest.mark.parametrize(
    ("algorithm", "memory", "weight"),
    [
        ("bc", "none", ""),
        ("bc", "gru", ""),
        ("bc", "gru", "1 + 2 * (reward > 0)"),
        ("marwil", "none", "exp(return_to_go / 3)"),
        ("iql", "none", "1.0 * (episode > 3)"),
    ],
)
def test_two_learners_learn_as_one(recorded, tmp_path, algorithm, memory, weight):
    config = config_of(recorded, tmp_path, memory, algorithm).model_copy(update={"weight": weight})
    one = DatasetLearner(config, config.policy)
    together = Together(2)
    two = [
        DatasetLearner(config, config.policy, rank=rank, learners=2, add=together.of(rank))
        for rank in range(2)
    ]
    with ThreadPoolExecutor(2) as pool:
        for number in range(2):
            alone = one.part(number)
            shared = list(pool.map(lambda each, number=number: each.part(number), two))
            for each in shared:
                assert each["figures"] == pytest.approx(alone["figures"], rel=1e-3)
                assert each["weight"] == pytest.approx(alone["weight"])
    for key, tensor in one.weights().items():
        torch.testing.assert_close(two[0].weights()[key], tensor, rtol=1e-2, atol=1e-4)
        assert (two[0].weights()[key] == two[1].weights()[key]).all()
    assert two[0].measured() == pytest.approx(one.measured(), rel=1e-3)
    for each in (one, *two):
        each.close()


def test_learners_that_do_not_fit_are_refused(recorded, tmp_path, monkeypatch):
    few = config_of(recorded, tmp_path / "few", minibatch=8).model_copy(update={"learners": 2})
    with pytest.raises(ConfigError, match=r"a minibatch has 1 sequences of algorithm.bptt=8"):
        cloned(few)
    monkeypatch.setattr(Bc, "learner", lambda self, network: None)
    with pytest.raises(ConfigError, match="algorithm bc learns in one process; use learners=0"):
        cloned(few)
    assert not few.output.exists()


def test_the_parts_of_a_task_are_those_of_then(recorded, tmp_path):
    evaluator = {"type": "Then", "options": {"parts": [{"name": "a"}, {"name": "b"}]}}
    dataset = SimpleNamespace(manifest=SimpleNamespace(task={"evaluator": evaluator}))
    config = config_of(recorded, tmp_path).model_copy(update={"weight": "leg == 1"})
    weight = weight_of(config, dataset, [])
    progress = np.array([0.25, 0.5, 0.75, 1.0], np.float32)
    ref = SimpleNamespace(length=4, episode=0)
    assert weight.of(ref, {"progress": progress}).tolist() == [0, 0, 1, 1]


def first_action(observations):
    return np.zeros(len(next(iter(observations.values()))), np.int64)


@pytest.mark.parametrize("algorithm", ["bc", "marwil"])
def test_masked_games_are_cloned_and_actions_that_were_not_legal_are_refused(tmp_path, algorithm):
    taxi = {
        "name": "gymnasium",
        "id": "Taxi-v3",
        "masks": "info",
        "kwargs": {"max_episode_steps": 9},
    }
    policies = {"legal": {"name": "random"}, "illegal": {"name": "callable"}}
    policies["illegal"]["function"] = f"{__name__}:first_action"
    for name, policy in policies.items():
        recording = {"output": str(tmp_path / name), "bridge": taxi, "policy": policy}
        more = {"episodes": 8, "actors": 0, "wandb": {"mode": "disabled"}}
        with Stop() as stop:
            assert (
                collect(CollectConfig.model_validate({**recording, **more}), Session(False, stop))
                is None
            )
    config = {"policy": {"name": "actor_critic", "hidden": [16]}}
    config["algorithm"] = {"name": algorithm, "epochs": 2}
    config |= {"output": str(tmp_path / "run"), "dataset": str(tmp_path / "legal")}
    found = cloned(OfflineConfig.model_validate(config))
    assert 0 < found["loss"] < 10  # a legal choice is never as unlikely as 1e-9
    made = export(tmp_path / "run", "torch")
    assert made.folder == tmp_path / "run" / "export-torch"
    assert (made.source, made.rows > 0) == ("recorded in legal", True)
    config |= {"output": str(tmp_path / "other"), "dataset": str(tmp_path / "illegal")}
    with pytest.raises(
        DatasetError, match=r"step \d+: the recorded action 0 is not legal by 'mask/action'"
    ):
        cloned(OfflineConfig.model_validate(config))
