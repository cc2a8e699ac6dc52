"""Compares how our algorithms learn with those of Stable-Baselines3 and RLlib.

    python -m benchmarks.science.learning_curves run FOLDER      # goes on where it was
    python -m benchmarks.science.learning_curves report FOLDER

**Protocol**, committed before the runs, with the settings of `learning_curves.yaml`; of these only
BC and MARWIL on CartPole and RLlib's APPO were tried, on seed 100 and at other lengths. Three
seeds, case by case in the order of the table, until the time is up; none is left out. Both sides
have the same games, widths of networks, learning rates, minibatches and numbers of gradient steps;
each keeps its own initial weights and its optimizer's epsilon. Actions are sampled. A run has two
scores: the mean return of the last fifth of its length, and of the whole run, the mean of the means
of its tenths. Brackets contain 95 % intervals by Student's t, those of differences by Welch's.

`dqn`, `sac` and `appo` are scored by the episodes that they play while they learn, each counted at
the step at which it ended; the `Catch` of `dqn` is a game of 60 pixels. `bc`, `marwil` and `iql`
learn from the recorded episodes of a teacher, on CartPole of a half-trained one (mean return 218),
on Pendulum of a trained one (-133), and play 10 episodes after every epoch. RLlib's learners get
these episodes through their own connectors, without its reader; its IQL has no discrete actions.
`dagger` is compared with our `bc` on as many steps that the same teacher played; both play 10
episodes after every 200 labels, and take as many gradient steps.

What differs: Stable-Baselines3 updates the target of DQN by copies, ours in every step; its DQN
takes the maximum of the target network, ours is double DQN; the actors of its SAC and of RLlib's
IQL have a standard deviation that depends on the observation; their critics read the action in the
first layer, ours in the last hidden one. The learner of RLlib's APPO runs beside its games and
takes as many gradient steps as it finds time for, ours eight for each batch. RLlib's MARWIL adds
the value of the last observation to the return of an episode that a limit cut. It begins with
another scale of the advantages, and does not limit their weights.

**Changes after the first runs**, of 2026-11-27. MARWIL on Pendulum stopped after three runs, and
the games that are played were taken first, when BC on Pendulum had stayed at the level of random
play in both libraries (its teacher plays well): ten epochs are too few there. The time was up in
the second seed of DQN on CartPole, and again in the first seed of SAC, after ours.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.report import table
from benchmarks.science import trainings
from benchmarks.science.trainings import QUIET, SCORES, Catch, Counted, difference, interval
from rollout.yaml12 import load_yaml

GIVEN: dict[str, Any] = load_yaml(Path(__file__).with_suffix(".yaml"))
SB3, RLLIB = "stable-baselines3", "rllib"
SEEDS = range(3)
EPOCHS, EVALUATED = GIVEN["epochs"], 10
OFFLINE = GIVEN["offline"]


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        algorithm: its name.
        game: its name; ``IDS`` has Gymnasium's.
        other: what ours is compared with; empty for nothing.
        steps: length of a training.
        about: what ``steps`` counts.
        train: configuration of our training.
    """

    algorithm: str
    game: str
    other: str
    steps: int = EPOCHS
    about: str = "epochs"
    train: Mapping[str, Any] = field(default_factory=dict)


IDS = {"CartPole": "CartPole-v1", "Pendulum": "Pendulum-v1", "Catch": "Learning/Catch-v0"}
CASES = {name: Case(**given) for name, given in GIVEN["cases"].items()}

gym.register("Learning/Catch-v0", Catch)
for _name, _id in IDS.items():
    gym.register(f"Counted/{_name}-v0", entry_point=lambda _id=_id, **_: Counted(gym.make(_id)))


def bridge(game: str, *, counted: bool = False) -> dict[str, Any]:
    """Returns the configuration of a game."""
    module = "benchmarks.science.learning_curves"
    found = f"Counted/{game}-v0" if counted else IDS[game]
    return {"name": "gymnasium", "id": found, "imports": [module]}


# Algorithms that play ------------------------------------------------------------------


def playing_gamut(case: Case, seed: int) -> None:
    """Trains our DQN, SAC or APPO."""
    own = {"bridge": bridge(case.game, counted=True), "env_steps": case.steps, "seed": seed}
    trainings.train_gamut({**case.train, **own})


def replay_stable_baselines3(case: Case, seed: int) -> None:
    """Trains Stable-Baselines3's DQN or SAC."""
    import torch
    from stable_baselines3 import DQN, SAC
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    slots, ours = case.train["width"], case.train["algorithm"]
    games = DummyVecEnv([lambda: gym.make(f"Counted/{case.game}-v0") for _ in range(slots)])
    hidden = case.train["policy"]["hidden"]
    given: dict[str, Any] = {
        "learning_rate": ours["lr"],
        "buffer_size": ours["memory"],
        "learning_starts": ours["warmup"],
        "batch_size": ours["minibatch"],
        "gamma": ours["gamma"],
        "train_freq": ours["batch"] // slots,  # steps of each game
        "gradient_steps": round(ours["batch"] * ours["passes"] / ours["minibatch"]),
        "policy_kwargs": {"net_arch": hidden, "activation_fn": torch.nn.ReLU},
        "seed": seed,
        "device": "cpu",
    }
    if case.algorithm == "dqn":
        given["exploration_fraction"] = ours["epsilon_share"]
        given["exploration_final_eps"] = ours["epsilon"]
        model: Any = DQN("MlpPolicy", games, target_update_interval=50, **given)
    else:
        model = SAC("MlpPolicy", games, tau=ours["target_rate"], **given)
    model.learn(case.steps)


def appo_rllib(case: Case, seed: int) -> None:
    """Trains RLlib's APPO."""
    from ray import tune
    from ray.rllib.algorithms.appo import APPOConfig

    tune.register_env("counted", lambda _: gym.make(f"Counted/{case.game}-v0"))
    config, ours = APPOConfig().environment("counted"), case.train["algorithm"]
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=case.train["width"],
        rollout_fragment_length=case.train["fragment"]["steps"],
    )
    config.learners(num_learners=0, num_aggregator_actors_per_learner=0)
    config.training(
        lr=ours["lr"],
        gamma=0.99,
        clip_param=ours["clip"],
        entropy_coeff=ours["entropy"],
        vf_loss_coeff=ours["value_coef"],
        grad_clip=ours["max_grad_norm"],
        grad_clip_by="global_norm",
        train_batch_size_per_learner=ours["batch"],
        circular_buffer_num_batches=1,
        circular_buffer_iterations_per_batch=ours["epochs"],
    )
    config.rl_module(model_config=trainings.rllib_model(case.train["policy"]["hidden"]))
    algorithm = config.debugging(seed=seed, log_level="ERROR").build_algo()
    while Counted.steps < case.steps:
        algorithm.train()
    algorithm.stop()


# Algorithms that learn from a dataset --------------------------------------------------


def record(game: str, out: Path) -> None:
    """Trains a teacher for a part of the steps that it needs, and records its episodes."""
    from rollout.cli import Session
    from rollout.collect import collect
    from rollout.config import CollectConfig, make_config
    from rollout.signals import Stop

    given, teacher = GIVEN["teachers"][game], str(out / "teacher")
    own = {"output": teacher, "bridge": bridge(game), "seed": 7}
    trainings.train_gamut({**given["train"], **own})
    config = {
        **{key: value for key, value in QUIET.items() if key in ("wandb", "log")},
        "output": str(out / "recorded"),
        "bridge": bridge(game),
        "policy": {"name": "checkpoint", "path": teacher},
        "episodes": given["episodes"],
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

    config = BridgeConfig.model_validate(bridge(game))
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


def clone(case: Case, seed: int, at: int | None = None, **own: Any) -> None:
    """Trains our BC, MARWIL or IQL on the recorded episodes.

    It plays after every epoch; after the last one only, as ``at``, if that is given.
    """
    from rollout.cli import Session
    from rollout.config import make_config
    from rollout.signals import Stop
    from rollout.train.offline import learn_offline
    from rollout.train.offline_config import OfflineConfig

    policy = {"name": "actor_critic", "hidden": OFFLINE["hidden"], "shared": False}
    watch, name = player(case.game, policy, seed), case.algorithm
    algorithm = {
        "name": name,
        "epochs": EPOCHS,
        "minibatch": OFFLINE["minibatch"],
        "bptt": 1,
        "lr": OFFLINE["lr"],
        **({} if name == "bc" else {"gamma": OFFLINE["gamma"][case.game]}),
        **OFFLINE["options"][name],
        **own.pop("algorithm", {}),
    }
    with tempfile.TemporaryDirectory() as out:
        config = {
            **{key: value for key, value in QUIET.items() if key in ("wandb", "log")},
            "output": f"{out}/run",
            "dataset": str(trainings.folder() / case.game / "recorded"),
            "policy": policy,
            "seed": seed,
            "algorithm": algorithm,
            **own,
        }

        def played(record: Any) -> None:
            if at is None or record.update == algorithm["epochs"]:
                watch(record, record.update if at is None else at)

        learn_offline(make_config(OfflineConfig, config), Session(False, Stop()), [played])


def dagger_gamut(case: Case, seed: int) -> None:
    """Trains our DAgger: its policy plays, and the teacher says what it would have done."""
    watch = player(case.game, case.train["policy"], seed)
    teacher = str(trainings.folder() / case.game / "teacher")
    own = {"bridge": bridge(case.game), "env_steps": case.steps, "seed": seed}
    own["algorithm"] = {**case.train["algorithm"], "teacher": teacher}
    trainings.train_gamut({**case.train, **own}, [lambda r: watch(r, r.env_steps)])


def dagger_bc(case: Case, seed: int) -> None:
    """Trains our BC on as many labels of the recorded episodes, for each point of the curve."""
    from rollout.data import Dataset

    with Dataset(trainings.folder() / case.game / "recorded") as dataset:
        refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
    refs = refs[seed * 5 :] + refs[: seed * 5]  # others for each seed
    ends, dagger = np.cumsum([ref.length for ref in refs]), case.train["algorithm"]
    same = {"minibatch": dagger["minibatch"], "lr": dagger["lr"], "epochs": int(dagger["passes"])}
    for labels in range(dagger["batch"], case.steps + 1, dagger["batch"]):
        count = int(np.searchsorted(ends, labels)) + 1
        chosen = [ref.episode for ref in refs[: count + 1]]  # one to measure the loss on
        more = {"filter": f"episode in {chosen}", "held_out": 1 / (count + 1)}
        clone(Case("bc", case.game, ""), seed, labels, algorithm=same, **more)


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

    name, own = case.algorithm, OFFLINE["options"][case.algorithm]
    config: Any = {"bc": BCConfig, "marwil": MARWILConfig, "iql": IQLConfig}[name]()
    spaces = {"observation_space": game.observation_space, "action_space": game.action_space}
    config.environment(**spaces, normalize_actions=False, clip_actions=True)
    falling = [[0, OFFLINE["lr"]], [steps * EPOCHS, 0.0]]
    config.training(gamma=OFFLINE["gamma"][case.game], grad_clip=1.0, grad_clip_by="global_norm")
    if name == "iql":
        config.training(actor_lr=falling, critic_lr=falling, value_lr=falling)
        config.training(beta=own["temperature"], expectile=own["expectile"])
        config.training(tau=own["target_rate"])
    else:
        config.training(lr=falling, beta=own.get("beta", 0.0))
    if name == "marwil":
        config.training(moving_average_sqd_adv_norm_update_rate=1e-2)
    free = name != "iql" and case.game == "Pendulum"
    model = trainings.rllib_model(OFFLINE["hidden"], head_fcnet_hiddens=[], free_log_std=free)
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
        for at in torch.from_numpy(rng.permutation(int(valid.sum()))).split(OFFLINE["minibatch"]):
            drawn = SampleBatch({key: value[at] for key, value in rows.items()})
            done += len(at)
            learner.update(
                batch=MultiAgentBatch({"default_policy": drawn}, len(at)),
                timesteps={"num_env_steps_sampled_lifetime": done},
            )
        play(case.game, act, epoch + 1)


TRAIN: dict[tuple[str, str], Callable[[Case, int], None]] = {
    ("dqn", "gamut"): playing_gamut,
    ("dqn", SB3): replay_stable_baselines3,
    ("sac", "gamut"): playing_gamut,
    ("sac", SB3): replay_stable_baselines3,
    ("appo", "gamut"): playing_gamut,
    ("appo", RLLIB): appo_rllib,
    **{(name, "gamut"): clone for name in OFFLINE["options"]},
    **{(name, RLLIB): offline_rllib for name in OFFLINE["options"]},
    ("dagger", "gamut"): dagger_gamut,
    ("dagger", "bc"): dagger_bc,
}


def run(out: Path, parallel: int) -> None:
    """Records what there is to learn from, and makes all runs that the folder does not have."""
    for game in GIVEN["teachers"]:
        if not (out / game / "recorded").exists():
            record(game, out / game)
    runs = [
        (name, library, seed)
        for name, case in CASES.items()
        for seed in SEEDS
        for library in ("gamut", case.other)
        if library
    ]
    module = "benchmarks.science.learning_curves"
    trainings.run(out, module, runs, lambda name: CASES[name].steps, parallel)


def report(out: Path) -> str:
    """Returns the table of the runs in a folder."""
    from scipy import stats

    runs, rows, missing = trainings.read(out), [], list[str]()
    for name, case in CASES.items():
        found = {
            library: [r for r in runs if (r["game"], r["library"]) == (name, library)]
            for library in ("gamut", case.other)
        }
        if not any(found.values()):
            missing.append(name)
            continue
        for score in SCORES:
            values = {library: [r[score] for r in own] for library, own in found.items()}
            ours, theirs = values["gamut"], values[case.other]
            cells = [case.algorithm, case.game, f"{case.steps:,} {case.about}", score]
            cells += [case.other or "-", f"{len(ours)}, {len(theirs)}"]
            for own in (ours, theirs):
                mean, half = interval(own) if own else (0.0, 0.0)
                bounds = f" [{mean - half:.4g}, {mean + half:.4g}]" if len(own) > 1 else ""
                cells.append(f"{mean:.4g}{bounds}" if own else "-")
            if min(len(ours), len(theirs)) > 1:
                between, error, degrees = difference(ours, theirs)
                half = float(stats.t.ppf(0.975, degrees)) * error
                cells.append(f"{between:.3g} [{between - half:.3g}, {between + half:.3g}]")
            rows.append(cells + ["-"] * (9 - len(cells)))
    columns = ["algorithm", "game", "length", "score", "beside", "seeds", "ours: mean, 95 %"]
    columns += ["theirs", "difference, 95 %"]
    protocol = "".join((__doc__ or "").partition("**Protocol**")[1:])
    picture = "![Mean curves with 95 % intervals](learning_curves.png)"
    left = f"\nNot run yet: {', '.join(missing)}.\n" if missing else ""
    return f"{protocol}\n{picture}\n\n{table(columns, rows)}{left}"


def picture(out: Path, file: Path) -> None:
    """Draws the curves of the runs in a folder."""
    runs = trainings.read(out)
    titles = {
        name: (f"{case.algorithm}, {case.game}", f"{case.steps:,} {case.about}")
        for name, case in CASES.items()
        if any(each["game"] == name for each in runs)
    }
    trainings.draw(file, runs, titles, ("gamut", SB3, RLLIB, "bc"))


def one(name: str, library: str, seed: int) -> None:
    """Trains once."""
    case = CASES[name]
    TRAIN[case.algorithm, library](case, seed)


def main() -> None:
    trainings.main(
        __doc__,
        "learning_curves",
        "How our algorithms learn beside others",
        make=run,
        report=report,
        picture=picture,
    )


if __name__ == "__main__":
    main()
