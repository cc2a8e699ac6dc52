"""Compares how our algorithms learn with those of Stable-Baselines3 and RLlib.

    python -m benchmarks.science.learning_curves run FOLDER      # goes on where it was
    python -m benchmarks.science.learning_curves report FOLDER

**Protocol**, committed before the runs; with settings that were tried on seeds from 100 on. Seeds
are made in their order, up to five, until the time is up; none is left out. Both sides have the
same games, widths of networks, learning rates, minibatches and numbers of gradient steps; each
keeps its own initial weights and its optimizer's epsilon. Actions are sampled. A run has two
scores: the mean return of the last fifth of its length, and of the whole run, the mean of the means
of its tenths. Brackets contain 95 % intervals by Student's t, those of differences by Welch's.

`dqn`, `sac` and `appo` are scored by the episodes that they play while they learn, each counted at
the step at which it ended; the `Catch` of `dqn` is a game of 60 pixels. `bc`, `marwil` and `iql`
learn from recorded episodes of a teacher that was trained for a part of the steps it needs, and
play 10 episodes after every epoch. RLlib's learners get these episodes through their own
connectors, without its reader; its IQL has no discrete actions. `dagger` is compared with our `bc`
on as many steps that the same teacher played; both play 10 episodes after every 200 labels, and
take as many gradient steps.

What differs: Stable-Baselines3 updates the target of DQN by copies, ours in every step; its DQN
takes the maximum of the target network, ours is double DQN; the actors of its SAC and of RLlib's
IQL have a standard deviation that depends on the observation; their critics read the action in the
first layer, ours in the last hidden one. The learner of RLlib's APPO runs beside its games and
takes as many gradient steps as it finds time for, ours eight for each batch. RLlib's MARWIL adds
the value of the last observation to the return of an episode that a limit cut.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.report import table
from benchmarks.science import trainings
from benchmarks.science.trainings import QUIET, SCORES, Catch, Counted, difference, interval

SB3, RLLIB = "stable-baselines3", "rllib"
SEEDS = range(5)
BUFFER, WARMUP = 50_000, 1000
EPOCHS, MINIBATCH, EVALUATED = 10, 256, 10


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        algorithm: its name.
        game: its name; ``IDS`` has Gymnasium's.
        other: what ours is compared with; empty for nothing.
        steps: steps of a training, or its epochs.
        about: what ``steps`` counts.
    """

    algorithm: str
    game: str
    other: str
    steps: int
    about: str = "steps"


IDS = {"CartPole": "CartPole-v1", "Pendulum": "Pendulum-v1", "Catch": "Learning/Catch-v0"}
CASES = {
    "dqn": Case("dqn", "CartPole", SB3, 20_000),
    "dqn-pixels": Case("dqn", "Catch", SB3, 10_000),
    "sac": Case("sac", "Pendulum", SB3, 5000),
    "appo": Case("appo", "CartPole", RLLIB, 40_000),
    **{
        f"{name}-{game}": Case(name, game, other, EPOCHS, "epochs")
        for game, names in {
            "CartPole": {"bc": RLLIB, "marwil": RLLIB, "iql": ""},
            "Pendulum": {"bc": RLLIB, "marwil": RLLIB, "iql": RLLIB},
        }.items()
        for name, other in names.items()
    },
    "dagger": Case("dagger", "CartPole", "bc", 2000, "labels"),
}
GAMMA = {"CartPole": 0.99, "Pendulum": 0.97, "Catch": 0.99}

gym.register("Learning/Catch-v0", Catch)
for _name, _id in IDS.items():
    gym.register(f"Counted/{_name}-v0", entry_point=lambda _id=_id, **_: Counted(gym.make(_id)))


def bridge(game: str, *, counted: bool) -> dict[str, Any]:
    """Returns the configuration of a game."""
    module = "benchmarks.science.learning_curves"
    found = f"Counted/{game}-v0" if counted else IDS[game]
    return {"name": "gymnasium", "id": found, "imports": [module]}


# Algorithms that play ------------------------------------------------------------------

REPLAY: dict[str, dict[str, Any]] = {
    "dqn": {"minibatch": 64, "lr": 5e-4, "steps_per_gradient": 4, "slots": 4},
    "sac": {"minibatch": 256, "lr": 1e-3, "steps_per_gradient": 1, "slots": 2},
}
EPSILON, EPSILON_SHARE = 0.04, 0.16
HIDDEN = [64, 64]


def replay_gamut(case: Case, seed: int) -> None:
    """Trains our DQN or SAC."""
    policies = {
        "dqn": {"name": "q_network"},
        "sac": {"name": "actor_critic", "continuous": "squashed", "shared": False},
    }
    own = {
        "dqn": {"target_rate": 0.02, "epsilon": EPSILON, "epsilon_share": EPSILON_SHARE},
        "sac": {"target_rate": 0.005},
    }
    name, shared = case.algorithm, REPLAY[case.algorithm]
    trainings.train_gamut(
        {
            "bridge": bridge(case.game, counted=True),
            "policy": {**policies[name], "hidden": HIDDEN, "activation": "relu"},
            "width": shared["slots"],
            "fragment": {"steps": 32},
            "env_steps": case.steps,
            "seed": seed,
            "algorithm": {
                "name": name,
                "batch": 32 * shared["slots"],
                "minibatch": shared["minibatch"],
                "passes": shared["minibatch"] / shared["steps_per_gradient"],
                "lr": shared["lr"],
                "gamma": GAMMA[case.game],
                "memory": BUFFER,
                "warmup": WARMUP,
                **own[name],
            },
        }
    )


def replay_stable_baselines3(case: Case, seed: int) -> None:
    """Trains Stable-Baselines3's DQN or SAC."""
    import torch
    from stable_baselines3 import DQN, SAC
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    name, shared = case.algorithm, REPLAY[case.algorithm]
    slots = shared["slots"]
    games = DummyVecEnv([lambda: gym.make(f"Counted/{case.game}-v0") for _ in range(slots)])
    given: dict[str, Any] = {
        "learning_rate": shared["lr"],
        "buffer_size": BUFFER,
        "learning_starts": WARMUP,
        "batch_size": shared["minibatch"],
        "gamma": GAMMA[case.game],
        "train_freq": 32,  # steps of each game
        "gradient_steps": 32 * slots // shared["steps_per_gradient"],
        "policy_kwargs": {"net_arch": HIDDEN, "activation_fn": torch.nn.ReLU},
        "seed": seed,
        "device": "cpu",
    }
    if name == "dqn":
        own = {"exploration_fraction": EPSILON_SHARE, "exploration_final_eps": EPSILON}
        model: Any = DQN("MlpPolicy", games, target_update_interval=50, **own, **given)
    else:
        model = SAC("MlpPolicy", games, tau=0.005, **given)
    model.learn(case.steps)


APPO = {"slots": 8, "fragment": 128, "lr": 5e-4, "clip": 0.2, "entropy": 0.01, "value": 0.5}


def appo_gamut(case: Case, seed: int) -> None:
    """Trains our APPO."""
    trainings.train_gamut(
        {
            "bridge": bridge(case.game, counted=True),
            "policy": {"name": "actor_critic", "hidden": [64, 64], "shared": False},
            "width": APPO["slots"],
            "fragment": {"steps": APPO["fragment"]},
            "env_steps": case.steps,
            "seed": seed,
            "algorithm": {
                "name": "appo",
                "batch": int(APPO["slots"] * APPO["fragment"]),
                "minibatch": int(APPO["slots"] * APPO["fragment"]),
                "epochs": 8,
                "lr": APPO["lr"],
                "schedule": "constant",
                "clip": APPO["clip"],
                "entropy": APPO["entropy"],
                "value_coef": APPO["value"],
                "adam_eps": 1e-5,
                "max_grad_norm": 0.5,
            },
        }
    )


def appo_rllib(case: Case, seed: int) -> None:
    """Trains RLlib's APPO."""
    from ray import tune
    from ray.rllib.algorithms.appo import APPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    tune.register_env("counted", lambda _: gym.make(f"Counted/{case.game}-v0"))
    config = APPOConfig().environment("counted")
    slots, fragment = int(APPO["slots"]), int(APPO["fragment"])
    config.env_runners(
        num_env_runners=0, num_envs_per_env_runner=slots, rollout_fragment_length=fragment
    )
    config.learners(num_learners=0, num_aggregator_actors_per_learner=0)
    config.training(
        lr=APPO["lr"],
        gamma=0.99,
        clip_param=APPO["clip"],
        entropy_coeff=APPO["entropy"],
        vf_loss_coeff=APPO["value"],
        grad_clip=0.5,
        grad_clip_by="global_norm",
        train_batch_size_per_learner=slots * fragment,
        circular_buffer_num_batches=1,
        circular_buffer_iterations_per_batch=8,
    )
    model = DefaultModelConfig(
        fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False
    )
    config.rl_module(model_config=model).debugging(seed=seed, log_level="ERROR")
    algorithm = config.build_algo()
    while Counted.steps < case.steps:
        algorithm.train()
    algorithm.stop()


# Algorithms that learn from a dataset --------------------------------------------------

TEACHERS: dict[str, dict[str, Any]] = {
    "CartPole": {
        "policy": {"name": "actor_critic", "hidden": [64, 64], "shared": False},
        "width": 16,
        "fragment": {"steps": 64},
        "env_steps": 15_000,
        "algorithm": {"name": "ppo", "batch": 1024, "minibatch": 256, "epochs": 10, "lr": 1e-3},
    },
    "Pendulum": {
        "policy": {"name": "actor_critic", "continuous": "squashed", "shared": False},
        "width": 8,
        "fragment": {"steps": 32},
        "env_steps": 8000,
        "algorithm": {"name": "sac", "batch": 256, "passes": 128.0, "lr": 1e-3},
    },
}
RECORDED = {"CartPole": 80, "Pendulum": 40}  # episodes
OFFLINE: dict[str, dict[str, Any]] = {
    "bc": {"lr": 1e-3},
    "marwil": {"lr": 1e-3, "beta": 1.0},
    "iql": {"lr": 1e-3, "expectile": 0.7, "temperature": 0.1},
}
OFFLINE_HIDDEN, TARGET_RATE = [64, 64], 0.005
LABELS, LABELS_MINIBATCHES = 200, 50  # of an update of DAgger


def record(game: str, out: Path) -> None:
    """Trains a teacher for a part of the steps that it needs, and records its episodes."""
    from rollout.cli import Session
    from rollout.collect import collect
    from rollout.config import CollectConfig, make_config
    from rollout.signals import Stop

    teacher = str(out / "teacher")
    given = {"bridge": bridge(game, counted=False), "seed": 7}
    trainings.train_gamut({"output": teacher, **given, **TEACHERS[game]})
    config = {
        **{key: value for key, value in QUIET.items() if key in ("wandb", "log")},
        "output": str(out / "recorded"),
        "bridge": given["bridge"],
        "policy": {"name": "checkpoint", "path": teacher},
        "episodes": RECORDED[game],
        "width": 8,
    }
    collect(make_config(CollectConfig, config), Session(False, Stop()))


def play(game: str, act: Callable[[np.ndarray], np.ndarray], at: int) -> None:
    """Plays some episodes of a policy, the same starts for all, and writes their returns."""
    games = gym.make_vec(IDS[game], EVALUATED, vectorization_mode="sync")
    seen, _ = games.reset(seed=1000 * at)
    totals, playing = np.zeros(EVALUATED), np.ones(EVALUATED, bool)
    while playing.any():
        seen, reward, terminated, truncated, _ = games.step(act(seen))
        totals += reward * playing
        playing &= ~(terminated | truncated)
    games.close()
    trainings.write(at, totals.tolist())


def player(game: str, policy: Mapping[str, Any], seed: int) -> Callable[[Any, int], None]:
    """Returns a function that plays with the weights of a record of ours."""
    from rollout.api import Start
    from rollout.config import BridgeConfig, PolicyConfig
    from rollout.tasks import bridge_and_task

    config = BridgeConfig.model_validate(bridge(game, counted=False))
    _, made, task = bridge_and_task(config, "")
    recipe: Any = PolicyConfig.model_validate(policy).build()
    chooses = recipe.build(made.spec, task, seed=seed)

    def watch(record: Any, at: int) -> None:
        chooses.load(record.weights(), 0)
        starts = [Start({}, 1000 * at + number) for number in range(EVALUATED)]
        memory = chooses.initial_memory(starts)

        def act(seen: np.ndarray) -> np.ndarray:
            nonlocal memory
            decided = chooses.act({"observation": seen}, memory, details=None, explore=True)
            memory = decided.memory
            return np.asarray(decided.actions["action"])

        play(game, act, at)

    return watch


def offline_gamut(case: Case, seed: int) -> None:
    """Trains our BC, MARWIL or IQL."""
    clone(case, seed, trainings.folder() / case.game / "recorded", epochs=EPOCHS)


def clone(
    case: Case, seed: int, dataset: Path, *, epochs: int, at: int | None = None, **more: Any
) -> None:
    """Trains an algorithm of ours on a dataset.

    It plays after every epoch; after the last one only, as ``at``, if that is given.
    """
    from rollout.cli import Session
    from rollout.config import make_config
    from rollout.signals import Stop
    from rollout.train.offline import learn_offline
    from rollout.train.offline_config import OfflineConfig

    policy = {"name": "actor_critic", "hidden": OFFLINE_HIDDEN, "shared": False}
    watch = player(case.game, policy, seed)
    own: dict[str, Any] = {"gamma": GAMMA[case.game]} if case.algorithm != "bc" else {}
    if case.algorithm == "iql":
        own["target_rate"] = TARGET_RATE
    with tempfile.TemporaryDirectory() as out:
        config = {
            **{key: value for key, value in QUIET.items() if key in ("wandb", "log")},
            "output": f"{out}/run",
            "dataset": str(dataset),
            "policy": policy,
            "seed": seed,
            "algorithm": {
                "name": case.algorithm,
                "epochs": epochs,
                "minibatch": MINIBATCH,
                "bptt": 1,
                **OFFLINE[case.algorithm],
                **own,
            },
            **more,
        }
        made = make_config(OfflineConfig, config)

        def played(record: Any) -> None:
            if at is None or record.update == epochs:
                watch(record, record.update if at is None else at)

        learn_offline(made, Session(False, Stop()), [played])


def dagger_gamut(case: Case, seed: int) -> None:
    """Trains our DAgger: its policy plays, and the teacher says what it would have done."""
    policy = TEACHERS[case.game]["policy"]
    watch = player(case.game, policy, seed)
    trainings.train_gamut(
        {
            "bridge": bridge(case.game, counted=False),
            "policy": policy,
            "width": 8,
            "fragment": {"steps": LABELS // 8},
            "env_steps": case.steps,
            "seed": seed,
            "algorithm": {
                "name": "dagger",
                "batch": LABELS,
                "minibatch": 64,
                "passes": 64 * LABELS_MINIBATCHES / LABELS,
                "lr": 1e-3,
                "teacher": str(trainings.folder() / case.game / "teacher"),
            },
        },
        [lambda record: watch(record, record.env_steps)],
    )


def dagger_bc(case: Case, seed: int) -> None:
    """Trains our BC on as many labels of the recorded episodes, for each point of the curve."""
    from rollout.data import Dataset

    recorded = trainings.folder() / case.game / "recorded"
    with Dataset(recorded) as dataset:
        refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
    refs = refs[seed * 5 :] + refs[: seed * 5]  # others for each seed
    ends = np.cumsum([ref.length for ref in refs])
    for labels in range(LABELS, case.steps + 1, LABELS):
        count = int(np.searchsorted(ends, labels)) + 1
        chosen = [ref.episode for ref in refs[: count + 1]]  # one to measure the loss on
        epochs = round(64 * LABELS_MINIBATCHES / LABELS)
        clone(
            Case("bc", case.game, "", case.steps),
            seed,
            recorded,
            epochs=epochs,
            at=labels,
            filter=f"episode in {chosen}",
            held_out=1 / (count + 1),
            algorithm={"name": "bc", "minibatch": 64, "epochs": epochs, "bptt": 1, "lr": 1e-3},
        )


def demonstrations(game: str) -> list[Any]:
    """Returns the recorded episodes that ours learn from, as those of RLlib."""
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    from rollout.data import Dataset

    episodes = []
    with Dataset(trainings.folder() / game / "recorded") as dataset:
        refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        columns = ["observation", "action", "reward"]
        for ref in refs[: -round(0.1 * len(refs))]:  # ours holds the others out
            found = dataset.read(ref, columns)
            seen, done, rewards = (found.columns[name] for name in columns)
            episodes.append(
                SingleAgentEpisode(
                    observations=[*seen, found.final_observations["observation"]],
                    actions=list(done),
                    rewards=rewards.tolist(),
                    terminated=ref.end == "terminated",
                    truncated=ref.end == "truncated",
                    len_lookback_buffer=0,
                )
            )
    return episodes


def rllib_learner(case: Case, seed: int, game: Any, steps: int) -> Any:
    """Returns RLlib's learner of BC, MARWIL or IQL, for so many steps in an epoch."""
    from ray.rllib.algorithms.bc import BCConfig
    from ray.rllib.algorithms.iql import IQLConfig
    from ray.rllib.algorithms.marwil import MARWILConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    name, own = case.algorithm, OFFLINE[case.algorithm]
    config: Any = {"bc": BCConfig, "marwil": MARWILConfig, "iql": IQLConfig}[name]()
    spaces = {"observation_space": game.observation_space, "action_space": game.action_space}
    config.environment(**spaces, normalize_actions=False, clip_actions=True)
    falling = [[0, own["lr"]], [steps * EPOCHS, 0.0]]
    config.training(gamma=GAMMA[case.game], grad_clip=1.0, grad_clip_by="global_norm")
    if name == "iql":
        config.training(actor_lr=falling, critic_lr=falling, value_lr=falling, tau=TARGET_RATE)
        config.training(beta=own["temperature"], expectile=own["expectile"])
    else:
        config.training(lr=falling, beta=own.get("beta", 0.0))
    if name == "marwil":
        config.training(moving_average_sqd_adv_norm_update_rate=1e-2)
        config.training(moving_average_sqd_adv_norm_start=1.0)
    model = DefaultModelConfig(
        fcnet_hiddens=OFFLINE_HIDDEN,
        fcnet_activation="tanh",
        head_fcnet_hiddens=[],
        vf_share_layers=False,
        free_log_std=name != "iql" and case.game == "Pendulum",
    )
    config.rl_module(model_config=model).debugging(seed=seed, log_level="ERROR")
    config.learners(num_learners=0)
    learner = config.build_learner()
    learner.build()
    return learner


def offline_rllib(case: Case, seed: int) -> None:
    """Trains RLlib's BC, MARWIL or IQL: its learner, on columns that its connectors make."""
    import torch
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    episodes, game = demonstrations(case.game), gym.make(IDS[case.game])
    learner = rllib_learner(case, seed, game, sum(map(len, episodes)))
    module = learner.module["default_policy"]
    kind = module.get_exploration_action_dist_cls()
    rng, done = np.random.default_rng(seed), 0

    def act(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            given = module.forward_exploration({"obs": torch.from_numpy(seen)})
            found = kind.from_logits(given["action_dist_inputs"]).sample().numpy()
        box = game.action_space
        return np.clip(found, box.low, box.high) if isinstance(box, gym.spaces.Box) else found

    for epoch in range(EPOCHS):
        prepared = learner._learner_connector(
            rl_module=learner.module,
            batch={},
            episodes=copy.deepcopy(episodes),
            shared_data={},
            metrics=None,
        )["default_policy"]
        rows = {key: torch.as_tensor(value) for key, value in prepared.items()}
        valid = rows.pop("loss_mask", torch.ones(len(rows["obs"]), dtype=torch.bool))
        rows = {key: value[valid] for key, value in rows.items()}
        for at in torch.from_numpy(rng.permutation(int(valid.sum()))).split(MINIBATCH):
            drawn = SampleBatch({key: value[at] for key, value in rows.items()})
            done += len(at)
            learner.update(
                batch=MultiAgentBatch({"default_policy": drawn}, len(at)),
                timesteps={"num_env_steps_sampled_lifetime": done},
            )
        play(case.game, act, epoch + 1)


TRAIN: dict[tuple[str, str], Callable[[Case, int], None]] = {
    ("dqn", "gamut"): replay_gamut,
    ("dqn", SB3): replay_stable_baselines3,
    ("sac", "gamut"): replay_gamut,
    ("sac", SB3): replay_stable_baselines3,
    ("appo", "gamut"): appo_gamut,
    ("appo", RLLIB): appo_rllib,
    **{(name, "gamut"): offline_gamut for name in OFFLINE},
    **{(name, RLLIB): offline_rllib for name in OFFLINE},
    ("dagger", "gamut"): dagger_gamut,
    ("dagger", "bc"): dagger_bc,
}


def run(out: Path, parallel: int) -> None:
    """Records what there is to learn from, and makes all runs that the folder does not have."""
    for game in TEACHERS:
        if not (out / game / "recorded").exists():
            record(game, out / game)
    runs = [
        (name, library, seed)
        for seed in SEEDS
        for name, case in CASES.items()
        for library in ("gamut", case.other)
        if library
    ]
    module = "benchmarks.science.learning_curves"
    trainings.run(out, module, runs, lambda name: CASES[name].steps, parallel)


def report(out: Path) -> str:
    """Returns the table of the runs in a folder."""
    from scipy import stats

    runs, rows = trainings.read(out), []
    for name, case in CASES.items():
        found = {
            library: [r for r in runs if (r["game"], r["library"]) == (name, library)]
            for library in ("gamut", case.other)
        }
        for score in SCORES:
            values = {library: [r[score] for r in own] for library, own in found.items()}
            ours, theirs = values["gamut"], values[case.other]
            cells = [case.algorithm, case.game, f"{case.steps:,} {case.about}", score]
            cells += [case.other or "-", f"{len(ours)}, {len(theirs)}"]
            for own in (ours, theirs):
                mean, half = interval(own) if own else (0.0, 0.0)
                cells.append(f"{mean:.4g} [{mean - half:.4g}, {mean + half:.4g}]" if own else "-")
            if min(len(ours), len(theirs)) > 1:
                between, error, degrees = difference(ours, theirs)
                half = float(stats.t.ppf(0.975, degrees)) * error
                cells.append(f"{between:.3g} [{between - half:.3g}, {between + half:.3g}]")
            rows.append(cells + ["-"] * (9 - len(cells)))
    columns = ["algorithm", "game", "length", "score", "beside", "seeds", "ours: mean, 95 %"]
    columns += ["theirs", "difference, 95 %"]
    protocol = "".join((__doc__ or "").partition("**Protocol**")[1:])
    picture = "![Mean curves with 95 % intervals](learning_curves.png)"
    return f"{protocol}\n{picture}\n\n{table(columns, rows)}"


def picture(out: Path, file: Path) -> None:
    """Draws the curves of the runs in a folder."""
    titles = {
        name: (f"{case.algorithm}, {case.game}", f"{case.steps:,} {case.about}")
        for name, case in CASES.items()
    }
    trainings.draw(file, trainings.read(out), titles, ("gamut", SB3, RLLIB, "bc"))


def one(name: str, library: str, seed: int) -> None:
    """Trains once."""
    case = CASES[name]
    TRAIN[case.algorithm, library](case, seed)


def main() -> None:
    trainings.main(__doc__, "learning_curves", "Learning curves", make=run, one=one, report=report)


if __name__ == "__main__":
    main()
