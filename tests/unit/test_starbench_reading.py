"""What is read from StarBench's screen: texts, bars, objects, whole battles."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from bridges.starbench.pictures.drawn import LABELS, Label
from bridges.starbench.pictures.layout import Box
from bridges.starbench.pictures.renderer import Renderer
from bridges.starbench.reading.detector import (
    Detector,
    Network,
    average_precision,
    decoded,
    loss,
    save,
    shrunk,
    targets,
)
from bridges.starbench.reading.glyphs import LETTERS, crop, read_bar, read_text, snap
from bridges.starbench.reading.reader import CHARACTERS, Ocr, Reader
from bridges.starbench.reading.scenes import scene
from bridges.starbench.reading.train import train
from rollout.errors import ConfigError

pytestmark = pytest.mark.heavy

SMALL = (640, 360)
FULL = Renderer()


def folded(text):
    """A text without case and spaces, which OCR gets wrong."""
    return "".join(text.split()).casefold()


class Perfect:
    """Finds what was labelled, a little off."""

    def __init__(self, labels):
        self.labels = labels

    def detect(self, picture, least=0.3):
        return [one._replace(x=one.x + 2, y=one.y - 3, score=0.9) for one in self.labels]


@pytest.fixture(scope="module")
def drawn():
    return [(scene(number), FULL.drawn(*scene(number))) for number in range(3)]


def test_glyphs_are_read_as_they_were_written(drawn):
    right = total = 0
    for _, each in drawn:
        for text in each.written:
            if text.name in ("auto", "ally.key", "basic.key", "skill.key"):
                continue
            size, _, bold = FULL.ui.text(text.name)
            part = crop(each.picture, text.box)
            characters = CHARACTERS.get(text.name, LETTERS)
            right += read_text(part, size, bold=bold, characters=characters) == text.text
            total += 1
    assert total > 100
    assert right >= 0.98 * total


def test_where_nothing_is_written_nothing_is_read():
    view, marks, centres = scene(1)
    bare = dataclasses.replace(
        view,
        message="",
        allies=tuple(dataclasses.replace(ally, statuses=()) for ally in view.allies),
    )
    picture = FULL.drawn(bare, marks, centres).picture
    for name, i in (("ally.status", 0), ("ally.status", 2), ("outcome", 0)):
        size, _, bold = FULL.ui.text(name)
        assert read_text(crop(picture, FULL.ui.box(name, i)), size, bold=bold) == ""


def test_bars_are_read_to_a_pixel(drawn):
    for (view, _, _), each in drawn:
        for ally in view.allies:
            box = FULL.ui.box("ally.hp", ally.slot)
            read = read_bar(each.picture, box)
            assert read == pytest.approx(ally.hp / ally.max_hp, abs=1.01 / box.w)


def test_a_bar_is_found_by_its_outline(drawn):
    _, each = drawn[0]
    box = FULL.ui.box("ally.hp", 1)
    moved = Box(box.x - 5, box.y + 3, box.w, box.h)
    assert snap(each.picture, moved, 2, 8) == (5, -3)


def test_a_crop_may_leave_the_picture():
    picture = np.full((20, 20, 3), 9, np.uint8)
    part = crop(picture, Box(-5, 15, 10, 10))
    assert part.shape == (10, 10, 3)
    assert part.sum() == 5 * 5 * 3 * 9
    assert crop(picture, Box(50, 50, 4, 4)).sum() == 0


def test_a_whole_battle_is_read_from_pixels(drawn):
    for (view, _, _), each in drawn:
        reading = Reader(FULL.ui, Perfect(each.labels)).read(each.picture)
        assert reading.off_turn == (view.window == "off_turn")
        assert (reading.skill_points, reading.max_skill_points) == (
            view.skill_points,
            view.max_skill_points,
        )
        assert reading.damage == math.ceil(view.damage)
        assert (reading.steps, reading.invalid) == (view.steps, view.invalid)
        assert reading.clock == math.ceil(view.clock)
        for read, ally in zip(reading.allies, view.allies, strict=True):
            assert (read.name, read.hp) == (ally.name, math.ceil(ally.hp))
            assert (read.ready, read.acting) == (ally.ready, ally.acting)
        assert len(reading.enemies) == len(view.enemies)
        for read, enemy in zip(reading.enemies, view.enemies, strict=True):
            assert (read.name, read.kind) == (enemy.name, enemy.kind)
            assert read.share == pytest.approx(enemy.hp / enemy.max_hp, abs=0.01)
        text = reading.text()
        assert f"skill points: {view.skill_points}/{view.max_skill_points}" in text
        assert f"enemy 4: {view.enemies[0].name}" in text


@pytest.mark.parametrize("outcome", ["won", "lost"])
def test_the_end_is_read(outcome):
    view, marks, _ = scene(3)
    view = dataclasses.replace(view, outcome=outcome, window="over", score=7120.0, steps=31)
    for size in ((1920, 1080), SMALL):
        renderer = Renderer(size)
        reading = Reader(renderer.ui).read(renderer.draw(view, marks))
        assert (reading.outcome, reading.steps, reading.score) == (outcome, 31, 7120)


def test_ocr_reads_crops(drawn):
    pytest.importorskip("rapidocr")
    ocr = Ocr()
    _, each = drawn[1]
    wanted = {"ally.life", "points", "enemy.name"}
    texts = [text for text in each.written if text.name in wanted][:5]
    read = [folded(ocr.read(crop(each.picture, text.box))) for text in texts]
    assert read == [folded(text.text) for text in texts]
    assert ocr.read(np.zeros((30, 90, 3), np.uint8)) == ""


def test_what_the_network_shall_say_decodes_to_the_labels(drawn):
    for _, each in drawn:
        maps = torch.from_numpy(targets(each.labels, 1 / 6))
        n = len(LABELS)
        maps[:n] = torch.where(maps[:n] == 1, 8.0, -8.0)
        found = decoded(maps, 6.0, 0.5)
        exact = average_precision([found], [each.labels], 0.9)
        assert set(exact.values()) == {1.0}


def test_average_precision_is_that_of_its_definition():
    labels = [[Label("enemy", 0, 0, 10, 10), Label("enemy", 50, 0, 10, 10)]]
    hit, twice = Label("enemy", 1, 0, 10, 10, 0.9), Label("enemy", 0, 1, 10, 10, 0.8)
    other = Label("enemy", 50, 0, 10, 10, 0.7)
    assert average_precision([[hit, other]], labels) == {"enemy": 1.0}
    # A second box on the same enemy is wrong: precision 1, 1/2, 2/3 at recall 1/2, 1/2, 1.
    assert average_precision([[hit, twice, other]], labels) == {"enemy": pytest.approx(5 / 6)}
    assert average_precision([[Label("boss", 0, 0, 10, 10, 0.9)]], labels) == {"enemy": 0.0}


@pytest.mark.long
def test_training_lowers_the_loss_and_weights_survive_the_file(tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        said = []
        network = train(8, 3, width=6, say=said.append)
        losses = [float(line.rpartition(" ")[2]) for line in said if "loss" in line]
        assert losses[-1] < losses[0]
        path = tmp_path / "weights.npz"
        save(network, path)
        picture = Renderer(SMALL).drawn(*scene(0)).picture
        given = torch.from_numpy(shrunk(picture))[None].float() / 255
        with torch.inference_mode():
            direct, stored = network(given), Detector(path).network(given)
        assert torch.allclose(direct, stored, atol=0.05)
        assert isinstance(Detector(path).detect(picture, 0.0), list)
    finally:
        torch.set_num_threads(threads)


def test_the_loss_prefers_the_truth():
    _, _, centres = scene(0)
    drawn = Renderer(SMALL).drawn(*scene(0))
    wanted = torch.from_numpy(targets(drawn.labels, 0.5))[None]
    n = len(LABELS)
    good = wanted.clone()
    good[:, :n] = torch.logit(wanted[:, :n].clamp(1e-3, 1 - 1e-3))
    worse = good.clone()
    worse[:, n:] += 1
    assert loss(good, wanted) < loss(worse, wanted)
    assert loss(good, wanted) < loss(torch.zeros_like(good), wanted)
    assert len(centres) == len([x for x in drawn.labels if x.name in ("enemy", "boss", "summon")])


def test_missing_and_foreign_weights_name_the_command(tmp_path):
    with pytest.raises(ConfigError, match=r"bridges\.starbench\.reading\.train"):
        Detector(tmp_path / "none.npz")
    np.savez(tmp_path / "old.npz", format=0, labels=np.array(LABELS))
    with pytest.raises(ConfigError, match="another version"):
        Detector(tmp_path / "old.npz")
    assert sum(each.numel() for each in Network().parameters()) < 400_000
