"""The file for ``wandb sweep``: what its agents would run is a training run that can be."""

from pathlib import Path

import yaml

from rollout.config import WandbConfig, load_config
from rollout.observe.wandb_mirror import mirror_settings
from rollout.train.config import TrainConfig

ROOT = Path(__file__).resolve().parents[3]
SWEEP = yaml.safe_load((ROOT / "configs" / "sweeps" / "wandb_hunt_sheep.yaml").read_text())


def test_every_end_of_every_parameter_is_a_valid_setting():
    config = SWEEP["command"][SWEEP["command"].index("--config") + 1]
    for name, values in SWEEP["parameters"].items():
        ends = values.get("values") or [values["min"], values["max"]]
        for value in ends:
            load_config(TrainConfig, ROOT / config, [(name, value)])
    assert (ROOT / SWEEP["program"]).exists()
    assert SWEEP["command"][-2:] == ["--set", "${args_no_hyphens}"]


def test_the_mirror_is_the_run_that_the_sweep_waits_for(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    monkeypatch.setenv("WANDB_RUN_ID", "a1")
    wandb = WandbConfig(mode="offline")
    found = mirror_settings(wandb, tmp_path, "own", job_type="train", config={})
    assert found is not None
    assert found["id"] == "a1"
