"""What runs used and made, in their files and as artifacts of W&B."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_wandb_mirror import parsed

from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.observe import lineage
from rollout.observe.lineage import ArtifactLog, Lineage, artifact_of
from rollout.signals import Stop
from rollout.train.offline import learn_offline
from rollout.train.offline_config import OfflineConfig

pytestmark = pytest.mark.heavy
BRIDGE = {"name": "fake", "max_steps": 6}


def expert(observations):
    return (observations["position"][:, 0] > 0.5).astype(np.int64)


def run(job, kind, folder, mode="disabled", **keys):
    config = kind.model_validate({"output": str(folder), "wandb": {"mode": mode}, **keys})
    with Stop() as stop:
        assert job(config, Session(resume=False, stop=stop)) is None
    return folder


def collected(folder, mode="disabled", **keys):
    policy = {"name": "callable", "function": f"{__name__}:expert"}
    known = {"bridge": BRIDGE, "policy": policy, "episodes": 8, "actors": 0, "width": 4}
    return run(collect, CollectConfig, folder, mode, **{**known, **keys})


def cloned(folder, dataset, mode="disabled"):
    policy = {"name": "actor_critic", "hidden": [8], "columns": ["position"]}
    algorithm = {"name": "bc", "epochs": 2, "minibatch": 8}
    keys = {"dataset": str(dataset), "policy": policy, "algorithm": algorithm}
    return run(learn_offline, OfflineConfig, folder, mode, **keys)


def evaluated(folder, player, mode="disabled"):
    players = {"clone": {"name": "checkpoint", "path": str(player)}, "chance": "random"}
    keys = {"bridge": BRIDGE, "players": players, "sets": {"train": {"size": 4}}}
    return run(evaluate, EvaluateConfig, folder, mode, **keys, actors=0, width=4)


def lines(folder, relation):
    found = lineage.read(folder / "lineage.jsonl")
    return [line for line in found if line["relation"] == relation]


def recorded(folder):
    """The artifacts that an offline run would send, except W&B's own of tables."""
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return [each for each in parsed(file, "artifact") if each.type != "run_table"]


def artifacts(folder):
    """Used or made, type, name and W&B's digest of each artifact."""
    return {
        ("used" if each.use_after_commit else "made", each.type, each.name, each.digest)
        for each in recorded(folder)
    }


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """A dataset, a clone of it, and the evaluation of that, each mirrored offline."""
    path = tmp_path_factory.mktemp("chain")
    dataset = collected(path / "collect", "offline")
    clone = cloned(path / "clone", dataset, "offline")
    scores = evaluated(path / "scores", clone, "offline")
    return dataset, clone, scores


@pytest.mark.process
def test_offline_runs_have_the_graph_from_dataset_to_evaluation(chain):
    dataset, clone, scores = map(artifacts, chain)
    (written,) = dataset
    assert written[:2] == ("made", "dataset")
    assert {each for each in clone if each[0] == "used"} == {("used", *written[1:])}
    models = {each[1:] for each in clone if each[:2] == ("made", "model")}
    (played,) = (each[1:] for each in scores if each[0] == "used")
    assert played in models
    assert [each[:2] for each in scores if each[0] == "made"] == [("made", "evaluation")]


@pytest.mark.process
def test_only_results_are_sent(chain):
    sent = {}
    for folder in chain:
        for each in recorded(folder):
            for entry in each.manifest.contents:
                sent.setdefault(each.type, set()).add(entry.path)
                assert Path(entry.local_path).is_file()  # W&B reads it when the run is sent
    identity = {"gamut.json"}
    results = {"summary.json", "report.md", "episodes.parquet"}
    assert sent == {"dataset": identity, "model": identity, "evaluation": identity | results}


def test_two_runs_name_one_artifact_wherever_its_files_are(tmp_path):
    dataset = collected(tmp_path / "collect")
    (made,) = lines(dataset, "made")
    shutil.copytree(dataset / "dataset", tmp_path / "moved")
    for path, source in ((dataset, "one"), (tmp_path / "moved", "two")):
        (used,) = lines(cloned(tmp_path / source, path), "used")
        assert (used["name"], used["digest"]) == (made["name"], made["digest"])
    one, two = (lines(tmp_path / name, "made") for name in ("one", "two"))
    assert one[-1]["digest"] != two[-1]["digest"]  # of different runs
    with Dataset(dataset) as opened:
        assert artifact_of(opened).digest == made["digest"]
    other = collected(tmp_path / "other")
    assert lines(other, "made")[0]["digest"] != made["digest"]


def test_a_policy_of_a_checkpoint_is_used(tmp_path):
    clone = cloned(tmp_path / "clone", collected(tmp_path / "collect"))
    played = collected(tmp_path / "played", policy={"name": "checkpoint", "path": str(clone)})
    (used,) = lines(played, "used")
    newest = max((clone / "checkpoints").glob("[0-9]*"))
    digests = json.loads((newest / "checkpoint.json").read_text())["sha256"]
    assert used["digest"] == digests["checkpoint.json"]
    assert used["path"] == str(newest)
    assert used["digest"] in [line["digest"] for line in lines(clone, "made")]
    assert lines(clone, "used")[0]["digest"] == lines(tmp_path / "collect", "made")[0]["digest"]
    vlm = SimpleNamespace(local=SimpleNamespace(model=str(clone / "model")))
    assert artifact_of(vlm).digest == used["digest"]
    assert artifact_of(SimpleNamespace(local=SimpleNamespace(model="hub/name"))) is None


def test_what_has_no_lineage_stops_nothing(tmp_path, caplog):
    written = Lineage(tmp_path / "lineage.jsonl")
    written.add("made", tmp_path / "none", object())
    assert "none" in caplog.text
    (tmp_path / "taken").mkdir()
    Lineage(tmp_path / "taken").add("made", object())
    assert list(lineage.read(tmp_path / "taken")) == []


def test_the_same_is_named_once_and_damaged_lines_are_left_out(tmp_path):
    path = tmp_path / "lineage.jsonl"
    dataset = collected(tmp_path / "collect")
    path.write_text('{"relation": "used"}\nnonsense\n{"rel')
    with Dataset(dataset) as opened:
        Lineage(path).add("used", opened, opened)
        Lineage(path).add("used", opened)
    assert len(list(lineage.read(path))) == 1


def test_a_failure_of_wandb_is_a_warning(tmp_path, caplog, monkeypatch):
    pytest.importorskip("wandb")
    dataset = collected(tmp_path / "collect")
    seen = []

    class Broken:
        offline = False

        def log_artifact(self, artifact):
            seen.append(("made", artifact.name))
            raise RuntimeError("no server")

        def use_artifact(self, artifact):
            seen.append(("used", artifact.name))

    with Dataset(dataset) as opened:
        Lineage(dataset / "lineage.jsonl").add("used", opened)
    log = ArtifactLog(Broken(), dataset / "lineage.jsonl", tmp_path / "folder")
    log.send()
    log.send()  # nothing is new
    name = lines(dataset, "made")[0]["name"]
    assert seen == [("made", name), ("used", name)]
    assert f"W&B has no artifact {name}: RuntimeError: no server" in caplog.text
