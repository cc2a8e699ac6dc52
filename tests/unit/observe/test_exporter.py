"""What Ray is told of a line of metrics, and that the dashboard shows it."""

import json
import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import promql_parser
import pytest
import yaml

from rollout.observe.exporter import (
    COMMON_TAGS,
    EXPORTED,
    OTHER,
    Exported,
    RayExporter,
    ray_instruments,
)
from rollout.observe.metrics import Metrics

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "configs" / "grafana" / "gamut.json"
MONITORING = ROOT / "configs" / "grafana" / "monitoring.yaml"
DOCUMENT = ROOT / "docs" / "watching.md"


class Ray:
    """Keeps what it is told."""

    def __init__(self):
        self.defined, self.told = [], []

    def __call__(self, metric):
        self.defined.append(metric.name)

        def record(value, tags):
            assert set(tags) == set(metric.tags)
            own = tags.get(metric.tag, "") if metric.tag else ""
            self.told.append((metric.name, own, value))

        return record


@pytest.fixture
def ray():
    return Ray()


@pytest.fixture
def tell(ray):
    with RayExporter("run-1", "train", instruments=lambda: ray) as exporter:
        yield exporter


def gauge(name, **more):
    return Exported("x", name, "gauge", "doc", **more)


def problems(metric):
    """What Ray would discard without a word, or Prometheus would rename or refuse."""
    name = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
    # Prometheus gives these to every target itself.
    taken = {"job", "instance", "le", "quantile", *COMMON_TAGS}
    has_tag = bool(metric.tag)
    found = {
        "name": not name.fullmatch(metric.name) or not metric.name.startswith("gamut_"),
        "_total is added by Ray": metric.name.endswith("_total"),
        "tag": has_tag and (not name.fullmatch(metric.tag) or metric.tag in taken),
        "values": not metric.source.endswith("/*") == has_tag == bool(metric.values),
    }
    return [problem for problem, there in found.items() if there]


def series(metric):
    """The names of a metric in Prometheus."""
    if metric.kind == "histogram":
        return tuple(f"ray_{metric.name}_{part}" for part in ("bucket", "sum", "count"))
    return (f"ray_{metric.name}_total" if metric.kind == "counter" else f"ray_{metric.name}",)


@pytest.mark.parametrize(
    "name", ["gamut_a-b", "gamut_a.b", "gamut_a/b", "gamut_a:b", "a", "gamut_ä", "1gamut_a", ""]
)
def test_a_name_that_ray_discards_is_found(name):
    assert problems(gauge(name)) == ["name"]


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (gauge("gamut_a_total"), "_total is added by Ray"),
        (Exported("x/*", "gamut_a", "gauge", "", "job", ("y",)), "tag"),
        (Exported("x/*", "gamut_a", "gauge", "", "instance", ("y",)), "tag"),
        (Exported("x/*", "gamut_a", "gauge", "", "a-b", ("y",)), "tag"),
        (Exported("x/*", "gamut_a", "gauge", ""), "values"),
        (Exported("x/*", "gamut_a", "gauge", "", "phase"), "values"),
        (gauge("gamut_a", tag="phase", values=("y",)), "values"),
    ],
)
def test_what_prometheus_would_change_or_refuse_is_found(metric, problem):
    assert problems(metric) == [problem]


@pytest.mark.parametrize("metric", EXPORTED, ids=lambda metric: metric.name)
def test_prometheus_takes_every_metric_as_it_is(metric):
    assert problems(metric) == []


def test_the_table_names_nothing_twice_and_only_few_values():
    assert len({m.name for m in EXPORTED}) == len({m.source for m in EXPORTED}) == len(EXPORTED)
    assert all(len(m.values) <= 10 and m.doc for m in EXPORTED)


def test_a_gauge_is_set_and_a_histogram_observed(ray, tell):
    tell({"rate/steps_per_s": 12.5, "seconds/update": 3, "unknown": 1})
    assert ray.told == [
        ("gamut_env_steps_per_second", "", 12.5),
        ("gamut_update_seconds", "", 3.0),
    ]


def test_a_counter_shows_the_total_and_never_falls(ray, tell):
    for total in (0, 100, 100, 90, 130):
        tell({"env_steps": total})
    assert ray.told == [("gamut_env_steps", "", 100), ("gamut_env_steps", "", 30)]
    assert ray.defined == ["gamut_env_steps"]


def test_what_is_no_number_is_left_out(ray, tell):
    tell({"done": None, "episodes": True, "episode/return": "x", "train/entropy": 1e400})
    assert ray.told == []


def test_a_tag_has_its_listed_values_and_no_others(ray, tell):
    tell({"lost/step": 2, "lost/reset": 1, "lost/episode-17": 4, "lost/x": 1, "lost": 8})
    tell({"lost/step": 3, "lost/episode-17": 5, "lost/x": 1})
    assert ray.told == [
        ("gamut_episodes_lost", "step", 2),
        ("gamut_episodes_lost", "reset", 1),
        ("gamut_episodes_lost", OTHER, 5),
        ("gamut_episodes_lost", "step", 1),
        ("gamut_episodes_lost", OTHER, 1),
    ]


def test_without_ray_nothing_happens_and_later_everything_counts(ray):
    found = iter([None, ray])
    tell = RayExporter("run-1", "train", instruments=lambda: next(found))
    tell({"env_steps": 10})
    tell({"env_steps": 30})
    assert ray.told == [("gamut_env_steps", "", 30)]


def test_what_ray_refuses_is_one_warning(caplog):
    def refuse(metric):
        raise RuntimeError("no agent")

    tell = RayExporter("run-1", "train", instruments=lambda: refuse)
    with caplog.at_level(logging.WARNING):
        tell({"env_steps": 10})
        tell({"env_steps": 20})
    (message,) = caplog.messages
    assert "RuntimeError: no agent; metrics.jsonl has everything" in message


def wait_until(true):
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def test_gauges_are_set_again_until_it_is_closed(ray):
    """Ray forgets a gauge that was not set for a while; lines of slow jobs are rarer than that."""
    with RayExporter("r", "train", instruments=lambda: ray, refresh_s=0.01) as tell:
        tell({"env_steps": 3, "done": 0.1, "queue/waiting": 4})
        tell({"done": 0.2})
        before = len(ray.told)
        wait_until(lambda: len(ray.told) > before + 10)
    after = len(ray.told)
    again = {("gamut_done_ratio", "", 0.2), ("gamut_queue_depth", "waiting", 4)}
    assert set(ray.told[before:]) == again
    tell({"done": 0.3})
    time.sleep(0.1)
    assert len(ray.told) == after
    tell.close()


def test_gauges_of_a_job_that_says_nothing_go_away(ray):
    with RayExporter("r", "train", instruments=lambda: ray, refresh_s=0.01, hold_s=0.0) as tell:
        tell({"done": 0.1})
        time.sleep(0.2)
        assert len(ray.told) == 1


def test_gauges_are_left_alone_while_ray_does_not_run(ray):
    running = [True]
    make = lambda: ray if running[0] else None  # noqa: E731 - a switch
    with RayExporter("r", "train", instruments=make, refresh_s=0.01) as tell:
        tell({"done": 0.1})
        wait_until(lambda: len(ray.told) > 2)
        running[0] = False
        time.sleep(0.1)
        before = len(ray.told)
        time.sleep(0.1)
        assert len(ray.told) == before


def test_every_line_of_metrics_is_reported_once_it_is_in_the_file(tmp_path, ray, tell):
    seen = []
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, constants={"resume_count": 1}) as metrics:
        metrics.write(3, {})
        metrics.listen(tell)
        metrics.listen(lambda line: seen.append((line, path.read_text().count("\n"))))
        metrics.write(5, {"lost": {"step": 1}})
        metrics.write(7, {})
    assert ray.told == [
        ("gamut_env_steps", "", 5),
        ("gamut_episodes_lost", "step", 1),
        ("gamut_env_steps", "", 2),
    ]
    assert [(line["env_steps"], line["resume_count"], n) for line, n in seen] == [
        (5, 1, 2),
        (7, 1, 3),
    ]


@pytest.mark.process
def test_a_program_without_ray_does_not_import_it():
    code = (
        "import sys\n"
        "from rollout.observe.exporter import RayExporter, ray_instruments\n"
        "RayExporter('r', 'train')({'env_steps': 3})\n"
        "assert ray_instruments() is None and 'ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=120)


def test_ray_that_does_not_run_is_not_told(monkeypatch):
    class Idle:
        @staticmethod
        def is_initialized():
            return False

    monkeypatch.setitem(sys.modules, "ray", Idle)
    assert ray_instruments() is None


def panels():
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] >= 39
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def test_the_dashboard_shows_every_metric_and_no_other():
    used = {
        name
        for panel in panels()
        for target in panel["targets"]
        for name in re.findall(r"\bray_\w+", target["expr"])
    }
    assert used - {name for metric in EXPORTED for name in series(metric)} == set()
    assert [m.name for m in EXPORTED if not used & set(series(m))] == []


def test_the_dashboard_asks_one_data_source_and_fits_the_grid():
    dashboard = json.loads(DASHBOARD.read_text())
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    assert list(variables) == ["datasource", "kind", "run"]
    assert variables["datasource"]["type"] == "datasource"
    known = {name for metric in EXPORTED for name in series(metric)}
    for name in ("kind", "run"):
        assert known & set(re.findall(r"\bray_\w+", variables[name]["definition"]))
    taken, ids = set(), set()
    for panel in panels():
        ids.add(panel["id"])
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert all('run=~"$run"' in target["expr"] for target in panel["targets"])
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells
    assert len(ids) == len(panels())


def test_tags_that_expressions_group_by_exist():
    tags = {name: set(metric.tags) for metric in EXPORTED for name in series(metric)}
    for panel in panels():
        for target in panel["targets"]:
            (name, *_) = re.findall(r"\bray_\w+", target["expr"])
            groups = re.findall(r"by \(([^)]*)\)", target["expr"])
            wanted = {each.strip() for group in groups for each in group.split(",")} - {"le"}
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert wanted <= tags[name], target["expr"]
            assert labels <= wanted or panel["type"] == "stat", target


def alerts():
    monitor, rules = yaml.safe_load_all(MONITORING.read_text())
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == "metrics"
    return [rule for group in rules["spec"]["groups"] for rule in group["rules"]]


def parts(expression):
    """The selectors of metrics in an expression, and the labels that it groups or matches by."""
    selectors, labels = [], set()

    def visit(node):
        if isinstance(node, promql_parser.VectorSelector):
            selectors.append(node)
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            labels.update(node.modifier.labels)
        if isinstance(node, promql_parser.BinaryExpr) and node.modifier and node.modifier.matching:
            labels.update(node.modifier.matching.labels)
        return True

    assert promql_parser.walk(promql_parser.parse(expression), visit)
    return selectors, labels


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_alerts_ask_for_metrics_that_exist_by_tags_that_they_have(alert):
    metrics = {name: metric for metric in EXPORTED for name in series(metric)}
    selectors, labels = parts(alert["expr"])
    assert selectors
    for selector in selectors:
        metric = metrics[selector.name]
        assert labels <= set(metric.tags)
        for matcher in selector.matchers.matchers:
            assert matcher.value in (*metric.values, OTHER) or matcher.name in COMMON_TAGS
            assert matcher.name in metric.tags
    said = " ".join(alert["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", said)) <= labels
    assert {"run"} <= labels
    counters = {name for name in metrics if name.endswith("_total")}
    grown = set(re.findall(r"(?:increase|rate)\((\w+)", alert["expr"]))
    assert grown == {selector.name for selector in selectors} & counters


def test_the_document_names_every_alert():
    assert set(re.findall(r"`(Gamut\w+)`", DOCUMENT.read_text())) == {a["alert"] for a in alerts()}


def test_the_document_lists_every_metric_as_it_is():
    rows = {(metric.source, metric.name, metric.kind) for metric in EXPORTED}
    table = re.findall(
        r"^\| `([^`]+)` \| `(gamut_\w+)` \| (\w+)", DOCUMENT.read_text(), re.MULTILINE
    )
    assert set(table) == rows
    assert len(table) == len(rows)
