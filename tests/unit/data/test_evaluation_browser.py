"""The page of an evaluation in a browser: offline, by keyboard, with videos where steps are not."""

import browser
import pytest
import yaml

from rollout.cli import main
from rollout.data.view import write_listing
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.evaluate.page import PAGE, EvaluationPages

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(browser.program() is None, reason=browser.WHY_NOT),
]


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An evaluation with steps, and one with videos alone."""
    folder = tmp_path_factory.mktemp("evaluations")
    found = {}
    for name, changed in (("steps", {"record": True}), ("videos", {"videos": 1})):
        config = {
            "output": str(folder / name),
            "bridge": {"name": "chaos" if name == "steps" else "fake", **_BRIDGE[name]},
            "task": "chaos_walk" if name == "steps" else str(_task(folder)),
            "players": {"chance": "random"},
            "sets": {"train": {"size": 8}},
            "host": {"retries": 0},
            "actors": 0,
            "width": 2,
            **changed,
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        main(evaluate, EvaluateConfig, "Evaluates.", ["--config", str(folder / "config.yaml")])
        found[name] = folder / name
    return found


_BRIDGE = {
    "steps": {"episode_crash": 0.5, "same_every_attempt": True, "mean_steps": 5},
    "videos": {},
}


def _task(folder):
    path = folder / "task.yaml"
    evaluator = {"name": "signal_goal", "signal": "reached"}
    task = {"goal": "Go.", "limits": {"steps": 5}, "evaluator": evaluator}
    path.write_text(yaml.safe_dump(task))
    return path


def requests_of(chromium):
    """The addresses that the page asked for, beside its own."""
    return [
        each["params"]["request"]["url"][:80]
        for each in chromium.events
        if each.get("method") == "Network.requestWillBeSent"
        and not each["params"]["request"]["url"].startswith(("data:", "file:", "about:"))
    ]


def test_lost_episodes_are_found_and_told_and_steps_are_shown(chromium, runs):
    chromium.send("Network.enable")
    chromium.open((runs["steps"] / PAGE).as_uri())
    assert "Not complete:" in chromium.text("#report")
    chromium.write("#filter", "lost")
    chromium.until("document.querySelector('#count').textContent.includes(' of 8 episodes')")
    chromium.run("document.querySelector('#rows .row').focus()")
    chromium.key("Enter")
    chromium.until(
        "document.querySelector('#notes').textContent.includes('Lost, so not a result.')"
    )
    assert "exit code" in chromium.text("#notes")
    chromium.run("document.querySelector('#filter').value = ''")
    chromium.run("document.querySelector('#filter').dispatchEvent(new Event('input'))")
    chromium.write("#filter", "terminated")
    chromium.run("document.querySelector('#rows .row').click()")
    chromium.until("document.querySelector('#place').textContent.startsWith('step 0')")
    chromium.run("document.activeElement.blur()")
    chromium.key("ArrowRight")
    assert chromium.text("#place").startswith("step 1")
    assert chromium.text("#now").startswith("action")
    assert requests_of(chromium) == []
    assert chromium.problems == []


def test_videos_are_in_the_page_and_dark_is_dark(chromium, runs):
    chromium.open((runs["videos"] / PAGE).as_uri())
    chromium.until("document.querySelector('#videos video')?.readyState >= 1")
    assert chromium.run("document.querySelector('#videos video').duration") > 0
    assert "were not recorded" in chromium.text("#notes")
    assert chromium.run("document.querySelector('#panes').hidden") is True
    shade = "parseInt(getComputedStyle(document.body).backgroundColor.slice(4))"
    chromium.scheme("dark")
    assert chromium.run(shade) < 60
    chromium.scheme("light")
    assert chromium.run(shade) > 200
    chromium.shape(400, 800)
    assert chromium.run("document.documentElement.scrollWidth") == 400
    chromium.shape(1440, 900)
    assert chromium.problems == []


def test_videos_beside_a_small_page_are_links(chromium, runs):
    out = runs["videos"].parent / "small.html"
    with EvaluationPages.read(runs["videos"]) as pages:
        used = len(pages.listing.summary()) + len(pages.listing.report)
        write_listing(pages.listing, out, None, (), most_bytes=used + 100_100)
    chromium.open(out.as_uri())
    link = chromium.until("document.querySelector('#videos a')?.href")
    assert link.startswith((runs["videos"] / "videos").as_uri())
    assert chromium.problems == []
