"""Compiled code: where it is kept, and that it is made once."""

import os
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


def test_another_source_is_another_folder(tmp_path):
    (tmp_path / "a.py").write_text("1")
    before = compiled._digest((tmp_path,))
    (tmp_path / "bridge.py").write_text("nothing that is compiled")
    assert compiled._digest((tmp_path,)) == before
    (tmp_path / "a.py").write_text("2")
    assert compiled._digest((tmp_path,)) != before


def test_a_copy_of_the_sources_compiles_for_itself(tmp_path):
    """Numba goes by path and time, so what one copy compiled says nothing of another."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "a.py").write_text("1")
        os.utime(folder / "a.py", (1, 1))
    assert compiled._digest((one,)) != compiled._digest((other,))
    before = compiled._digest((one,))
    os.utime(one / "a.py", (2, 2))
    assert compiled._digest((one,)) != before


def test_without_a_folder_of_its_own_it_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("GAMUT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled.cache_folder.cache_clear()
    assert compiled.cache_folder().parent == tmp_path / "gamut"
    compiled.cache_folder.cache_clear()


def test_where_the_cache_cannot_be_written_it_is_a_temporary_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("GAMUT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled._root().name == f"gamut-{os.getuid()}"
