"""The page of an evaluation and its server."""

import http.client
import json
import re
import threading
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import yaml

from rollout.cli import main
from rollout.commands import view as view_command
from rollout.data import Dataset
from rollout.data.view import write_listing
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.evaluate.page import PAGE, EvaluationPages, _videos
from rollout.evaluate.recording import recorded_episodes
from rollout.reports import marked
from rollout.testing.chat_server import ChatServer, Scripted

pytestmark = pytest.mark.heavy

HOSTILE = "</script><script>hit()</script><img src=x onerror=hit()>"
BLOCK = re.compile(
    r'<script type="(?:application/json|text/plain)" ([^>]*)>(.*?)</script>', re.DOTALL
)


def blocks(path):
    """The data in a page: its summary, the steps by key, and the videos by key."""
    found = {"steps": {}, "video": {}, "summary": None}
    for about, text in BLOCK.findall(path.read_text("utf-8")):
        key = re.search(r'data-key="(.*?)"', about)
        if 'id="summary"' in about:
            found["summary"] = json.loads(text)
        elif 'class="video"' in about:
            found["video"][key[1]] = (re.search(r'data-link="(.*?)"', about)[1], text)
        else:
            found["steps"][key[1]] = json.loads(text)
    return found


def columns(summary):
    return {each["name"]: each["values"] for each in summary["table"]}


@pytest.fixture
def call(tmp_path, capsys):
    """Evaluates with changed keys; returns the status and what was said."""

    def run(*arguments, folder="run", **changed):
        task = {"goal": "Go there.", "limits": {"steps": 12}}
        task["evaluator"] = {"name": "signal_goal", "signal": "reached"}
        (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
        config = {
            "output": str(tmp_path / folder),
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "players": {"chance": "random"},
            "sets": {"train": {"size": 3}, "test": {"split": "test", "size": 4}},
            "metric": "progress",
            "actors": 0,
            "width": 2,
            "fragment": {"steps": 4},
            **changed,
        }
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        arguments = ["--config", str(tmp_path / "config.yaml"), *arguments]
        status = main(evaluate, EvaluateConfig, "Evaluates.", arguments)
        return status, capsys.readouterr().err

    return run


def vlm(server, name="tiny"):
    return {
        "name": "vlm",
        "model": name,
        "prompt": "act",
        "endpoint": {"url": server.url},
        "fallback": "random",
        "limits": {"episode_calls": 3},
        "picture": {"column": ""},
    }


def test_calls_of_models_are_recorded_and_shown_and_others_are_not(call, tmp_path):
    said = f"<action>0</action>{HOSTILE}"
    with ChatServer(lambda _: Scripted(said)) as server:
        status, err = call(players={"model": vlm(server), "chance": "random"}, videos=1)
    assert status == 0, err
    run = tmp_path / "run"
    text = (run / PAGE).read_text("utf-8")
    assert "<script>hit()" not in text
    found = blocks(run / PAGE)
    table = columns(found["summary"])
    assert table["player"] == ["model"] * 7 + ["chance"] * 7
    assert table["episode"] == list(range(14))
    assert {key.split(":")[0] for key in found["steps"]} == {str(n) for n in range(14)}
    steps = found["steps"]["0:0"]
    [(step, first), *_] = steps["calls"]
    assert (step, steps["strings"][first["answer"]]) == (0, said)
    assert first["messages"], "the prompt"
    assert table["calls"] == [3] * 7 + [0] * 7
    assert f"<td>{vlm(server)['model']}" not in text
    assert "All pairs" in text
    assert re.search(r'class="interval"', text)
    for link, data in found["video"].values():
        assert data.startswith("data:video/mp4;base64,")
        assert (run / link).is_file()
    assert len(found["video"]) >= 4
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src &#39;none&#39;" in policy
    assert "connect-src" not in policy
    assert not re.search(r'(?:src|href)="(?!data:)', text.replace('data-link="', ""))
    # Without calls nothing is recorded, unless it is asked for.
    assert call(folder="plain")[0] == 0
    assert not (tmp_path / "plain" / "dataset").exists()
    plain = blocks(tmp_path / "plain" / PAGE)
    assert plain["steps"] == {}
    assert plain["summary"]["keys"] == [str(n) for n in range(7)]
    assert call(folder="asked", record=True)[0] == 0
    assert len(blocks(tmp_path / "asked" / PAGE)["steps"]) == 7


def test_lost_episodes_are_told_and_a_resume_records_further_attempts(call, tmp_path):
    chaos = {"name": "chaos", "episode_crash": 0.5, "same_every_attempt": True, "mean_steps": 5}
    keys = {"bridge": chaos, "task": "chaos_walk", "record": True, "host": {"retries": 0}}
    keys["sets"] = {"train": {"size": 8}}
    status, _ = call(**keys)
    assert status == 3
    run = tmp_path / "run"
    found = blocks(run / PAGE)
    table = columns(found["summary"])
    lost = [n for n, end in enumerate(table["end"]) if end == "lost"]
    assert 0 < len(lost) < 8
    assert all(table["score"][n] is None for n in lost)
    assert all("exit code" in table["last loss"][n] for n in lost)
    text = (run / PAGE).read_text()
    assert f"Not complete: {len(lost)} episodes are missing" in text
    assert f"Lost attempts: {len(lost)}; {len(lost)} episodes were given up" in text
    with Dataset(run / "dataset") as dataset:
        before = {ref.episode: ref.attempt for ref in dataset.episodes(include_lost=True)}
    assert call("--resume", **keys)[0] == 3
    with Dataset(run / "dataset") as dataset:
        refs = dataset.episodes(include_lost=True)
        newest = recorded_episodes(dataset)
    again = [ref for ref in refs if ref.attempt > 0]
    assert {ref.episode for ref in again} == set(lost)
    assert len(refs) == len({(ref.episode, ref.attempt) for ref in refs}), "none is there twice"
    assert {e: ref.attempt for e, ref in newest.items()} == {
        e: attempt + (e in lost) for e, attempt in before.items()
    }
    after = columns(blocks(run / PAGE)["summary"])
    assert [after["attempts"][n] for n in lost] == [2] * len(lost)


def test_a_finished_attempt_counts_before_a_lost_one():
    attempts = [(5, 0, "truncated"), (5, 1, "lost"), (6, 0, "lost"), (6, 1, "lost"), (7, 1, "lost")]
    attempts += [(7, 2, "terminated"), (7, 3, "terminated")]
    refs = [SimpleNamespace(episode=e, attempt=a, end=end) for e, a, end in attempts]
    found = recorded_episodes(SimpleNamespace(episodes=lambda include_lost: refs))
    assert {e: ref.attempt for e, ref in found.items()} == {5: 0, 6: 1, 7: 3}


def test_the_page_has_what_fits_and_says_so(call, tmp_path):
    assert call(record=True, videos=1)[0] == 0
    run = tmp_path / "run"
    with EvaluationPages.read(run) as pages:
        order = [(ref.episode, ref.attempt) for ref in pages.refs]
        assert order == [(n, 0) for n in (0, 3, 1, 4, 2, 5, 6)], "the first of each set, then ..."
        small = tmp_path / "small.html"
        summary = len(pages.listing.summary()) + len(pages.listing.report)
        done = write_listing(pages.listing, small, pages.dataset, pages.refs,
                             most_bytes=summary + 100_000 + 4_000)  # fmt: skip
    assert 0 < done.shown < 7
    found = blocks(small)
    assert [*found["steps"]] == [f"{n}:0" for n in (0, 3, 1, 4, 2, 5, 6)][: done.shown]
    links = {link for link, data in found["video"].values() if not data}
    assert links, "videos without room are links"
    assert all((small.parent / link).resolve().is_file() for link in links)


def test_the_server_answers_to_its_token_alone(call, tmp_path):
    assert call(record=True, videos=1)[0] == 0
    run = tmp_path / "run"
    with (
        EvaluationPages.read(run) as pages,
        view_command.EvaluationServer(pages) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            at = urlsplit(server.url)

            def get(path, token=at.path):
                connection = http.client.HTTPConnection(at.hostname, at.port, timeout=10)
                connection.request("GET", f"{token}{path}")
                reply = connection.getresponse()
                return reply.status, reply.read()

            status, text = get("")
            assert status == 200
            assert b'"served":"done"' in text
            status, steps = get("episode/3/0")
            assert (status, len(json.loads(steps)["reward"]) > 0) == (200, True)
            [video, *_] = pages.listing.videos
            assert get(f"videos/{video.file.name}") == (200, video.file.read_bytes())
            for path in (
                "episode/99/0",
                "videos/none.mp4",
                "videos/../summary.json",
                "summary.json",
            ):
                assert get(path)[0] == 404, path
            assert get("", "/wrong/")[0] == 404
        finally:
            server.shutdown()
            thread.join(10)


def test_what_has_no_results_is_refused(call, tmp_path, capsys):
    assert view_command.main([str(tmp_path / "none")]) == 2
    assert call()[0] == 0
    assert view_command.main([str(tmp_path / "run"), "--out", str(tmp_path / "a.txt")]) == 2
    assert "expected a file .html" in capsys.readouterr().err
    assert view_command.main([str(tmp_path / "run"), "--out", str(tmp_path / "a.html")]) == 0
    assert "a.html: 7 episodes" in capsys.readouterr().out
    (tmp_path / "run" / "episodes.parquet").unlink()
    assert view_command.main([str(tmp_path / "run")]) == 2
    assert "has no results yet" in capsys.readouterr().err


def test_marks_are_on_one_scale():
    estimates = [
        {"text": "a", "point": 1.0, "low": 0.0, "high": 2.0},
        {"text": "b", "point": -2.0, "low": None, "high": None},
        {"text": "c", "point": None, "low": None, "high": None},
    ]
    a, b, c = (each["mark"] for each in marked(estimates, zero=True))
    assert (a["low"], a["high"], a["zero"]) == (50.0, 97.0, 50.0)
    assert (b["point"], b["low"]) == (3.0, None)
    assert c is None
    assert marked(estimates[1:2])[0]["mark"]["point"] == 50.0


def test_films_are_files_of_the_run_whatever_its_summary_names(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "secret").write_text("a key")
    film = {"leg": "a/test/sampled", "position": 0, "repeat": 0, "score": 1.0, "rank": "best"}
    places = {("a", "test", "sampled", 0, 0): "0"}
    for named in ("../secret", str(tmp_path / "secret"), "..", ""):
        summary = {"films": [{**film, "same": True, "file": named}]}
        assert not list(_videos(tmp_path, summary, places))
    (tmp_path / "videos" / "good.mp4").write_text("film")
    summary = {"films": [{**film, "same": True, "file": "good.mp4"}]}
    assert [each.file.name for each in _videos(tmp_path, summary, places)] == ["good.mp4"]
