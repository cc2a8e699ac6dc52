"""Any bytes in any file of a run: a promised exit status, one line that names the file, no loss."""

import os
import random
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.observe.metrics import read_metrics
from tests.unit.damage import runs
from tests.unit.damage.mutations import MUTATIONS, damage

pytestmark = pytest.mark.heavy

# What was recorded. A whole file of these stays, or goes on; one that is damaged is kept somewhere.
RECORDED = re.compile(
    r"(^|/)(checkpoints/.*|data/.*|(episodes|losses|metrics)\.jsonl|evaluation\.parquet|run\.log)$"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with a run directory of every job, which is copied and never changed."""

    def draw(points, stem, **_):
        paths = stem.with_suffix(".png"), stem.with_suffix(".svg")
        for path in paths:
            path.write_text(f"{len(points)} points")
        return paths

    folder = tmp_path_factory.mktemp("runs")
    (folder / "faults").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWEEP_FAULTS", str(folder / "faults"))
        patch.setattr("rollout.job.ray_session", runs.no_ray)
        patch.setattr("rollout.job.require_session", lambda _: None)
        patch.setattr("rollout.sweep.figure.draw", draw)
        for kind in runs.MAKERS:
            runs.make(kind, folder / kind)
        yield folder


def contents(run):
    files = [p for p in run.rglob("*") if p.is_file() and not p.is_symlink()]
    return {p.relative_to(run).as_posix(): p.read_bytes() for p in files}


def missing(before, after, damaged):
    """Recorded files that are neither where they were, or longer, nor anywhere else."""
    kept = set(after.values())
    for name, data in before.items():
        now = after.get(name, b"")
        if not RECORDED.search(name) or data in kept or now.startswith(data):
            continue
        if name.endswith(".jsonl"):
            whole = data[: data.rfind(b"\n") + 1]
            # An incomplete line is removed, and so are steps that are made again.
            again = name.endswith(("episodes.jsonl", "metrics.jsonl"))
            if now.startswith(whole) or (again and data.startswith(now)):
                continue
        # A damaged table of results, or one of damaged data, is made again.
        if name.endswith("evaluation.parquet") and name != damaged:
            continue
        yield name


def check(base, kind, file, mutation, reader, seed):
    folder = base / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base / kind, folder)
    damage(folder / "run" / file, mutation, seed)
    before = contents(folder / "run")
    status, said = runs.READERS[kind][reader](folder)
    case = (kind, reader, file, mutation, seed, status, said)
    assert status in (0, 2, 3), case
    assert "Traceback" not in said, case
    if status == 2:
        assert len(said.splitlines()) == 1, case
        assert str(folder) in said, case
    assert not list(missing(before, contents(folder / "run"), file)), case


def test_a_training_removes_the_lines_of_steps_that_it_makes_again(base):
    folder = base / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base / "train", folder)
    assert runs.READERS["train"]["resume"](folder)[0] == 3  # no Ray here
    lines = read_metrics(folder / "run" / "metrics.jsonl")
    assert [line["train/update"] for line in lines] == list(range(1, 9))


@pytest.mark.parametrize("kind", runs.MAKERS)
@settings(max_examples=8)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_damaged_file_is_named_and_nothing_is_lost(base, kind, data, seed):
    file = data.draw(st.sampled_from(runs.files_of(base / kind / "run")))
    mutation = data.draw(st.sampled_from(sorted(MUTATIONS)))
    reader = data.draw(st.sampled_from(sorted(runs.READERS[kind])))
    check(base, kind, file, mutation, reader, seed)


@pytest.mark.long
@pytest.mark.parametrize("kind", runs.MAKERS)
def test_hundreds_of_damaged_files_are_named(base, kind):
    """As many as ``GAMUT_MUTATIONS`` says, of each job."""
    rng = random.Random(os.environ.get("GAMUT_MUTATION_SEED", "0"))
    for _ in range(int(os.environ.get("GAMUT_MUTATIONS", "400"))):
        file = rng.choice(runs.files_of(base / kind / "run"))
        chosen = rng.choice(sorted(MUTATIONS)), rng.choice(sorted(runs.READERS[kind]))
        check(base, kind, file, *chosen, rng.randrange(2**32))


@pytest.mark.long
@pytest.mark.parametrize("mutation", ["folder", "dangling", "looping"])
def test_every_file_that_is_a_folder_or_a_dead_link_is_named(base, mutation):
    """Each once ended a job with a traceback; a random draw of files seldom meets them."""
    for kind in runs.MAKERS:
        for file in runs.files_of(base / kind / "run"):
            check(base, kind, file, mutation, "resume", 0)
