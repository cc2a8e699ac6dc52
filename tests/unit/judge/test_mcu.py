"""Judging as MCU does: six dimensions, criteria of tasks, its replies, its ratings, videos."""

import base64
import json
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from rollout.cli import main
from rollout.data.replay import write_video
from rollout.errors import ConfigError, UnknownNameError
from rollout.judge.agreement import (
    _draws,
    compare_scores,
    f1_of_order,
    interval,
    interval_of_pairs,
    kendall,
    kendalls,
    pearson,
    pearsons,
)
from rollout.judge.config import FramesConfig, JudgeConfig
from rollout.judge.criteria import own_criteria, parse_data, parse_text, read_generated
from rollout.judge.judge import judge
from rollout.judge.ratings import read_mcu_file, read_ratings
from rollout.judge.replies import TITLES, read_reply, scores_of
from rollout.judge.rubric import load_rubric
from rollout.judge.sources import chosen_steps, open_source, task_of_video
from rollout.testing.chat_server import ChatServer, Scripted

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[3]
MCU = load_rubric("mcu")
NAMES = list(TITLES.values())


# Replies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Task Progress: 7", {"progress": 7.0}),
        ("**Task Progress**: **7**", {"progress": 7.0}),
        ("- **Task Progress: 7**", {"progress": 7.0}),
        ("2. **Action Control:** 7/10", {"control": 7.0}),
        ("2) Action Control: 7.5 (steady)", {"control": 7.5}),
        ("### Creative Attempts\n- evidence none\n**Score: N/A**", {"creativity": None}),
        ("Material Usage: Not Applicable", {"material": None}),
        ("Task Progress:\n- dug 3 holes\nScore: 4\nOverall Scores:\n- Task Progress: 2",
         {"progress": 2.0}),
        ("Task Progress: 3 sheep were found", {}),
        ("Task Progress: 5-6", {}),
        ("Task Progress: 85", {}),
        ("Task Progress: -1", {}),
        ("Task Progress:", {}),
        ("Score: 4", {}),
        ("Task Progressive: 4", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_reply_is_read_in_whatever_form_it_comes(text, expected):
    assert read_reply(text) == expected


def test_a_comparison_is_read():
    text = (
        "Task Progress:\n- B builds more\nresult: B is better\n\nOverall results:\n"
        "- Task Progress: **A is better**\n- Action Control: tie\n2. Creative Attempts: Both are "
        "bad\n- Material Selection and Usage: Video B is better\n- Task Completion Efficiency: 7"
    )
    expected = {"progress": "A", "control": "tie", "creativity": "tie", "material": "B"}
    assert read_reply(text, pairwise=True) == expected


def test_our_own_judge_takes_a_reply_of_that_form_only_if_it_is_whole():
    whole = "\n".join(f"- **{title}**: {n}" for n, title in enumerate(NAMES))
    assert MCU.read(whole, pairwise=False) == dict(zip(TITLES, map(float, range(6)), strict=True))
    told = MCU.read(whole.replace("**: 3", "**: N/A"), pairwise=False)
    assert told["creativity"] is None
    with pytest.raises(ValueError, match="JSON object"):
        MCU.read(whole.replace("Creative", "Other"), pairwise=False)
    with pytest.raises(ValueError, match="JSON object"):
        load_rubric("play").read("- progress: 3", pairwise=False)


# Files of ratings --------------------------------------------------------------------------------


def released_shapes(folder):
    """492 files with the shapes of the ratings that MCU released, rebuilt by hand from counts.

    82 tasks, 2 episodes and 3 agents; all values are texts; 58 files have no scores, 132 values are
    bold and 8 are not applicable.
    """
    rng = np.random.default_rng(0)
    empty = {"steve_res": 14, "vpt_bc_res": 26, "vpt_rl_res": 18}
    truth, bold, absent = {}, 132, 8
    for agent, without in empty.items():
        (folder / agent).mkdir(parents=True)
        for number in range(164):
            name = f"task_{'abc'[number % 3]}{number // 2} {number % 2}"
            entry = {"video_path": f"/data/{agent}/{name}.mp4", "task_name": name[:-2]}
            values = {}
            if number >= without:
                for key, title in TITLES.items():
                    values[key] = float(rng.integers(0, 11))
                    entry[title] = f"{values[key]:.0f}"
                    if bold and key in ("progress", "material") and number % 2:
                        entry[title], bold = f"**{entry[title]}**", bold - 1
                    elif absent and key == "creativity" and number % 11 == 0:
                        entry[title] = ("N/A", "Not Applicable")[absent % 2]
                        values[key], absent = None, absent - 1
            (folder / agent / f"{name}.json").write_text(json.dumps(entry))
            truth[agent, f"/data/{agent}/{name}.mp4"] = values
    assert (bold, absent) == (0, 0)
    return truth


def test_all_492_released_shapes_are_read_and_what_is_missing_is_never_0(tmp_path):
    truth = released_shapes(tmp_path / "r")
    files = {path: read_mcu_file(path) for path in sorted((tmp_path / "r").rglob("*.json"))}
    assert len(files) == 492
    for path, found in files.items():
        assert found.values == truth[path.parent.name, found.clip]
        assert found.task == path.stem[:-2]
    assert sum(not found.values for found in files.values()) == 58
    scores = [rating.score for rating in read_ratings(str(tmp_path / "r" / "steve_res"))]
    assert len(scores) == 164 * 6
    assert np.isnan(scores).sum() >= 14 * 6


def test_further_shapes_of_files_are_read(tmp_path):
    text = "\n".join(f"**{n + 1}. {title}**\n**Score: {n}**" for n, title in enumerate(NAMES))
    of = {"without scores": [{"task_name": "t"}, text], "numbers": [dict.fromkeys(NAMES, 3), "x"]}
    of["bold names"] = {f"**{title}**": "4" for title in NAMES}
    compared = dict.fromkeys(NAMES[:5], "A is better") | {NAMES[5]: "both are bad"}
    of["pair"] = [{**compared, "video_1_path": "a_1.mp4", "video_2_path": "a_2.mp4"}, ""]
    found = {}
    for name, data in of.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
        found[name] = read_mcu_file(tmp_path / f"{name}.json")
    assert list(found["without scores"].values.values()) == [0, 1, 2, 3, 4, 5]
    assert set(found["numbers"].values.values()) == {3.0}
    assert set(found["bold names"].values.values()) == {4.0}
    assert (found["pair"].other, found["pair"].values["material"]) == ("a_2.mp4", "tie")
    assert scores_of({"Task Progress": True, "Action Control": 3.5}) == {"control": 3.5}
    (tmp_path / "pair.json").write_text('"a text"')
    with pytest.raises(ConfigError, match=r"pair\.json: expected a mapping"):
        read_ratings(str(tmp_path))


# Criteria ----------------------------------------------------------------------------------------


def test_criteria_in_the_form_of_mcu_are_read():
    text = "**Task Progress: key steps** \n - whether it digs\n - e.g. a hole\n\n**Action Control**"
    assert parse_text(text, "f") == {"progress": ("whether it digs", "e.g. a hole"), "control": ()}
    with pytest.raises(ConfigError, match=r"f: expected headings such as \*\*Task Progress"):
        parse_text("Progress: fine", "f")


def test_every_task_of_the_minecraft_games_has_criteria():
    games = ("mineflayer", "blockworld")
    files = [path for game in games for path in (ROOT / "bridges" / game / "tasks").glob("*.yaml")]
    names = [path.stem for path in files]
    assert len(names) > 30
    for name in (*names, "survival_0.05_days", "build_gate", "play_cook", "harvest_1_stick"):
        found = own_criteria(name, {}, MCU)
        assert found is not None, name
        assert list(found) == list(MCU.criteria), name
        assert all(found.values()), name
    assert "recipe" in str(own_criteria("harvest_1_stick", {}, MCU))
    assert "animal" in str(own_criteria("harvest_1_mutton_with_1_iron_sword", {}, MCU))
    assert own_criteria("pong", {}, MCU) is None
    own = {"criteria": {"progress": ["whether it blinks"]}}
    assert own_criteria("combat_1_zombie", own, MCU) == {"progress": ("whether it blinks",)}
    with pytest.raises(UnknownNameError, match="Nearest: progress"):
        parse_data({"progres": ["x"]}, MCU, "f")


def test_criteria_are_in_the_prompt_and_a_written_answer_is_whole():
    prompt = MCU.with_rules({"progress": ["whether  it\nblinks"]}).prompt("Blink.", pairwise=False)
    assert "(Task Progress)" in prompt
    assert "\n  - whether it blinks\n" in prompt
    points = {name: ["whether"] for name in MCU.criteria}
    assert read_generated(json.dumps(points), MCU)["material"] == ("whether",)
    with pytest.raises(ValueError, match="none of material"):
        read_generated(json.dumps({**points, "material": []}), MCU)


# Agreement ---------------------------------------------------------------------------------------


def test_f1_of_the_order_is_over_pairs_of_one_task():
    judged, rated = np.array([1.0, 2, 3, 3, 0]), np.array([1.0, 3, 2, 2, 9])
    # Task a: 0 < 1, 0 < 2, 2 < 1 rated; judged the first two right and the third wrong.
    found = f1_of_order(judged[:3], rated[:3], "aaa")
    assert found["ordered_pairs"] == 3
    assert found["f1_of_pairs"] == pytest.approx(2 / 3)
    # Task b: one pair, judged wrong. Pairs of two tasks do not count.
    assert f1_of_order(judged, rated, "aaabb")["f1_of_pairs"] == pytest.approx(1 / 2)
    # A pair that is judged equal is missed, not wrong: precision 1, recall 1/2.
    assert f1_of_order(np.array([1.0, 1, 2]), np.array([1.0, 2, 2]), "aaa")["f1_of_pairs"] == (
        pytest.approx(2 / 3)
    )
    assert np.isnan(f1_of_order(np.ones(3), np.ones(3), "aaa")["f1_of_pairs"])


def test_a_draw_of_the_bootstrap_counts_each_clip_as_often_as_it_was_drawn():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 5, 40).astype(float)
    b = a + rng.integers(0, 4, 40)
    weights = _draws(40, 0)[:5]
    rows = [np.repeat(np.arange(40), each.astype(int)) for each in weights]
    assert kendalls(a, b, weights) == pytest.approx([kendall(a[r], b[r]) for r in rows])
    assert pearsons(a, b, weights) == pytest.approx([pearson(a[r], b[r]) for r in rows])
    assert np.isnan(pearsons(np.ones(40), b, weights)).all()


def test_pairs_of_few_clips_tell_less_than_their_number():
    pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    agreed = np.array([min(pair) < 2 for pair in pairs], float)
    low, high = interval_of_pairs(lambda rows: float(agreed[rows].mean()), pairs)
    naive = interval(lambda rows: float(agreed[rows].mean()), len(pairs))
    assert high - low > naive[1] - naive[0]


def test_a_judge_that_is_two_points_too_high_is_told_by_its_mean_error():
    rated = {n: float(n % 8) for n in range(30)}
    found = compare_scores({n: score + 2 for n, score in rated.items()}, rated)
    assert found["mean_error"] == 2
    assert found["pearson"] == found["kendall"] == found["f1_of_pairs"] == pytest.approx(1)


def test_every_so_many_steps_are_shown_and_the_last():
    nothing = np.zeros(100, np.float32)
    options = FramesConfig(every=30, budget=60)
    assert chosen_steps(nothing, nothing, options) == [0, 30, 60, 90, 99]
    thinned = chosen_steps(nothing, nothing, FramesConfig(every=1, budget=5))
    assert thinned == [0, 25, 50, 74, 99]


# Videos ------------------------------------------------------------------------------------------


def test_the_task_of_a_video_is_in_its_name():
    names = ("build_gate_5.mp4", "combat_spider 0.mp4", "a/combat/episode_3.mp4", "hunt.mp4")
    assert [*map(task_of_video, names)] == ["build_gate", "combat_spider", "combat", "hunt"]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Six videos of two tasks whose brightness is their quality, a damaged one, a stray task."""
    folder = tmp_path_factory.mktemp("videos")
    for task in ("build_gate", "mine_dirt"):
        for number in range(3):
            shade = np.full((48, 64, 3), 40 + 60 * number, np.uint8)
            write_video(folder / f"{task}_{number}.mp4", [shade] * 61, 30.0)
    whole = (folder / "mine_dirt_2.mp4").read_bytes()
    (folder / "mine_dirt_7.mp4").write_bytes(whole[: len(whole) // 2])
    write_video(folder / "wave_0.mp4", [np.zeros((48, 64, 3), np.uint8)] * 5, 30.0)
    return folder


def test_the_videos_of_an_evaluation_are_of_its_task(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "summary.json").write_text('{"protocol": {"task": "hunt_sheep"}}')
    file = tmp_path / "videos" / "chance-test-sampled-best1-state3-0.mp4"
    write_video(file, [np.zeros((48, 64, 3), np.uint8)] * 5, 20.0)
    [clip] = open_source(str(tmp_path), FramesConfig(), "", None).clips
    assert (clip.name, clip.task, clip.length) == (file.name, "hunt_sheep", 5)


@pytest.fixture
def run_judge(capfd):
    """Returns a function that runs ``gamut judge`` and returns what it printed."""

    def run(config, out, status=0, *arguments):
        path = out.with_suffix(".yaml")
        quiet = {"wandb": {"mode": "disabled"}, "model": "eye"}
        path.write_text(yaml.safe_dump({"output": str(out), **quiet, **config}))
        done = main(judge, JudgeConfig, "", ["--config", str(path), *arguments])
        said = "".join(capfd.readouterr())
        assert done == status, said
        return said

    return run


def pictures(request):
    """The mean brightness of the last picture of each recording of a request."""
    found, last = [], None
    for part in request["messages"][1]["content"]:
        if part["type"] == "image_url":
            data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
            last = float(cv2.imdecode(np.frombuffer(data, np.uint8), 0).mean())
        elif part["text"].startswith("Recording B"):
            found.append(last)
    return [*found, last]


def rate(request):
    """A judge that sees brightness, and answers as MCU's do."""
    shades = pictures(request)
    if len(shades) == 2:
        result = "A is better" if shades[0] > shades[1] else "B is better"
        return "\n".join(f"- {title}: {result}" for title in NAMES)
    return Scripted("\n".join(f"**{title}**: {shades[0] / 20:.0f}/10" for title in NAMES))


def test_videos_are_judged_and_compared_with_files_of_ratings(videos, tmp_path, run_judge):
    (tmp_path / "c").mkdir()
    for task in ("build_gate", "mine_dirt"):
        (tmp_path / "c" / f"{task}.txt").write_text(f"**Task Progress: x**\n - whether {task}!\n")
    (tmp_path / "r").mkdir()
    for name, score in (("build_gate_0", "**2**"), ("build_gate_2", "9"), ("mine_dirt 1", "N/A")):
        entry = {**dict.fromkeys(NAMES, score), "video_path": f"/elsewhere/{name}.mp4"}
        (tmp_path / "r" / f"{name}.json").write_text(json.dumps(entry))
    (tmp_path / "r" / "x.json").write_text(json.dumps({NAMES[0]: "1", "video_path": "other_1.mp4"}))
    config = {"dataset": str(videos), "rubric": "mcu", "criteria": str(tmp_path / "c")}
    config |= {"frames": {"every": 30, "budget": 60}, "ratings": str(tmp_path / "r")}
    with ChatServer(rate) as server:
        config["endpoint"] = {"url": server.url, "calls": 2}
        said = run_judge(config, tmp_path / "out", 3)
        assert len(server.requests) == 6
        shown = server.requests[0]["messages"]
        run_judge({**config, "mode": "pairwise", "ratings": ""}, tmp_path / "pairs", 3)
        assert len(server.requests) == 6 + 2 * 6
    assert "2 clips were not judged" in said
    assert "mine_dirt_7.mp4 cannot be read as a video" in said
    assert f"wave_0.mp4: no criteria in {tmp_path / 'c'}" in said
    assert "ratings of other clips are left out: other_1.mp4" in said
    assert "whether build_gate!" in shown[0]["content"]
    kinds = [part["type"] for part in shown[1]["content"]]
    assert kinds.count("image_url") == 3  # frames 0, 30 and 60
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    found = summary["results"]["findings"]["progress"]
    assert found["codes"] == {"ok": 6}
    assert found["against"]["clips"] == 2
    assert found["against"]["f1_of_pairs"] == 1
    rows = pq.read_table(tmp_path / "out" / "verdicts.parquet").to_pylist()
    assert {row["clip"] for row in rows if row["task"] == "mine_dirt"} == {
        f"mine_dirt_{n}.mp4" for n in range(3)
    }
    pairs = json.loads((tmp_path / "pairs" / "summary.json").read_text())["results"]["findings"]
    assert (pairs["progress"]["pairs"], pairs["progress"]["flip_rate"]) == (6, 0)


def test_a_model_writes_criteria_once_and_is_paid_once(videos, tmp_path, run_judge):
    points = json.dumps({name: [f"whether {name}"] for name in TITLES})

    def script(request):
        asks = "write criteria" in request["messages"][0]["content"]
        return points if asks else rate(request)

    with ChatServer(script) as server:
        config = {"dataset": str(videos), "rubric": "mcu", "criteria": "generate", "episodes": 2}
        config["endpoint"] = {"url": server.url, "calls": 1}
        run_judge(config, tmp_path / "out")
        assert len(server.requests) == 3
        assert "whether material" in server.requests[-1]["messages"][0]["content"]
        run_judge(config, tmp_path / "out", 0, "--resume")
        assert len(server.requests) == 3
    kept = yaml.safe_load((tmp_path / "out" / "criteria" / "build_gate.yaml").read_text())
    assert kept["criteria"]["control"] == ["whether control"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"criteria": "gone"}, "there is no file or folder gone"),
        ({"criteria": "."}, "there are none in . for build_gate, mine_dirt, wave; name a file"),
        ({"rubric": "play", "criteria": "x"}, "is the same for all tasks"),
        ({"measure": "progress"}, "videos have no measure"),
        ({"ratings": "r.csv"}, "rates other clips: 12; expected build_gate_0.mp4"),
        ({"dataset": "empty"}, "empty"),
    ],
)
def test_bad_input_is_refused_by_name(videos, tmp_path, monkeypatch, run_judge, more, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("episode,criterion,score\n12,progress,3\n")
    (tmp_path / "empty").mkdir()
    config = {"dataset": str(videos), "rubric": "mcu", "endpoint": {"url": "http://127.0.0.1:9/v1"}}
    assert says in run_judge({**config, **more}, tmp_path / "out", 2)
    assert not (tmp_path / "out").exists()
