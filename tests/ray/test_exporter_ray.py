"""What ``RayExporter`` tells Ray comes out of the node's own endpoint, as Prometheus reads it."""

import re
import time
import urllib.request

import pytest
import ray

from rollout.observe.exporter import EXPORTED, RayExporter
from rollout.observe.metrics import Metrics
from tests.unit.observe.test_exporter import series

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]

LIMIT_S = 600.0
FORGOTTEN_S = 30.0  # more than the twenty seconds after which Ray drops an unset gauge

LINE = {
    "episodes": 40,
    "done": 0.5,
    "rate/steps_per_s": 12.5,
    "rate/episodes_per_s": 0.25,
    "episode": {"return": 3, "length": 20, "success": 0.75, "progress": 0.9, "seconds": 2.0},
    "calls": 12,
    "calls/input_tokens": 1200,
    "calls/output_tokens": 120,
    "calls/unusable_share": 0.25,
    "calls/usd": 0.5,
    "models/in_flight": 3,
    "models/tokens_per_s": 50.0,
    "models/spent": {"calls": 14, "tokens": 1500, "usd": 0.6},
    "models/limit": {"calls": 100, "tokens": None, "usd": 2.0},
    "lost": {"step": 2, "reset": 1},
    "games": {"instances": 8, "ready": 0.875, "memory_mb": 1200},
    "players": {"games": 0.4},
    "restarts": {"failed": 3, "recycled": 1},
    "queue": {"waiting": 5, "in_flight": 2},
    "train": {
        "update": 7,
        "staleness": 1,
        "dropped_steps": 64,
        "policy_loss": -0.01,
        "value_loss": 0.5,
        "entropy": 1.5,
        "approx_kl": 0.01,
        "explained_variance": 0.8,
        "learning_rate": 3e-4,
    },
    "seconds": {"sample": 2.0, "update": 0.2},
}
SERIES = re.compile(r"(ray_gamut_\w+)\{(.*)\} (\S+)")


def scrape(run):
    """The series of a run: their values by name and by their own tags."""
    (node,) = ray.nodes()
    url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urllib.request.urlopen(url, timeout=600) as answer:
        text = answer.read().decode()
    found = {}
    for name, labels, value in SERIES.findall(text):
        tags = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if tags["run"] == run and tags["kind"] == "train":
            own = next(
                (tags[k] for k in ("phase", "cause", "queue", "unit", "le") if k in tags), ""
            )
            found[name, own] = float(value)
    return found


def wait_for(run, true):
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            found = scrape(run)
        except OSError:
            found = {}  # the agent of a new node, on a busy machine
        if true(found):
            return found
        assert time.monotonic() < end, sorted(found)
        time.sleep(1.0)


@pytest.mark.slow
def test_what_is_written_can_be_scraped(tmp_path):
    with (
        Metrics(tmp_path / "metrics.jsonl") as metrics,
        RayExporter("run-17", "train") as exporter,
    ):
        metrics.listen(exporter)
        metrics.write(1000, LINE)
        metrics.write(1500, {"episodes": 44, "restarts": {"failed": 4}, "done": 0.75})
        found = wait_for("run-17", lambda f: f.get(("ray_gamut_done_ratio", "")) == 0.75)
        names = {name for name, _ in found}
        assert [m.name for m in EXPORTED if not names & set(series(m))] == []
        assert names <= {name for metric in EXPORTED for name in series(metric)}
        assert found["ray_gamut_env_steps_total", ""] == 1500
        assert found["ray_gamut_episodes_total", ""] == 44
        assert found["ray_gamut_restarts_total", "failed"] == 4
        assert found["ray_gamut_restarts_total", "recycled"] == 1
        assert found["ray_gamut_episodes_lost_total", "step"] == 2
        assert found["ray_gamut_queue_depth", "in_flight"] == 2
        assert found["ray_gamut_model_spent", "usd"] == 0.6
        assert found["ray_gamut_model_limit", "calls"] == 100
        assert found["ray_gamut_update_seconds_count", ""] == 1
        assert found["ray_gamut_update_seconds_bucket", "0.3"] == 1
        assert found["ray_gamut_update_seconds_bucket", "0.1"] == 0


@pytest.mark.long
def test_gauges_stay_as_long_as_the_job_and_no_longer(tmp_path):
    """No line is written for long, as with slow updates; then the job ends."""
    with (
        Metrics(tmp_path / "metrics.jsonl") as metrics,
        RayExporter("run-18", "train") as exporter,
    ):
        metrics.listen(exporter)
        metrics.write(1500, {**LINE, "done": 0.75})
        wait_for("run-18", lambda f: f.get(("ray_gamut_done_ratio", "")) == 0.75)
        time.sleep(FORGOTTEN_S)
        assert scrape("run-18")["ray_gamut_done_ratio", ""] == 0.75
    found = wait_for("run-18", lambda f: ("ray_gamut_done_ratio", "") not in f)
    assert found["ray_gamut_env_steps_total", ""] == 1500
