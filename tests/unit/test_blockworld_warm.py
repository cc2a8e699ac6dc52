"""Compiled code of blockworld: where it is kept, and that it is made once."""

import threading

import pytest

from bridges.blockworld import compiled, warm


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path))
    compiled.cache_folder.cache_clear()
    yield tmp_path
    compiled.cache_folder.cache_clear()


def test_what_is_compiled_is_not_compiled_again(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(warm, "LARGE", {"sun": lambda: calls.append(1), "moon": calls.clear})
    for _ in range(3):
        warm.compile_missing(["sun", "stars"])
    assert calls == [1]


def test_one_compiles_and_the_others_wait(folder, monkeypatch):
    inside, most, calls = [], [], []

    def sun():
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.05)
        calls.append(1)
        inside.pop()

    monkeypatch.setattr(warm, "LARGE", {"sun": sun})
    threads = [threading.Thread(target=warm.compile_missing, args=(["sun"],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (calls, most) == ([1], [1])


def test_the_folder_is_named_after_the_sources(folder):
    game, oracle = compiled.cache_folder(), compiled.cache_folder("oracle")
    assert game.parent == oracle.parent == folder
    assert game.name.startswith("blockworld-game-")
    assert oracle.name.startswith("blockworld-oracle-")


def test_the_folder_is_another_when_a_picture_changes(folder, monkeypatch):
    """Pictures are constants of compiled code."""
    monkeypatch.setattr(compiled, "_HERE", folder / "game")
    (folder / "game" / "data").mkdir(parents=True)
    (folder / "atlas.py").touch()
    found = set()
    for content in (b"one", b"other"):
        (folder / "game" / "data" / "icons.png").write_bytes(content)
        compiled.cache_folder.cache_clear()
        found.add(compiled.cache_folder())
    assert len(found) == 2
