"""A person plays: real key and mouse events in a real window, on a private X server."""

import json
import subprocess
import sys

import av
import numpy as np
import pytest

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from tests.unit.desk import ROOT, WHY_NOT, Desk, at_step, missing

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(missing()), reason=WHY_NOT),
]
SMALL_GAME = ("bridge.name=fake", "bridge.slip=0", "bridge.max_steps=6")
ONCE = "policy.repeat_after=0"  # however late the machine tells that a key is up again


@pytest.fixture(scope="module")
def desk():
    desk = Desk()
    yield desk
    desk.close()


def finish(program):
    """Waits for the end; returns the status and what was said."""
    said, _ = program.communicate(timeout=300)
    return program.returncode, said


def read(run):
    with Dataset(run / "dataset") as dataset:
        refs = dataset.episodes(include_lost=True)
        return dataset.counts, [(ref, dataset.read(ref)) for ref in refs]


def summary(run):
    return json.loads((run / "summary.json").read_text())


def press(desk, program, *keys, episode=0, first=0):
    """Presses keys one after the other, each when the game has taken the one before."""
    for step, key in enumerate(keys, first):
        desk.wait_for(at_step(step, episode), program=program)
        desk.do("key", key)


def test_a_game_without_a_clock_waits_for_keys_and_records_them(desk, tmp_path):
    run = tmp_path / "run"
    program = desk.play(*SMALL_GAME, ONCE, f"output={run}", "episodes=2")
    press(desk, program, *"123412")
    desk.wait_for(at_step(6), program=program)
    desk.do("key", "Return")
    press(desk, program, *"030303", episode=1)
    desk.wait_for(at_step(6, 1), program=program)
    desk.do("key", "Return")
    status, said = finish(program)
    assert status == 0, said
    counts, episodes = read(run)
    assert counts.unfinished == 0
    moves = [played.columns["action/move"].tolist() for _, played in episodes]
    assert moves == [[1, 2, 3, 4, 1, 2], [0, 3, 0, 3, 0, 3]]
    told = summary(run)
    assert told["status"] == "done"
    assert told["protocol"]["policy"] == "human"
    assert told["protocol"]["state_set"]
    assert (run / "config.yaml").exists()
    assert (run / "metrics.jsonl").exists()
    with Dataset(run / "dataset") as dataset:
        assert dataset.manifest.policy == "human"


def test_quitting_keeps_what_has_ended_and_resume_continues(desk, tmp_path):
    run = tmp_path / "run"
    settings = (*SMALL_GAME, ONCE, f"output={run}", "episodes=2", "policy.pause_between=false")
    program = desk.play(*settings)
    press(desk, program, *"123412")
    press(desk, program, *"11", episode=1)
    desk.wait_for(at_step(2, 1), program=program)
    desk.do("key", "F10")
    status, said = finish(program)
    assert status == 3, said
    assert "ended short: the window was closed. Saved: 1 episodes" in said
    counts, episodes = read(run)
    assert (len(episodes), counts.unfinished) == (1, 1)
    assert summary(run)["status"] == "ended short"

    program = desk.play(*settings, resume=True)
    press(desk, program, *"222222", episode=1)
    status, said = finish(program)
    assert status == 0, said
    counts, episodes = read(run)
    assert [(ref.episode, ref.attempt) for ref, _ in episodes] == [(0, 0), (1, 1)]
    assert episodes[1][1].columns["action/move"].tolist() == [2] * 6


def test_the_menu_begins_an_episode_again_and_a_held_key_repeats(desk, tmp_path):
    run = tmp_path / "run"
    program = desk.play(*SMALL_GAME, f"output={run}")
    press(desk, program, *"33")
    desk.wait_for(at_step(2), program=program)
    desk.do("key", "Escape")
    desk.do("key", "4", "key", "4")  # keys mean nothing in the menu
    desk.do("key", "r")
    desk.wait_for(lambda title: title.endswith("step 0"), program=program)
    desk.do("keydown", "1")  # and holds it: it repeats
    desk.wait_for(at_step(6), program=program)
    desk.do("keyup", "1", "key", "F10")  # all that was asked for is done
    status, said = finish(program)
    assert status == 0, said
    counts, episodes = read(run)
    assert counts.unfinished == 1
    ((ref, played),) = episodes
    assert ref.attempt == 1
    assert played.columns["action/move"].tolist() == [1] * 6


def test_a_signal_ends_it_even_while_the_game_waits(desk, tmp_path):
    program = desk.play(*SMALL_GAME, ONCE, f"output={tmp_path / 'run'}")
    press(desk, program, "1")
    desk.wait_for(at_step(1), program=program)
    program.terminate()
    status, said = finish(program)
    assert status == 143, said
    assert summary(tmp_path / "run")["status"] == "interrupted"


@pytest.mark.heavy
def test_what_was_played_in_blockworld_is_recorded_and_replays_exactly(desk, tmp_path):
    task = tmp_path / "walk.yaml"
    task.write_text(
        "goal: Walk about and look around.\nbridge: blockworld\n"
        "evaluator: {name: game_reward}\nlimits: {steps: 90}\n"
    )
    game = ("bridge.name=blockworld", "bridge.observe=[rgb,inventory]", f"task={task}", "seed=3")
    run, again = tmp_path / "run", tmp_path / "again"
    program = desk.play(*game, f"output={run}", "recording.codec=png")
    # It may have to compile first.
    desk.wait_for(at_step(0), program=program, within_s=480)
    desk.do("keydown", "w")
    desk.wait_for(at_step(30), program=program)
    desk.do("keydown", "space", "mousedown", "1")
    desk.wait_for(at_step(40), program=program)
    desk.do("keyup", "space", "keyup", "w", "mouseup", "1", "key", "5")
    seen = 40
    while seen < 80:
        desk.do("mousemove_relative", "--", 30, -9)
        seen += 10
        desk.wait_for(at_step(seen), program=program)
    desk.wait_for(at_step(90), program=program)
    desk.do("key", "Return")
    status, said = finish(program)
    assert status == 0, said

    _, ((ref, played),) = read(run)
    keys, camera = played.columns["action/keys"], played.columns["action/camera"]
    attack, forward, jump, five = keys[:, 0], keys[:, 2], keys[:, 3], keys[:, 15]
    assert forward[:20].sum() > 10
    assert jump.sum() > 3
    assert attack.sum() > 3
    assert five.sum() >= 1  # a tap is never lost
    assert not forward[50:].any()
    assert (camera[:38] == 5).all()
    assert (camera[:, 1] > 5).sum() >= 4  # to the right
    assert (camera[:, 0] < 5).sum() >= 2  # and up
    frames = played.columns["observation/rgb"]
    assert np.abs(frames[0].astype(int) - frames[30]).mean() > 1  # it got somewhere

    replay(run, again, game)
    _, ((_, repeated),) = read(again)
    for name in played.columns:
        if name.startswith(("observation", "action", "signal", "reward")):
            assert np.array_equal(played.columns[name], repeated.columns[name]), name
    for name, final in played.final_observations.items():
        assert np.array_equal(final, repeated.final_observations[name]), name

    video = tmp_path / "walk.mp4"
    script = [sys.executable, str(ROOT / "scripts" / "dataset.py")]
    subprocess.run(
        [*script, "play", str(run / "dataset"), "0", "--out", str(video)],
        env=desk.env,
        check=True,
        timeout=300,
    )
    with av.open(video) as shown:
        (stream,) = shown.streams.video
        assert stream.codec_context.name == "h264"  # browsers play it
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert stream.frames == ref.length + 1


def replay(run, again, game):
    """Plays a recorded run once more, by its actions."""
    with Dataset(run / "dataset") as dataset:
        from rollout.data import Actions

        Actions().write(dataset, dataset.episodes(), run / "actions.npz")
    scripted = ("policy.name=scripted", f"policy.actions={run / 'actions.npz'}")
    settings = [*game, f"output={again}", *scripted, "episodes=1", "actors=0"]
    assert main(collect, CollectConfig, "", ["--set", *settings]) == 0


def test_clicks_and_keys_play_starbench(desk, tmp_path):
    run, task = tmp_path / "run", tmp_path / "battle.yaml"
    task.write_text(
        "{goal: Win., bridge: starbench, evaluator: {name: starbench}, limits: {steps: 3}}"
    )
    small = ("policy.scale=1", "policy.pause_between=false", "bridge.width_px=640")
    config = ROOT / "configs" / "starbench" / "play.yaml"
    program = desk.play(f"output={run}", f"task={task}", *small, config=config)
    desk.wait_for(at_step(0), program=program)
    window = desk.do("search", "--class", "gamut").split()[-1]
    desk.do("mousemove", "--window", window, 320, 90, "click", 1)
    press(desk, program, "q", "q", first=1)
    status, said = finish(program)
    assert status == 0, said
    _, [(_, played)] = read(run)
    assert played.columns["action/x"].tolist() == [960] * 3
    assert played.columns["action/y"].tolist() == [270] * 3
    first, *keys = played.columns["action/key"].tolist()
    assert first == 0
    assert keys == [1, 1]
