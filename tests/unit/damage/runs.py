"""Small run directories of every job, and all that reads them, for the tests of damaged files."""

import contextlib
import io
import json
import shutil
from dataclasses import replace
from functools import partial

import torch
import yaml

from rollout.api import EpisodeResult, Outcome
from rollout.cli import main
from rollout.collect import collect
from rollout.commands import dataset as dataset_command
from rollout.commands import watch as watch_command
from rollout.config import CollectConfig, PolicyConfig
from rollout.errors import BudgetExhausted
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.host.schedule import Schedule, Visits
from rollout.observe.metrics import Metrics
from rollout.run_directory import RunDirectory
from rollout.sweep.config import SweepConfig
from rollout.sweep.sweep import sweep
from rollout.train.checkpoint import write_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.episodes import EpisodeLog
from rollout.train.plan import TrainPlan
from rollout.train.search import run_trial, search
from rollout.train.search_config import SearchConfig
from rollout.train.train import train
from tests.unit.sweep import sweep_trainer

TRIAL = "00000-lr=0.001"
TRAIN = {
    "bridge": {"name": "fake", "side": 4, "max_steps": 20},
    "policy": {"name": "actor_critic", "hidden": [4], "columns": ["position"]},
    "width": 2,
    "runners": 1,  # so that it needs Ray
    "fragment": {"steps": 8},
    "env_steps": 1000,
    "algorithm": {"batch": 16, "minibatch": 16, "bptt": 8},
}
CONFIGS = {
    "collect": {
        "bridge": {"name": "fake", "side": 4, "max_steps": 20},
        "policy": "random",
        "width": 2,
        "episodes": 9,
        "actors": 0,
        "fragment": {"steps": 8},
        "wandb": {"mode": "disabled"},
    },
    "train": {**TRAIN, "wandb": {"mode": "disabled"}},
    "search": {"train": TRAIN, "space": {"algorithm.lr": [1e-3]}, "wandb": {"mode": "disabled"}},
    "evaluate": {
        "bridge": {"name": "fake", "side": 4, "max_steps": 20},
        "players": {"random": "random"},
        "sets": {"test": {"split": "test", "size": 3}},
        "episodes_per_state": 2,
        "metric": "return",
        "actors": 0,
        "width": 2,
        "fragment": {"steps": 8},
        "wandb": {"mode": "disabled"},
    },
    "sweep": {
        "train": {
            **{k: v for k, v in TRAIN.items() if k != "policy"},
            "state_set": {"test": 30, "validation": 0},
        },
        "sizes": [2],
        "seeds": [0],
        "evaluate": {"test_states": 3, "train_states": 2, "metric": "return"},
        "parallel": 0,
        "retries": 0,
        "wandb": {"mode": "disabled"},
    },
}
TRAINER = replace(sweep_trainer.TRAINER, player=lambda _: PolicyConfig(name="random"))
JOBS = {
    "collect": (collect, CollectConfig),
    "train": (train, TrainConfig),
    "search": (search, SearchConfig),
    "evaluate": (evaluate, EvaluateConfig),
    "sweep": (partial(sweep, trainer=TRAINER), SweepConfig),
}


@contextlib.contextmanager
def said():
    """Catches what is printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield err


def call(kind, folder, *arguments, function=None):
    """Calls the script of a job on ``folder/run``; returns the exit status and what it said."""
    config = folder / f"{kind}.yaml"
    config.write_text(yaml.safe_dump({**CONFIGS[kind], "output": str(folder / "run")}))
    own, model = JOBS[kind]
    arguments = ["--config", str(config), "--set", "log.level=error", *arguments]
    with said() as err:
        status = main(function or own, model, "A job.", arguments)
    return status, err.getvalue()


def no_ray(*_args, **_kwargs):
    """Stands for a session of Ray: whoever gets here has read all there was to read."""
    raise BudgetExhausted("this is where Ray would start")


def make_collect(folder):
    """A shard, and the journal of a session that was killed."""
    assert call("collect", folder, "--set", "episodes=4")[0] == 0
    seen = []

    def snapshot(_):
        seen.append(1)
        if len(seen) == 3:
            shutil.copytree(folder / "run", folder / "killed")

    assert call("collect", folder, "--resume", function=partial(collect, watch=snapshot))[0] == 0
    shutil.rmtree(folder / "run")
    (folder / "killed").rename(folder / "run")


def make_train(config):
    """As training leaves it after ten updates, with two checkpoints."""
    plan = TrainPlan.make(config)
    network = plan.network()
    visits = Visits(plan.states)
    schedule = Schedule(plan.states, seed=0, episodes=None)
    with (
        RunDirectory.opened(config.output, plan.config, resume=False) as run,
        Metrics(run.metrics, constants={"resume_count": 0}) as metrics,
        contextlib.closing(EpisodeLog(run.path / "episodes.jsonl", 0)) as episodes,
    ):
        for update in range(1, 11):
            starts = schedule.take(2)
            results = [
                EpisodeResult(s, 0, 0, "terminated", Outcome.SUCCESS, 5, 1.0, 1.0, 0.1)
                for s in starts
            ]
            visits.add(results)
            episodes.write(update, 16 * update, results, [{} for _ in results])
            metrics.write(16 * update, {"train/update": update, "episode/return": 1.0})
            if update in (4, 8):
                write_checkpoint(
                    run.checkpoints,
                    {
                        "update": update,
                        "env_steps": 16 * update,
                        "episodes": 2 * update,
                        "seconds": 1.0,
                        "positions": {"0": schedule.state()},
                        "visits": visits.state(),
                        "lost": {},
                        "abandoned": [],
                        "policy": {"name": "actor_critic", "options": plan.config.policy.options},
                    },
                    weights=network.state_dict(),
                    optimizer={"state": {}, "at": torch.zeros(2)},
                    spec=plan.bridge.spec,
                    reads=plan.reads,
                )
        run.write_summary({"status": "interrupted", "run_id": run.run_id, "resume_count": 0})
        run.log.write_text("2026-01-31T12:00:01.123+00:00 WARNING rollout.host slow | run=x\n")


def make_evaluate(folder):
    """Half of it was played when it was killed."""
    assert call("evaluate", folder)[0] == 0
    run = folder / "run"
    lines = (run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (run / "episodes.jsonl").write_bytes(b"".join(lines[:3]))
    loss = {k: json.loads(lines[3])[k] for k in ("player", "set", "actions", "position", "state")}
    loss |= {k: json.loads(lines[3])[k] for k in ("repeat", "episode_seed")}
    loss |= {"phase": "step", "reason": "it crashed", "steps": 2}
    (run / "losses.jsonl").write_text(json.dumps(loss) + "\n")
    (run / "summary.json").unlink()


def make_sweep(folder):
    """All was done."""
    status, text = call("sweep", folder)
    assert status == 0, text


def make_search(folder):
    """Killed when its one trial had come to its second checkpoint."""
    assert call("search", folder)[0] == 3
    config = SearchConfig.model_validate({**CONFIGS["search"], "output": folder / "run"})
    make_train(config.trial({"algorithm.lr": 1e-3}, folder / "run" / "trials" / TRIAL))


MAKERS = {
    "collect": make_collect,
    "train": lambda folder: make_train(
        TrainConfig.model_validate({**CONFIGS["train"], "output": folder / "run"})
    ),
    "evaluate": make_evaluate,
    "sweep": make_sweep,
    "search": make_search,
}


def resume(kind):
    """Returns what goes on with a run."""
    return lambda folder: call(kind, folder, "--resume")


def dataset(command):
    def act(folder):
        with said() as err:
            more = ["--out", str(folder / "actions.npz")] if command == "actions" else []
            status = dataset_command.main([command, str(folder / "run" / "dataset"), *more])
        return status, err.getvalue()

    return act


def watch(folder):
    with said() as err:
        status = watch_command.main([str(folder / "run"), "--once"])
    return status, err.getvalue()


def play_checkpoint(folder):
    """An evaluation with the checkpoint of the run as its player."""
    player = f"players={{a: {{name: checkpoint, path: {folder / 'run'}}}}}"
    other = folder / "other"
    other.mkdir(exist_ok=True)
    return call("evaluate", other, "--set", player)


def go_on_with_trial(folder):
    """What a trial of a search does before it trains."""

    def trial(config, _):
        run_trial(config, {"algorithm.lr": 1e-3}, TRIAL, lambda _: None)

    return call("search", folder, function=trial)


READERS = {
    "collect": {
        "resume": resume("collect"),
        "watch": watch,
        **{name: dataset(name) for name in ("info", "doctor", "repair", "play", "actions")},
    },
    "train": {"resume": resume("train"), "watch": watch, "player": play_checkpoint},
    "evaluate": {"resume": resume("evaluate"), "watch": watch},
    "sweep": {"resume": resume("sweep"), "watch": watch},
    "search": {"resume": resume("search"), "watch": watch, "trial": go_on_with_trial},
}


def make(kind, folder):
    """Makes a run directory in ``folder/run``."""
    folder.mkdir(parents=True)
    MAKERS[kind](folder)


def files_of(run):
    """Every file of a run, by its path in it, that is worth damaging."""
    return sorted(str(p.relative_to(run)) for p in run.rglob("*") if p.is_file())
