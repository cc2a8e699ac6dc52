"""The page on which people rate, in a browser, and the file of their ratings."""

import http.client
import json
import signal
import subprocess
import sys
import threading

import browser
import numpy as np
import pytest
from store_fragments import Player, frames, make_spec
from test_round_trip import record

from rollout.commands import rate
from rollout.data import Dataset
from rollout.data.replay import write_video
from rollout.errors import ConfigError, DatasetError, InputError
from rollout.judge.config import FramesConfig
from rollout.judge.people import People
from rollout.judge.ratings import FILE, known_ratings, read_ratings
from rollout.judge.rubric import Criterion, Rubric, load_rubric
from rollout.judge.sources import Clip, UnreadableClip, open_source
from tests.processes import killed_at_end

HOSTILE = "</script><img src=x onerror=hit()>"
MCU = load_rubric("mcu")
SMALL = Rubric(instructions="Rate.", criteria={n: Criterion(doc=n, title=n) for n in ("p", "q")})
CLIPS = [Clip(n, f"t_{n}.mp4", "t", "Do it.", 9) for n in range(3)]


def line(people, rater, item, scores, swapped=False):
    data = {"rater": rater, "item": item, "swapped": swapped, "scores": scores}
    return people.rate(json.dumps(data).encode())


# The file ----------------------------------------------------------------------------------------


def test_every_rating_is_kept_and_the_newest_counts(tmp_path):
    people = People(tmp_path, CLIPS, SMALL, {})
    assert line(people, "Ann", 0, {"p": 3}) == {"done": 0, "begun": 1, "all": 3}
    assert line(people, "Ann", 0, {"q": None}) == {"done": 1, "begun": 0, "all": 3}
    line(people, "Ann", 0, {"p": 4})
    line(people, "Ben", 0, {"p": 8, "q": 2})
    assert len((tmp_path / FILE).read_text().splitlines()) == 4
    with (tmp_path / FILE).open("a") as file:
        file.write('{"rater": "Ann", "cl')  # the program was killed while it wrote
    people.close()
    again = People(tmp_path, CLIPS, SMALL, {})
    assert again.progress() == {
        "Ann": {"done": 1, "begun": 0, "all": 3},
        "Ben": {"done": 1, "begun": 0, "all": 3},
    }
    mine = {each["item"]: each["scores"] for each in again.work("Ann")["items"]}
    assert mine[0] == {"p": 4.0, "q": None}
    line(again, "Ann", 1, {"p": 1})
    again.close()
    known, _ = known_ratings(read_ratings(str(tmp_path)), CLIPS, "")
    assert known.scores["p"] == {0: 6.0, 1: 1.0}
    assert known.scores["q"] == {0: 2.0}
    assert set(known.alpha) == {"p", "q"}


def test_a_pair_is_kept_as_it_is_whichever_side_it_was_shown_on(tmp_path):
    people = People(tmp_path, CLIPS, SMALL, {}, mode="pairwise", pairs=3)
    key = people.items[0].key
    line(people, "Ann", 0, {"p": "A", "q": "tie"}, swapped=False)
    line(people, "Ben", 0, {"p": "B", "q": "A"}, swapped=True)
    people.close()
    numbers = tuple(int(name[2]) for name in key)
    assert numbers[0] < numbers[1]
    known, _ = known_ratings(read_ratings(str(tmp_path)), CLIPS, "")
    assert known.pairs["p"] == {numbers: 1.0}
    assert known.pairs["q"] == {numbers: 0.25}
    assert known.alpha == pytest.approx({"p": np.nan, "q": 0.0}, nan_ok=True)
    with People(tmp_path, CLIPS, SMALL, {}, mode="pairwise", pairs=3) as again:
        for work in (again.work("Ann")["items"], again.work("Ben")["items"]):
            item = next(each for each in work if each["item"] == 0)
            assert item["scores"]["p"] == ("B" if item["swapped"] else "A")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"rater": " ", "item": 0, "swapped": False, "scores": {}}, "name of a rater"),
        ({"rater": "A", "item": 9, "swapped": False, "scores": {}}, "from 0 to 2"),
        ({"rater": "A", "item": 0, "swapped": False, "scores": {"p": 11}}, "expected 0 to 10"),
        ({"rater": "A", "item": 0, "swapped": False, "scores": {"p": "A"}}, "expected 0 to 10"),
        ({"rater": "A", "item": 0, "swapped": False, "scores": {"p": True}}, "expected 0 to 10"),
        ({"rater": "A", "item": 0, "swapped": False, "scores": {"z": 1}}, "z"),
        (["A"], "not a rating"),
    ],
)
def test_what_is_no_rating_is_refused_and_nothing_is_written(tmp_path, body, says):
    with People(tmp_path, CLIPS, SMALL, {}) as people:
        with pytest.raises(InputError, match=says):
            people.rate(json.dumps(body).encode())
        assert (tmp_path / FILE).read_text() == ""
        assert people.progress() == {}


def test_raters_see_the_same_items_in_orders_of_their_own(tmp_path):
    many = [Clip(n, f"t_{n}.mp4", "t", "", 9) for n in range(20)]
    with People(tmp_path, many, SMALL, {}) as people:
        orders = [[each["item"] for each in people.work(name)["items"]] for name in ("A", "B", "A")]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(20))
    assert "t_1.mp4" not in json.dumps(people.about()), "names tell who played"


def test_there_must_be_something_to_rate(tmp_path):
    with pytest.raises(ConfigError, match="nothing to rate: 1 clips, mode pairwise"):
        People(tmp_path, CLIPS[:1], SMALL, {}, mode="pairwise")


def test_runs_below_a_folder_are_rated_together(tmp_path):
    for name in ("easy/random", "easy/oracle"):
        spec = make_spec({"rgb": frames(24, 40, 3)})
        record(tmp_path / name / "dataset", Player(spec, longest=5, lost=False), 2)
    source = open_source(str(tmp_path), FramesConfig(), "", None)
    assert [clip.number for clip in source.clips] == [*range(len(source.clips))]
    assert {clip.name.rpartition("/")[0] for clip in source.clips} == {"easy/oracle", "easy/random"}
    assert source.video(source.clips[3], tmp_path).stat().st_size > 100
    assert len(source.frames(source.clips[3])) >= 2
    source.close()


def test_a_damaged_episode_is_told_from_the_others(tmp_path, monkeypatch):
    record(tmp_path / "d", Player(make_spec({"rgb": frames(24, 40, 3)}), lost=False), 6)
    source = open_source(str(tmp_path / "d"), FramesConfig(), "", None)
    first, second, *_ = source.clips
    read = Dataset.read

    def damaged(dataset, ref, columns=None):
        if ref.episode == first.number:
            raise DatasetError("a shard is damaged")
        return read(dataset, ref, columns)

    monkeypatch.setattr(Dataset, "read", damaged)
    with pytest.raises(UnreadableClip, match=f"episode {first.name} cannot be read: a shard"):
        source.frames(first)
    assert source.frames(second)
    source.close()


# The page ----------------------------------------------------------------------------------------


needs_browser = [
    pytest.mark.process,
    pytest.mark.skipif(browser.program() is None, reason=browser.WHY_NOT),
]


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as opened:
        yield opened


@pytest.fixture
def served(tmp_path):
    """Returns a function that serves some videos for rating."""
    for number in range(2):
        shades = [np.full((64, 96, 3), 30 + 6 * t + 40 * number, np.uint8) for t in range(30)]
        write_video(tmp_path / f"build_{number}.mp4", shades, 20.0)
    opened = []

    def serve(**options):
        source = open_source(str(tmp_path), FramesConfig(), "", None)
        rules = {"build": {"progress": ("whether it stands", HOSTILE)}}
        people = People(tmp_path, source.clips, MCU, rules, **options)
        server = rate.RatingServer(people, source, tmp_path)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        opened.append((server, thread, people))
        return server

    yield serve
    for server, thread, people in opened:
        server.shutdown()
        thread.join()
        server.server_close()
        people.close()


def begin(chromium, server, rater):
    chromium.open(server.url)
    chromium.write("#rater", rater)
    chromium.click("#who button")
    chromium.until("!document.querySelector('#work').hidden")


def lines(folder):
    return [json.loads(each) for each in (folder / FILE).read_text().splitlines()]


class TestPage:
    pytestmark = needs_browser

    def test_it_is_used_by_keys_alone_and_goes_on_where_it_was_left(
        self, chromium, served, tmp_path
    ):
        server = served()
        begin(chromium, server, "Ann")
        chromium.until("document.querySelector('video').currentTime > 0")
        assert chromium.text("#goal") == "build"
        for key in "70x5n":
            chromium.key(key, key)
        chromium.until("document.querySelector('#saved').textContent === 'saved'")
        chromium.key("Enter")  # one criterion is missing
        chromium.until("document.querySelector('#saved').textContent.includes('first')")
        assert chromium.text("#place") == "Recording 1 of 2"
        begin(chromium, server, "Ann")  # the browser was closed meanwhile
        assert chromium.run("document.querySelectorAll('.criterion.given').length") == 5
        chromium.key("3", "3")
        chromium.until("document.querySelector('#next').classList.contains('ready')")
        chromium.key("Enter")
        chromium.until("document.querySelector('#place').textContent === 'Recording 2 of 2'")
        assert chromium.text("#counts") == "1 of 2 rated"
        rated = lines(tmp_path)[-1]["scores"]
        assert rated == dict(zip(MCU.criteria, (7, 0, 10, 5, None, 3), strict=True))
        for key in "111111":
            chromium.key(key, key)
        chromium.key("ArrowUp")
        chromium.key("2", "2")
        chromium.key("Enter")
        chromium.until("!document.querySelector('#end').hidden")
        assert lines(tmp_path)[-1]["scores"]["efficiency"] == 2
        assert chromium.problems == []
        begin(chromium, server, "Ben")
        assert chromium.run("document.querySelectorAll('.criterion.given').length") == 0

    def test_pairs_are_rated_side_by_side(self, chromium, served, tmp_path):
        begin(chromium, served(mode="pairwise"), "Ann")
        chromium.until("[...document.querySelectorAll('video')].every((v) => v.currentTime > 0)")
        for key in "abtnab":
            chromium.key(key, key)
        chromium.key("Enter")
        chromium.until("!document.querySelector('#end').hidden")
        [*_, last] = lines(tmp_path)
        assert [last["clip"], last["other"]] == ["build_0.mp4", "build_1.mp4"]
        a, b, tie, none, *_ = last["scores"].values()
        assert {a, b} == {"A", "B"}
        assert (tie, none) == ("tie", None)
        assert chromium.problems == []

    def test_what_is_not_saved_is_said_and_not_marked_as_given(self, chromium, served, monkeypatch):
        server = served()
        begin(chromium, server, "Ann")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(server._people, "rate", full)
        chromium.key("7", "7")
        chromium.until("document.querySelector('#trouble').textContent.includes('No space left')")
        assert chromium.run("document.querySelectorAll('.criterion.given').length") == 0

    def test_texts_are_shown_and_do_nothing(self, chromium, served):
        begin(chromium, served(), HOSTILE[:50])
        assert HOSTILE in chromium.text("#criteria")
        assert chromium.run("document.querySelectorAll('img').length") == 0
        assert chromium.run("window.hits ?? 0") == 0

    @pytest.mark.parametrize("width", [380, 1440])
    def test_nothing_sticks_out_of_the_window(self, chromium, served, width):
        try:
            chromium.shape(width, 800)
            begin(chromium, served(), "Ann")
            inside = "document.documentElement.scrollWidth <= window.innerWidth"
            assert chromium.run(inside)
        finally:
            chromium.shape(1440, 900)


# The command -------------------------------------------------------------------------------------


def test_who_does_not_know_the_token_gets_nothing(served):
    server = served()
    token = server.token

    def ask(method, path, host="localhost", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
        connection.request(method, path, body, {"Host": host})
        reply = connection.getresponse()
        said = reply.read()
        connection.close()
        return reply.status, said

    good = {"rater": "A", "item": 0, "swapped": False, "scores": {"progress": 1}}
    body = json.dumps(good).encode()
    assert ask("POST", "/nothing/rating", body=body)[0] == 404
    assert ask("POST", f"/{token}/rating", host="evil.example", body=body)[0] == 403
    assert ask("POST", f"/{token}/rating", body=b"x" * 200_000)[0] == 413
    assert ask("GET", f"/{token}/video/7/0")[0] == 404
    assert ask("GET", f"/{token}/video/0/1")[0] == 404
    assert ask("GET", f"/{token}/video/..%2f/0")[0] == 404
    assert ask("GET", f"/{token}/work?rater=")[0] == 500
    status, video = ask("GET", f"/{token}/video/0/0")
    assert (status, video[4:8]) == (200, b"ftyp")
    assert ask("POST", f"/{token}/rating", body=body)[0] == 200


@pytest.mark.process
def test_the_command_says_where_it_serves_and_what_was_rated(tmp_path):
    write_video(tmp_path / "mine_dirt_1.mp4", [np.zeros((64, 64, 3), np.uint8)] * 5, 20.0)
    (tmp_path / "mine_dirt_2.mp4").write_bytes(b"nothing")
    code = "import sys; from rollout.commands.gamut import main; main()"
    command = [sys.executable, "-c", code, "rate", str(tmp_path)]
    with killed_at_end(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ) as job:
        said = ""
        while "Ctrl-C" not in said:
            more = job.stdout.readline()
            assert more, said
            said += more
        job.send_signal(signal.SIGINT)
        said += job.communicate(timeout=60)[0]
    assert job.returncode in (0, 130), said
    assert "left out" in said
    assert "mine_dirt_2.mp4 cannot be read as a video" in said
    assert f"1 recordings; ratings in {tmp_path / FILE}" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gone"], "there is no folder"),
        (["."], "expected a dataset or videos"),
        (["v", "--rubric", "mcv"], "Nearest: mcu"),
        (["v", "--criteria", "gone"], "there is no file or folder gone"),
        (["v", "--criteria", "v"], "there is no file for task t"),
        (["v", "--rubric", "play", "--criteria", "v"], "the same for all tasks"),
        (["v", "--mode", "pairwise"], "nothing to rate"),
        (["v", "--filter", "length > 2"], "videos have no columns"),
    ],
)
def test_bad_input_is_told(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    if arguments != ["."]:
        (tmp_path / "v").mkdir()
        write_video(tmp_path / "v" / "t_1.mp4", [np.zeros((64, 64, 3), np.uint8)], 20.0)
    assert rate.main(arguments) == 2
    assert says in capsys.readouterr().err
