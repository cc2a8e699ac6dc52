"""Every Python block of README and docs, and the notebook, runs as a script, and ends by itself.

Blocks run in a temporary folder, where each folder ``runs/NAME`` that a block names is a recorded
run with two episodes, and ``my_sweep.yaml`` is a short sweep.
"""

import json
import multiprocessing
import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path

import pytest
import ray
import yaml

from bridges.mineflayer.node import packages_problem
from rollout.cli import Session
from rollout.cluster.addresses import ADDRESS
from rollout.collect import collect
from rollout.config import CollectConfig, load_config, parse_set
from rollout.host.session import ray_session
from rollout.signals import Stop

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LIMIT_S = 300  # against blocks that never end; a busy machine may take ten times as long
AT_ONCE = 2
# A block is a fork of a process that has imported what many of them use.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ray.rllib.algorithms.ppo", "rollout.cli", "rollout.testing"])

pytestmark = [pytest.mark.heavy, pytest.mark.process, pytest.mark.ray]

BLOCKS = {
    f"{page.relative_to(ROOT).as_posix()}-{number}": block
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text()), 1)
}
# The notebook is committed with its output: nbclient makes it again. Here it trains for less.
NOTEBOOK = "docs/first_run.ipynb"
CELLS = [c for c in json.loads((ROOT / NOTEBOOK).read_text())["cells"] if c["cell_type"] == "code"]
BLOCKS[NOTEBOOK] = "\n\n".join("".join(cell["source"]) for cell in CELLS).replace("60_000", "4_000")

SWEEP = {
    "output": "runs/sweep",
    "train": {
        "bridge": {"name": "gymnasium", "id": "CartPole-v1"},
        "task": "cartpole",
        "env_steps": 64,
        "width": 8,
        "state_set": {"validation": 0, "test": 100},
        "fragment": {"steps": 8},
        "algorithm": {"name": "ppo", "batch": 64, "minibatch": 64, "bptt": 8},
    },
    "sizes": [8],
    "seeds": [0],
    "evaluate": {"test_states": 8, "train_states": 8, "metric": "return"},
}


def left_out(block):
    """Why a block cannot run here; empty if it can."""
    if "import rliable" in block or "from rliable" in block:
        return "tests/unit/evaluate/test_statistics_rliable.py runs it: it needs another pandas"
    for package in ("smolagents", "inspect_ai"):
        if f"from {package}" in block:
            return f"tests/unit/agents/test_documented.py runs it where {package} is installed"
    if "bridges.mineflayer" in block and packages_problem():
        return "run `make mineflayer`"
    return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the blocks run."""
    folder = tmp_path_factory.mktemp("snippets")
    (folder / "runs").mkdir()
    settings = ["episodes=2", "actors=0", "wandb.mode=disabled", f"output={folder / 'recorded'}"]
    config = load_config(
        CollectConfig,
        ROOT / "configs" / "collect_hunt_sheep.yaml",
        [parse_set(text) for text in settings],
    )
    with Stop() as stop:
        assert collect(config, Session(resume=False, stop=stop)) is None
    for name in sorted(set(re.findall(r"\bruns/(\w+)/dataset", "\n".join(BLOCKS.values())))):
        (folder / "runs" / name).symlink_to(folder / "recorded")
    (folder / "my_sweep.yaml").write_text(yaml.safe_dump(SWEEP))
    return folder


@pytest.fixture(scope="module")
def address():
    """One Ray for all blocks, which is faster than one each."""
    with ray_session(num_cpus=4):
        yield ray.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def running(folder, address, request):
    """The future of each block that was selected; some run at once, since they often wait."""
    items = [i for i in request.session.items if i.path == request.path and hasattr(i, "callspec")]
    names = [item.callspec.params["name"] for item in items]
    with pytest.MonkeyPatch.context() as patch:
        for key, value in {"PYTHONPATH": ROOT, "MPLBACKEND": "agg", ADDRESS: address}.items():
            patch.setenv(key, str(value))
        forkserver.ensure_running()
    with ThreadPoolExecutor(AT_ONCE) as executor:
        yield {
            name: executor.submit(run, folder, name) for name in names if not left_out(BLOCKS[name])
        }


AROUND = """import os, sys
os.chdir({folder!r})
sys.path.insert(0, {folder!r})
for descriptor in (1, 2):
    os.dup2(os.open({said!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
{block}
import atexit
atexit._run_exitfuncs()  # multiprocessing does not
"""


def run(folder, name):
    """Returns the exit status of a block and what it printed."""
    script = folder / f"{name.replace('/', '-')}.py"
    said = script.with_suffix(".txt")
    said.touch()
    script.write_text(AROUND.format(folder=str(folder), said=str(said), block=BLOCKS[name]))
    process = FORKS.Process(target=runpy.run_path, args=(str(script), None, "__main__"))
    process.start()
    process.join(LIMIT_S)
    status = process.exitcode
    process.kill()
    return status, said.read_text()


def test_the_notebook_was_executed():
    assert [cell["execution_count"] for cell in CELLS] == [*range(1, len(CELLS) + 1)]


# A whole sweep; its loop has tests of its own.
LONG = "docs/sweep.md-1"
assert "sweep(config" in BLOCKS[LONG]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] if n == LONG else []) for n in BLOCKS]
)
def test_a_block_runs_as_a_script(name, running):
    if why := left_out(BLOCKS[name]):
        pytest.skip(why)
    status, said = running[name].result()
    assert status == 0, f"{BLOCKS[name]}\n{said}"
