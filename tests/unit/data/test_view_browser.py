"""The page of a dataset in a browser."""

import json
import re
import threading
from dataclasses import replace
from functools import partial

import browser
import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import Player, frames, make_spec
from test_round_trip import record
from test_view import HOSTILE, hostile_dataset, table_of, written

from rollout.commands import dataset_view
from rollout.data import Dataset
from rollout.data.view import listed_episodes, write_page

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(browser.program() is None, reason=browser.WHY_NOT),
]
KINDS = ("chat", "event", "call", "stage", "plan", "memory")
SPEC = make_spec({"rgb": frames(24, 40, 3), "compass": spaces.Box(-1, 1, (3,), np.float32)})


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("view")
    player = Player(SPEC, longest=30)
    record(path / "d", player, 12)
    _, summary, steps = written(path / "d", path / "d.html")
    return path / "d.html", summary, steps, player


def shown_frame(chromium):
    """The width and the pixels of the picture in sight, as the browser decoded it."""
    code = """(async () => {
      const image = document.querySelector("#stage img");
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
      const pen = canvas.getContext("2d");
      pen.drawImage(image, 0, 0);
      return [...pen.getImageData(0, 0, canvas.width, canvas.height).data];
    })()"""
    return np.array(chromium.run(code)).reshape(24, 40, 4)[..., :3]


def listed(chromium):
    """The numbers of the episodes in the table."""
    rows = "[...document.querySelectorAll('#rows .row')]"
    return chromium.run(f"{rows}.map((row) => Number(row.cells[0].textContent))")


def test_the_film_shows_every_frame_with_its_step(chromium, made):
    path, _, steps, player = made
    key = max(steps, key=lambda key: len(steps[key]["reward"]))
    data, (episode, attempt) = steps[key], map(int, key.split(":"))
    chromium.open(f"{path.as_uri()}#{key}/0")
    assert chromium.text("#which") == f"Episode {episode}"
    truth = player.truth(episode, attempt)
    np.testing.assert_array_equal(shown_frame(chromium), truth.columns["observation/rgb"][0])
    for name, frame in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", -1)):
        chromium.key(name)
        expected = truth.columns["observation/rgb"][frame] if frame >= 0 else truth.final["rgb"]
        np.testing.assert_array_equal(shown_frame(chromium), expected)
    assert chromium.text("#place").startswith("end, after")
    assert truth.end in chromium.text("#now")
    chromium.run("document.querySelector('#scrub').value = 2")
    chromium.run("document.querySelector('#scrub').dispatchEvent(new Event('input'))")
    assert chromium.text("#place") == f"step 2 of {truth.length}"
    said = chromium.text("#now")
    assert data["strings"][data["action"][2]] in said
    reward = re.search(r"reward\s+(\S+)", said)[1]
    assert float(reward) == pytest.approx(truth.columns["reward"][2], rel=1e-4)
    assert chromium.problems == []


def test_it_plays_to_the_end_and_can_be_paused(chromium, made):
    path, _, steps, _ = made
    key = max(steps, key=lambda key: len(steps[key]["reward"]))
    chromium.open(f"{path.as_uri()}#{key}/0")
    chromium.run("document.querySelector('#speed').value = '60'")
    chromium.key(" ", " ")
    chromium.until("document.querySelector('#place').textContent.startsWith('end')")
    chromium.until("document.querySelector('#play').getAttribute('aria-label') === 'Play'")
    chromium.click("#play")  # from the start
    chromium.click("#play")
    place = chromium.text("#place")
    assert place.startswith("step")
    chromium.run("new Promise((done) => setTimeout(done, 200))")
    assert chromium.text("#place") == place
    assert chromium.problems == []


def test_the_table_sorts_and_filters(chromium, made):
    path, summary, _, _ = made
    table = table_of(summary)
    chromium.open(path.as_uri())
    column = [each["name"] for each in summary["table"]].index("return")
    chromium.click(f"#names th:nth-child({column + 1}) button")
    order = np.argsort(-np.array(table["return"]), kind="stable")
    assert listed(chromium) == [table["episode"][n] for n in order]
    chromium.click(f"#names th:nth-child({column + 1}) button")
    order = np.argsort(np.array(table["return"]), kind="stable")
    assert listed(chromium) == [table["episode"][n] for n in order]
    chromium.write("#filter", "LOST train")
    wanted = [
        table["episode"][n]
        for n in order
        if table["end"][n] == "lost" and table["split"][n] == "train"
    ]
    assert wanted
    assert listed(chromium) == wanted
    assert chromium.text("#count") == f"{len(wanted)} of {len(order)} episodes"
    chromium.click("#rows .row")
    assert chromium.text("#which") == f"Episode {wanted[0]}"
    assert "Lost, so not a result. step: it hung" in chromium.text("#notes")
    chromium.write("#filter", " nothing-has-this")
    assert "No episode has these words" in chromium.text("#rows")
    assert chromium.problems == []


@pytest.mark.parametrize("served", [False, True])
def test_hostile_texts_are_shown_and_do_nothing(chromium, tmp_path, served):
    hostile_dataset(tmp_path / "d")
    watch = """
      window.violations = [];
      document.addEventListener("securitypolicyviolation",
        (event) => violations.push(event.violatedDirective));
      window.hit = () => { window.hits = (window.hits || 0) + 1; };
    """
    script = chromium.send("Page.addScriptToEvaluateOnNewDocument", source=watch)["identifier"]
    server = dataset_view.Server(partial(dataset_view.opened_dataset, tmp_path / "d", ""), [])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        written(tmp_path / "d", tmp_path / "d.html")
        chromium.open(server.url if served else (tmp_path / "d.html").as_uri())
        chromium.until("document.querySelectorAll('.plot').length > 0")
        for _ in range(3):
            chromium.key("ArrowRight")
        chromium.until("document.querySelector('.call details') !== null")
        chromium.run("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        chromium.until("document.querySelector('.message pre') !== null")
        everything = chromium.run("document.body.innerText")
        assert everything.count(HOSTILE) > 10
        places = ("#title", "#rows", ".call", ".message pre", "#columns", "#plots", "#words")
        for place in (*places, "#pinned", *map("#talk .is-{}".format, KINDS)):
            assert "<img src=x onerror=hit()>" in chromium.text(place), place
        assert chromium.run("document.querySelectorAll('img[src=x]').length") == 0
        assert chromium.run("violations") == []
        assert chromium.run("window.hits ?? 0") == 0
        assert chromium.problems == []
        # Even if a text became markup, the policy would stop it.
        chromium.run("""(() => {
          const script = document.createElement("script");
          const image = document.createElement("img");
          const refused = [
            () => { document.body.innerHTML = "<img src=x onerror=hit()>"; },
            () => { script.text = "hit()"; },
            () => { image.setAttribute("onerror", "hit()"); },
          ];
          window.refused = refused.filter((attempt) => {
            try { attempt(); } catch { return true; }
            return false;
          }).length;
          image.src = "http://127.0.0.1:9/x.png";
          document.body.append(image);
        })()""")
        assert chromium.run("refused") == 3
        chromium.until("violations.some((each) => each.startsWith('img-src'))")
        assert chromium.run("window.hits ?? 0") == 0
    finally:
        chromium.send("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        server.shutdown()
        thread.join()
        server.server_close()


def test_calls_are_beside_their_frame(chromium, tmp_path):
    hostile_dataset(tmp_path / "d")
    written(tmp_path / "d", tmp_path / "d.html")
    chromium.open((tmp_path / "d.html").as_uri())
    steps = json.loads(chromium.run("document.querySelector('script.steps').textContent"))
    called = [step for step, _ in steps["calls"]]
    free = next(t for t in range(len(steps["reward"])) if t not in called and t > called[0])
    for frame, cards in ((called[0], 1), (free, 0)):
        chromium.run(f"document.querySelector('#scrub').value = {frame}")
        chromium.run("document.querySelector('#scrub').dispatchEvent(new Event('input'))")
        assert chromium.run("document.querySelectorAll('.call').length") == cards
    assert "No call at this step" in chromium.text("#words")
    before = sum(step <= free for step in called)
    assert f"{before} call" in chromium.text("#words .total")
    assert f"{12 * before} tokens, ${0.5 * before:g}" in chromium.text("#words .total")
    chromium.click("#entry-back")
    assert "10 → 2 tokens" in chromium.text(".call")


def test_the_transcript_is_stepped_through_by_keys_and_follows_a_run(chromium, tmp_path):
    player = Player(SPEC, lost=False, details=True, longest=200)
    writer = record(tmp_path / "d", player, 0, close=False)

    def play(steps):
        fragment = player.play(steps)
        for t, row in enumerate(fragment.details):
            said = {"type": "chat", "username": "Ada", "only_message": f"line {t}"}
            row[0] = {"event": [said] if t % 3 == 1 else []}
        writer.append(fragment)

    play(7)
    server = dataset_view.Server(partial(dataset_view.opened_dataset, tmp_path / "d", ""), [])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        chromium.open(f"{server.url}#0:0/0")
        chromium.until("document.querySelectorAll('.entry').length === 2")
        for key, step in (("n", 1), ("n", 4), ("n", 4), ("p", 1)):
            chromium.key(key, key)
            assert chromium.text("#place").startswith(f"step {step} of 7")
            assert f"line {step}" in chromium.text("#talk [aria-current]")
        chromium.run("document.querySelectorAll('.entry button')[1].focus()")
        chromium.key("Enter", "\r")
        assert chromium.text("#place").startswith("step 4 of 7")
        assert "line 4" in chromium.run("document.activeElement.closest('.entry').textContent")
        chromium.click("#kinds button")  # hides the chat
        assert chromium.run("document.querySelectorAll('.entry').length") == 0
        chromium.click("#kinds button")
        chromium.key("End")
        play(7)
        chromium.until("document.querySelectorAll('.entry').length === 4")
        assert chromium.text("#place").startswith("step 13 of 14")  # it was at the end, and is
        chromium.click("#live")
        assert chromium.run("document.querySelector('#live').ariaPressed") == "false"
        assert chromium.problems == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        writer.close()


def test_ten_thousand_episodes_stay_usable(chromium, tmp_path):
    record(tmp_path / "d", Player(SPEC, lost=False), 4)
    with Dataset(tmp_path / "d") as dataset:
        first = listed_episodes(dataset)
        more = range(len(first), 10_000)
        many = [*first, *(replace(first[n % len(first)], episode=n) for n in more)]
        write_page(dataset, tmp_path / "d.html", many, chosen=first)
    chromium.open((tmp_path / "d.html").as_uri())
    assert chromium.text("#count") == "10,000 episodes"
    assert chromium.run("document.querySelectorAll('#rows tr').length") < 100
    chromium.run("document.querySelector('#box').scrollTop = 1e9")
    chromium.until("document.querySelector('#rows').textContent.includes('9999')")
    chromium.click("#rows .row.absent")
    assert "gamut dataset view DATASET --episodes" in chromium.text("#notes")
    assert chromium.run("document.querySelector('#panes').hidden")
    chromium.write("#filter", "9998")
    assert listed(chromium) == [9998]
    assert chromium.problems == []


def test_a_dataset_without_pictures_and_an_empty_one(chromium, tmp_path):
    vectors = {"state": spaces.Box(-1, 1, (8,), np.float32), "n": spaces.Discrete(4)}
    record(tmp_path / "v", Player(make_spec(vectors), lost=False), 3)
    written(tmp_path / "v", tmp_path / "v.html")
    chromium.open((tmp_path / "v.html").as_uri())
    assert chromium.run("document.querySelectorAll('#stage img').length") == 0
    drawn = """[...document.querySelectorAll('.plot canvas')].filter((canvas) =>
      canvas.width && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
        .data.some((value) => value)).length"""
    chromium.until(f"{drawn} >= 6")
    record(tmp_path / "e", Player(), 0)
    written(tmp_path / "e", tmp_path / "e.html")
    chromium.open((tmp_path / "e.html").as_uri())
    assert "No episode has begun" in chromium.text("#rows")
    assert chromium.run("document.querySelector('#viewer').hidden")
    assert chromium.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1440])
def test_nothing_sticks_out_of_the_window(chromium, made, scheme, width):
    try:
        chromium.shape(width, 800)
        chromium.scheme(scheme)
        chromium.open(made[0].as_uri())
        assert chromium.run("document.documentElement.scrollWidth") <= width
        back = chromium.run("getComputedStyle(document.body).backgroundColor")
        red = int(re.findall(r"\d+", back)[0])
        assert (red < 60) == (scheme == "dark")
    finally:
        chromium.shape(1440, 900)
        chromium.scheme("light")
