"""The page of a dataset as a file, and its server."""

import base64
import http.client
import json
import re
import threading
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import EXTRAS, TASK, Player, frames, make_manifest, make_spec
from test_round_trip import record

from rollout.api import CALLS, Call, ColumnSpec, Loss
from rollout.commands import dataset as script
from rollout.commands import dataset_view
from rollout.data import Dataset, DatasetWriter, Layout, describe_dataset
from rollout.data.view import listed_episodes, page, served_episode, write_page
from rollout.data.view.listing import as_json
from rollout.data.view.steps import _numbers
from rollout.data.view.transcript import transcript
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy

HOSTILE = "</script><script>hit()</script><img src=x onerror=hit()><!--<script>\"'&\u202e"
STAGES = "companion/telemetry"
BLOCK = re.compile(r'<script type="application/json" ([^>]*)>(.*?)</script>', re.DOTALL)


def hostile_dataset(path):
    """A dataset whose every text is hostile."""
    box = spaces.Box(-1, 1, (3,), np.float32)
    text = HOSTILE
    player = Player(make_spec({"rgb": frames(16, 24, 3), text: box}), details=True, lost=True)
    lists = {CALLS: ColumnSpec("object", doc=text), STAGES: ColumnSpec("object", doc=text)}
    extras = {**EXTRAS, **lists}
    task = replace(TASK, name=text, goal=text)
    manifest = describe_dataset(
        player.spec, task, policy=text, run=text, details=True, extras=extras, bridge=text
    )
    call = Call(
        asked=text, reported=text, answer=HOSTILE, reasoning=text, finish=text, code=text,
        tools=[[text, text]], errors=[text], messages=[{"role": text, "content": HOSTILE}],
        fields={text: text}, action=text, problem=text, usable=False, role=text,
        input_tokens=10, output_tokens=2, usd=0.5,
    )  # fmt: skip
    with DatasetWriter(path, manifest) as writer:
        for _ in range(4):
            fragment = player.play(13)
            column = np.empty((13, 1), object)
            for t in range(13):
                column[t, 0] = [call.as_json()] if t % 2 else []
            fragment.extras[CALLS] = column
            stages = np.empty((13, 1), object)
            stages[:, 0] = [[{"stage": text, "plan": [text], text: text, "memory": [text]}]] * 13
            fragment.extras[STAGES] = stages
            said = {"type": "chat", "who": text, "text": text}
            for row in fragment.details:
                row[0] = {"said": text, "trace": [said], "event": [text, {"type": text}]}
            writer.append(fragment)


def blocks(path):
    """The data in a page: the summary, and the steps of each episode."""
    found = BLOCK.findall(path.read_text("utf-8"))
    keyed = {re.search(r'data-key="(.*?)"', about): json.loads(text) for about, text in found}
    summary = keyed.pop(None)
    return summary, {match[1]: data for match, data in keyed.items()}


def written(path, out, **options):
    with Dataset(path) as dataset:
        done = write_page(dataset, out, listed_episodes(dataset), **options)
    return done, *blocks(out)


def table_of(summary):
    return {column["name"]: column["values"] for column in summary["table"]}


def picture(url):
    kind, data = url.split(";base64,")
    image = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_UNCHANGED)
    return kind, image[..., ::-1] if image.ndim == 3 else image


@pytest.mark.parametrize("codec", ["raw", "png", "webp"])
def test_the_page_has_what_was_recorded(tmp_path, codec):
    player = Player(make_spec({"rgb": frames(24, 40, 3), "health": spaces.Discrete(21)}))
    manifest = make_manifest(player.spec, codec=codec)
    record(tmp_path / "d", player, 4, manifest=manifest)
    done, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    assert done.nbytes == (tmp_path / "d.html").stat().st_size
    assert set(steps) == set(summary["keys"])
    assert len(steps) == done.listed == done.shown
    table = table_of(summary)
    with Dataset(tmp_path / "d") as dataset:
        refs = dataset.episodes(include_lost=True)
    for ref in refs:
        row = summary["keys"].index(f"{ref.episode}:{ref.attempt}")
        assert table["length"][row] == ref.length
        assert table["state"][row] == str(ref.state)
        assert table["end"][row] == ref.end
        assert table["return"][row] == pytest.approx(ref.total_reward, rel=1e-6)
        data, truth = steps[f"{ref.episode}:{ref.attempt}"], player.truth(ref.episode, ref.attempt)
        assert data["reward"] == pytest.approx(truth.columns["reward"], rel=1e-6)
        series = {each["name"]: each["values"] for each in data["series"]}
        assert series["signal/kills"] == truth.columns["signal/kills"].tolist()
        assert series["observation/health"] == truth.columns["observation/health"].tolist()
        assert series["extra/code"] == truth.columns["extra/code"].tolist()
        [column] = data["pictures"]
        assert (column["left_out"], column["lossy"]) == (0, None)
        shown = [picture(column["files"][at]) for at in column["at"]]
        assert {kind for kind, _ in shown} == {"image/png", f"image/{codec}"} - {"image/raw"}
        images = [*truth.columns["observation/rgb"], truth.final["rgb"]]
        np.testing.assert_array_equal([image for _, image in shown], images)


def test_stacks_and_pictures_of_floats_are_shown_as_videos_show_them(tmp_path):
    floats = spaces.Box(0, 1, (16, 24, 3), np.float32)
    player = Player(make_spec({"stack": frames(4, 16, 24), "tint": floats}), lost=False)
    record(tmp_path / "d", player, 2)
    _, _, steps = written(tmp_path / "d", tmp_path / "d.html")
    columns = {column["name"]: column for column in steps["0:0"]["pictures"]}
    truth = player.truth(0).columns
    for name, expected in (
        ("observation/stack", truth["observation/stack"][:, -1, :, :, None].repeat(3, axis=3)),
        ("observation/tint", np.rint(truth["observation/tint"].astype(float) * 255)),
    ):
        column = columns[name]
        shown = [picture(column["files"][at])[1] for at in column["at"]]
        assert (column["height"], column["width"]) == (16, 24)
        np.testing.assert_array_equal(shown[:-1], expected)


def test_unfinished_and_lost_episodes_are_shown_as_such(tmp_path):
    player = Player(make_spec({"rgb": frames(16, 24, 3)}), longest=30)
    writer = record(tmp_path / "d", player, 9, close=False)
    (running,) = {player._next - 1} - {episode for episode, _ in player.ended}
    _, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    table = table_of(summary)
    ends = dict(zip(table["episode"], table["end"], strict=True))
    assert ends[running] == "unfinished"
    assert {"lost", "unfinished"} <= {*ends.values()}
    assert set(zip(table["reason"], table["end"], strict=True)) >= {("step: it hung", "lost")}
    data = steps[f"{running}:0"]
    assert data["reward"]
    assert len(data["pictures"][0]["at"]) == len(data["reward"])  # no final observation
    writer.close()


def test_an_episode_that_was_lost_before_its_first_step_is_shown_without_any(tmp_path):
    player = Player(lost=False)
    writer = record(tmp_path / "d", player, 1, close=False)
    fragment = player.play(13)
    fragment.losses = (Loss(player.start(500), 0, 0, "reset", "it never came up", 0),)
    writer.append(fragment)
    writer.close()
    _, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    assert "reset: it never came up" in table_of(summary)["reason"]
    data = steps["500:0"]
    assert data["reward"] == data["transcript"] == []
    assert {len(each["values"]) for each in data["series"]} == {0}


def test_a_damaged_dataset_has_a_page_of_what_is_left(tmp_path, capsys):
    player = Player(make_spec({"rgb": frames(16, 24, 3)}), longest=60, lost=False)
    record(tmp_path / "d", player, 8, shard_bytes=1)
    layout = Layout(tmp_path / "d")
    for path in (layout.data(2), layout.episodes(2), layout.seal(2)):
        path.unlink()
    done, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    failed = {key for key, data in steps.items() if "failed" in data}
    assert 0 < len(failed) == done.failed < done.shown
    assert all("shard-000002.parquet is gone" in steps[key]["failed"] for key in failed)
    assert all(data["reward"] for key, data in steps.items() if key not in failed)
    assert script.main(["view", str(tmp_path / "d")]) == 3
    assert "cannot be read; run: gamut dataset doctor" in capsys.readouterr().out
    for number in layout.numbers("episodes"):
        layout.episodes(number).unlink()  # what is missing is found when they are made again
    _, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    table = table_of(summary)
    damaged = [n for n, end in enumerate(table["end"]) if end == "damaged"]
    assert damaged
    for n in damaged:
        assert len(steps[summary["keys"][n]]["reward"]) == table["length"][n]


def test_an_empty_dataset_has_a_page(tmp_path):
    record(tmp_path / "d", Player(), 0)
    done, summary, steps = written(tmp_path / "d", tmp_path / "d.html")
    assert (done.listed, done.shown, steps, summary["keys"]) == (0, 0, {}, [])


def test_a_page_is_no_larger_than_its_bound_and_says_what_is_left_out(tmp_path):
    player = Player(make_spec({"rgb": frames(48, 64, 3)}), longest=60, lost=False)
    record(tmp_path / "d", player, 8, 40)
    whole, summary, _ = written(tmp_path / "d", tmp_path / "whole.html")
    assert whole.left_out == 0
    most = 1_000_000
    part, _, steps = written(tmp_path / "d", tmp_path / "part.html", most_bytes=most)
    assert most / 2 < part.nbytes <= most < whole.nbytes
    assert 0 < part.shown < part.listed == whole.listed
    assert list(steps) == summary["keys"][: part.shown]
    with Dataset(tmp_path / "d") as dataset:
        refs = listed_episodes(dataset)
        out = tmp_path / "thin.html"
        thin = write_page(dataset, out, refs, chosen=refs[:9], most_bytes=most)
        columns = [data["pictures"][0] for data in blocks(out)[1].values()]
        assert thin.shown == 9
        assert thin.nbytes <= most
        assert thin.left_out == sum(column["at"].count(None) for column in columns) > 0
        for data in blocks(out)[1].values():  # numbers are never left out
            assert len(data["reward"]) == len(data["action"]) == len(data["step"])
        with pytest.raises(DatasetError, match=r"a table of .* episodes needs .* MB"):
            write_page(dataset, out, refs, most_bytes=100_500)
        with pytest.raises(DatasetError, match=r"episode \d+ need .* without pictures"):
            write_page(dataset, out, refs, chosen=refs, most_bytes=110_000)
    assert blocks(out)[1]  # a page that cannot be written leaves the former one


def test_no_text_becomes_markup(tmp_path):
    hostile_dataset(tmp_path / "d")
    written(tmp_path / "d", tmp_path / "d.html")
    text = (tmp_path / "d.html").read_text("utf-8")
    data = "".join(found for _, found in BLOCK.findall(text))
    assert "hit()" in data
    assert not set("<>&") & set(data)
    assert "hit()" not in BLOCK.sub("", text)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", text)


def test_a_transcript_is_what_was_said_planned_remembered_and_called():
    chat = {"type": "chat", "username": "Ada", "only_message": "Eight?", "message": "<Ada> Eight?"}
    dug = {"type": "dug", "who": "a0", "tick": 7, "block": "stone", "position": [1, 2, 3]}
    heard = {"type": "chat", "who": "Ada", "text": "Eight?"}
    hurt = {"type": "entityHurt", "message": "cow was hurt"}
    stage = {
        "stage": "plan", "seconds": 0.5, "question": "How many?", "verdict": {"success": False},
        "plan": [{"index": 1, "subtask": "dig", "status": "new"}, {"index": 2, "subtask": "go"}],
        "memory": [{"op": "write", "text": "Ada is here"}],
    }  # fmt: skip
    call = Call(
        action='{"kind": "new", "code": "a();\\nb();"}', fields={"plan": "dig"}, usable=True
    )
    events = [
        {"kind": "memory", "write": "log", "subtask": 0},
        {"kind": "judged", "verdict": {"success": "yes"}},
    ]
    told = {
        "stage": "judge",
        "events": [*events, {"kind": "memory", "read": []}, {"kind": "ran", "steps": 3}],
    }
    bad = Call(answer="?", usable=False, code="no_block", role="critic", fields={"plan": "dig"})
    details = [{"event": [chat, hurt, hurt]}, {"trace": [heard, dug], "event": [chat]}, None]
    found = [tuple(each) for each in transcript(details, [[stage], told], [[call], [call, bad]])]
    assert found == [
        (0, "chat", "Ada", "Eight?"),
        (0, "event", "", "cow was hurt (2 times)"),
        (0, "plan", "", "dig"),
        (0, "call", "", "kind new, code a();\nb();"),
        (0, "stage", "plan", "seconds 0.5"),
        (0, "plan", "plan", "1. dig [new]\n2. go"),
        (0, "question", "plan", "How many?"),
        (0, "memory", "plan", "op write, text Ada is here"),
        (0, "verdict", "plan", "success false"),
        (1, "chat", "Ada", "Eight?"),
        (1, "event", "a0", "dug block stone, position [1, 2, 3]"),
        (1, "call", "", "kind new, code a();\nb();"),
        (1, "plan", "critic", "dig"),
        (1, "call", "critic", "unusable: no_block"),
        (1, "memory", "judge", "write log"),
        (1, "verdict", "judge", "success yes"),
        (1, "stage", "judge ran", "steps 3"),
    ]


def test_numbers_are_json_and_keep_their_digits():
    values = np.array([1e-300, 0.1, -1 / 3, 1234567.0, 3e38, 0.0, np.nan, np.inf])
    shown = _numbers(values.astype(np.float64))
    assert shown[-2:] == [None, None]
    assert shown[:-2] == pytest.approx(values[:-2].tolist(), rel=1e-6)
    assert len(json.dumps(_numbers(np.float32([0.1])))) == len("[0.1]")
    assert _numbers(np.array([2**60, 1])) == [str(2**60), "1"]
    assert _numbers(np.array([True, False])) == [1, 0]
    assert as_json("<!--&>\ud800") == '"\\u003c!--\\u0026\\u003e\\ud800"'


def test_the_command(tmp_path, capsys):
    record(tmp_path / "d", Player(lost=False), 4)
    with Dataset(tmp_path / "d") as dataset:
        count = len(listed_episodes(dataset))
    assert script.main(["view", str(tmp_path / "d")]) == 0
    assert f"d.html: {count} episodes" in capsys.readouterr().out
    out = tmp_path / "one.html"
    assert script.main(["view", str(tmp_path / "d"), "--out", str(out), "--episodes", "1"]) == 0
    assert list(blocks(out)[1]) == ["1:0"]
    some = ["view", str(tmp_path / "d"), "--out", str(out), "--filter", "episode < 2"]
    assert script.main(some) == 0
    assert blocks(out)[0]["keys"] == ["0:0", "1:0"]
    for wrong, said in (
        (["--episodes", "1", "99"], "there is no episode 99"),
        (["--out", str(tmp_path / "x.txt")], "expected a file .html"),
        (["--out", str(tmp_path / "no" / "x.html")], "there is no folder"),
        (["--filter", "retrn > 3"], "Nearest: return"),
        (["--judge", str(tmp_path / "none")], "there is no table"),
        (["--serve", "--out", str(out)], "leave out the others"),
    ):
        assert script.main(["view", str(tmp_path / "d"), *wrong]) == 2
        assert said in capsys.readouterr().err


@pytest.fixture
def server(tmp_path):
    record(tmp_path / "d", Player(), 4)
    with dataset_view.Server(
        partial(dataset_view.opened_dataset, tmp_path / "d", ""), []
    ) as opened:
        thread = threading.Thread(target=opened.serve_forever, args=(0.02,))
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def ask(server, path, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    try:
        headers = {} if host is None else {"Host": host}
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read().decode()
    finally:
        connection.close()


def test_the_server_answers_who_knows_the_token_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32
    status, headers, text = ask(server, f"/{server.token}/")
    assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
    assert headers["Cache-Control"] == "no-store"
    assert "connect-src &#39;self&#39;" in text
    keys = json.loads(BLOCK.findall(text)[-1][1])["keys"]
    status, _, steps = ask(server, f"/{server.token}/episode/{keys[0].replace(':', '/')}")
    assert status == 200
    assert json.loads(steps)["reward"]
    own = f"/{server.token}"
    bad = ("/", "/wrong/", f"{own[:-1]}/", f"{own}/episode/999999/0", f"{own}/..{own}/x")
    for path in (*bad, f"{own}/episode/..%2f/0"):
        status, _, text = ask(server, path)
        assert status == 404, path
        assert server.token not in text
    assert ask(server, f"/{server.token}/", method="POST")[0] == 501


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_leads_here_is_refused(server, host):
    status, _, text = ask(server, f"/{server.token}/", host=host)
    assert status == 403
    assert "episode" not in text
    assert ask(server, f"/{server.token}/", host="localhost:1234")[0] == 200  # forwarded by ssh


def test_a_served_page_has_the_newest_episodes(tmp_path):
    player = Player(lost=False)
    writer = record(tmp_path / "d", player, 2, close=False)
    opened = partial(dataset_view.opened_dataset, tmp_path / "d", "")
    with dataset_view.Server(opened, []) as server:

        def keys():
            text = "".join(server.answer("")[1])
            return json.loads(BLOCK.findall(text)[-1][1])["keys"]

        before = keys()
        for _ in range(4):
            writer.append(player.play(13))
        after = keys()
    writer.close()
    assert len(after) > len(before)


def test_scores_of_a_judge_are_a_column(tmp_path):
    from rollout.data.tables import write_table

    record(tmp_path / "d", Player(lost=False), 3)
    (tmp_path / "judge").mkdir()
    verdicts = {"episode": [0, 0, 1], "other": [-1] * 3, "criterion": ["a", "b", "a"]}
    table = {name: np.array(values) for name, values in verdicts.items()}
    table["evidence"] = np.array(["It is a wall.", "", "No wall."])
    write_table(tmp_path / "judge" / "verdicts.parquet", {**table, "score": np.array([1.0, 4, 3])})
    with Dataset(tmp_path / "d") as dataset:
        refs = listed_episodes(dataset)
        text = "".join(page(dataset, refs, [str(tmp_path / "judge")]))
        steps = json.loads(served_episode(dataset, refs[0], [str(tmp_path / "judge")]))
    summary = json.loads(BLOCK.findall(text)[-1][1])
    assert table_of(summary)["score judge"][:3] == [2.5, 3.0, None]
    said = [(kind, who, steps["strings"][n]) for _, kind, who, n in steps["transcript"]]
    assert said == [("verdict", "judge, a", "1\nIt is a wall."), ("verdict", "judge, b", "4")]
