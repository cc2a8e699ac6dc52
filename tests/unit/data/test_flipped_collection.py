"""A collection that is killed, one bit of whose journal flips, and that is resumed."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rollout.cli import Session
from rollout.collect import collect
from rollout.commands import dataset as script
from rollout.config import CollectConfig
from rollout.data import Dataset, Layout
from rollout.data.journal import JournalReader
from rollout.signals import Stop

ROOT = Path(__file__).resolve().parents[3]
EPISODES, BATCHES = 400, 12

pytestmark = pytest.mark.process


def killed(config, folder):
    """Starts a collection and kills it; returns its journal, which has some batches."""
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, str(ROOT / "scripts/collect.py"), "--config", folder / "config.yaml"]
    journal = JournalReader(Layout(folder / "run" / "dataset").journal(0))
    with (folder / "said").open("w") as said, subprocess.Popen(command, stderr=said) as process:
        try:
            for _ in range(3000):
                assert process.poll() is None, (folder / "said").read_text()
                if journal.path.exists() and len(list(journal.scan())) >= BATCHES:
                    break
                time.sleep(0.1)
        finally:
            process.kill()
    return journal


def test_a_flipped_bit_in_a_killed_collection_costs_its_batch_and_is_played_again(tmp_path, capsys):
    config = {
        "output": str(tmp_path / "run"),
        "bridge": {"name": "fake", "step_s": 0.01, "max_steps": 12},
        "policy": "random",
        "actors": 0,
        "width": 4,
        "fragment": {"steps": 8},
        "episodes": EPISODES,
        "wandb": {"mode": "disabled"},
    }
    journal = killed(config, tmp_path)
    batches = list(journal.scan())
    assert len(batches) >= BATCHES
    data, hit = bytearray(journal.path.read_bytes()), len(batches) // 2
    place = random.Random(1).randrange(journal.offsets[hit], journal.offsets[hit + 1])
    data[place] ^= 16
    journal.path.write_bytes(data)

    ended = [
        {row["episode"] for row in batch.to_pylist() if row["terminated"] or row["truncated"]}
        for batch in batches
    ]
    kept = set().union(*ended) - set(batches[hit].column("episode").to_pylist())
    assert len(kept) > BATCHES
    lost = f"lost are {batches[hit].num_rows} steps, in which {len(ended[hit])} episodes finished"
    assert script.main(["doctor", config["output"]]) == 3
    assert lost in capsys.readouterr().out
    assert script.main(["repair", config["output"]]) == 0
    assert lost in capsys.readouterr().out
    with Dataset(config["output"]) as dataset:
        assert dataset.counts.steps == sum(b.num_rows for b in batches) - batches[hit].num_rows
        before = {ref.episode: ref.started for ref in dataset.episodes()}
    assert before.keys() == kept

    assert collect(CollectConfig.model_validate(config), Session(True, Stop())) is None
    with Dataset(config["output"]) as dataset:
        after = {ref.episode: ref.started for ref in dataset.episodes()}
        assert sorted(ref.episode for ref in dataset.episodes()) == list(range(EPISODES))
    assert before.items() <= after.items(), "an episode that was whole was played again"
    assert script.main(["doctor", config["output"]]) == 0
