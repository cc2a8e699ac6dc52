"""The picture of a sweep."""

from xml.etree import ElementTree as ET

import cv2
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from rollout.sweep.curves import curves
from rollout.sweep.decomposition import decompositions
from rollout.sweep.figure import STYLE, _draw_adjusted, draw
from tests.unit.sweep.sweep_tables import BASE, cross_played, sweep_table

pytestmark = pytest.mark.heavy

WORDS = {"title": "Hunt sheep", "metric_label": "share of the sheep killed"}
ARMS = {
    **BASE,
    ("prefix", 16): {"train": 0.9, "test": 0.3},
    ("prefix", 64): {"train": 0.9, "test": 0.4},
    ("coat fixed", 16): {"train": 0.8, "test": 0.63},
    ("biome & weather fixed", 16): {"train": 0.8, "test": 0.61},
}


def picture(folder, means=BASE, *, seeds=(0, 1, 2), **words):
    return draw(curves(sweep_table(means, seeds=seeds)), folder / "g", **{**WORDS, **words})


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return picture(tmp_path_factory.mktemp("base"), subtitle="3 seeds")


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    return picture(tmp_path_factory.mktemp("arms"), ARMS, budgets={"random": 100})


def texts(svg):
    found = ET.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}text")
    return ["".join(each.itertext()) for each in found]


def inches(svg):
    root = ET.parse(svg).getroot()
    return [float(root.get(side).removesuffix("pt")) / 72 for side in ("width", "height")]


def test_the_svg_says_what_it_shows(base):
    said = texts(base[1])
    assert {"Hunt sheep", "3 seeds", "share of the sheep killed"} <= set(said)
    assert {"number of training states N", "16", "64", "256", "1,024"} <= set(said)
    assert {"training states", "held-out states", "one training seed"} <= set(said)
    assert any("gap" in each for each in said)
    assert not any("interval" in each or "episodes" in each for each in said)


def test_the_png_is_a_picture_of_the_same_size(base):
    png, svg = base
    assert png.name == "g.png"
    image = cv2.imread(str(png))
    height, width = image.shape[:2]
    assert (width / STYLE["savefig.dpi"], height / STYLE["savefig.dpi"]) == pytest.approx(
        inches(svg), abs=0.02
    )
    assert (image[0, 0] == 255).all()
    assert not [path for path in png.parent.iterdir() if path.name[0] == "."]


def test_curves_lie_where_their_scores_are(base):
    """The training score of the smallest N is above the held-out one, and meets it later."""
    image = cv2.imread(str(base[0]))
    height, width = image.shape[:2]
    blue, orange = (
        (np.abs(image[height // 6 :].astype(int) - bgr).max(-1) < 3)
        for bgr in ((0xB2, 0x72, 0x00), (0x00, 0x5E, 0xD5))
    )
    apart = {}
    for place, columns in (("first", slice(0, width // 4)), ("last", slice(-width // 6, None))):
        at = [np.flatnonzero(colour[:, columns].any(1)).mean() for colour in (blue, orange)]
        apart[place] = (at[1] - at[0]) / height
    assert apart["first"] > 0.2
    assert abs(apart["last"]) < 0.05


def test_the_intervals_of_the_adjusted_gap_are_not_cut_off():
    table = cross_played(sweep_table(BASE, spread=0.3), ease=0.02)
    parts = decompositions(table)
    axes = Figure().subplots()
    axes.plot([16, 1024], [0.0, 0.01])
    _draw_adjusted(axes, parts)
    low, high = axes.get_ylim()
    assert low < min(part.adjusted.low for part in parts)
    assert high > max(part.adjusted.high for part in parts)


def test_the_same_points_give_the_same_bytes(arms, tmp_path):
    again = picture(tmp_path, ARMS, budgets={"random": 100})
    for one, other in zip(arms, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert b"<dc:date>" not in again[1].read_bytes()


def test_arms_with_several_n_have_panels_and_the_others_rows(base, arms):
    said = texts(arms[1])
    assert said.count("number of training states N") == 2
    assert {"random", "prefix", "coat fixed", "biome & weather fixed"} <= set(said)
    assert {"random, to compare", "what the gap depends on, N = 16"} <= set(said)
    one, many = inches(base[1]), inches(arms[1])
    assert many[1] > one[1]


def test_the_base_arm_comes_first(tmp_path):
    means = {key: value for key, value in ARMS.items() if key[1] < 100}
    said = texts(picture(tmp_path, means, base_arm="prefix")[1])
    assert "prefix, to compare" in said
    assert said.index("prefix") < said.index("random")


def test_more_than_three_panels_go_below(base, tmp_path):
    means = {(f"arm {i}", n): {"train": 0.8, "test": 0.5} for i in range(4) for n in (16, 64)}
    _, svg = picture(tmp_path, means)
    assert inches(svg)[1] > 1.7 * inches(base[1])[1]
    assert texts(svg).count("share of the sheep killed") == 2  # once in each row


def test_refused_intervals_are_marked_and_have_no_band(base, tmp_path):
    _, svg = picture(tmp_path, seeds=[0])
    assert "no interval: see report" in texts(svg)
    bands = [each.read_text().count("fill-opacity: 0.15") for each in (base[1], svg)]
    assert bands == [3, 0]


def test_states_that_were_not_all_visited_are_shaded(arms, tmp_path):
    assert {"N > episodes trained", "100 episodes"} <= set(texts(arms[1]))
    assert arms[1].read_bytes().count(b"fill: #f0ede4") == 3  # legend, score and gap of one arm
    plain = picture(tmp_path, budgets={"random": 1024.0, "unknown": 1.0})[1]
    assert b"#f0ede4" not in plain.read_bytes()


def test_sizes_that_share_their_runs_are_one_point(tmp_path, base):
    _, svg = picture(tmp_path, same=[("random", 256)])
    assert "≥ 256" in texts(svg)
    assert "1,024" not in texts(svg)
    dots = [each.read_text().count("<use ") for each in (base[1], svg)]
    assert dots[1] < dots[0]


def test_all_sets_are_distinguished(tmp_path):
    sets = {
        "train": 0.8,
        "test": 0.5,
        "full": 0.55,
        "extrapolation/coat": 0.3,
        "extrapolation": 0.2,
    }
    said = texts(picture(tmp_path, {("random", n): sets for n in (16, 64)})[1])
    assert {"all states", "extrapolation: coat", "extrapolation"} <= set(said)


@pytest.mark.parametrize(
    "means",
    [
        {("random", 16): {"train": 0.8, "test": 0.5}},
        {("random", 16): {"train": 0.8}},
        {("random", 16): {"train": 0.0, "test": 0.0}},
        {("random", 4**i): {"train": 300.0, "test": -40.0} for i in range(1, 13)},
        {**BASE, ("one n, no gap", 512): {"test": 0.5}},
    ],
    ids=["one N", "no held-out", "all zero", "many N", "nothing to compare"],
)
def test_odd_sweeps_are_drawn(tmp_path, means):
    before = dict(mpl.rcParams)
    png, svg = picture(tmp_path, means)
    assert dict(mpl.rcParams) == before  # the settings of other figures are unchanged
    assert png.stat().st_size > 5000
    assert "number of training states N" in texts(svg)


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="at least one point"):
        draw([], tmp_path / "g", **WORDS)
