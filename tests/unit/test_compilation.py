"""Where compiled code is kept, and who shares it."""

import importlib.util
import os

import numba
import pytest

from bridges import compilation

ADDING = """
import numba
@numba.njit
def one():
    return {one}
def add(number):
    return number + one()
"""


@pytest.fixture
def compile_in(tmp_path):
    """Loads a copy of a source in a folder, as a process of its own would; returns its function."""

    def compile_(folder, one=1):
        path = tmp_path / folder / "adding.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(ADDING.format(one=one))
        spec = importlib.util.spec_from_file_location(f"{folder}_adding", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = numba.njit(module.add)
        compilation.keep_code(made, tmp_path / compilation.digest([path]))
        return made

    return compile_


def loaded(made):
    return bool(made.stats.cache_hits) and not made.stats.cache_misses


def test_a_copy_at_another_place_and_time_loads_what_the_first_compiled(compile_in):
    first, copy = compile_in("first"), compile_in("copy")
    os.utime(first.py_func.__code__.co_filename, (1, 1))
    assert first(1) == 2
    assert not loaded(first)
    assert copy(1) == 2
    assert loaded(copy)


def test_a_change_in_a_function_that_is_called_recompiles(compile_in):
    assert compile_in("first")(1) == 2
    # Of another length: Python keeps its bytecode for a source of the same second and length.
    changed = compile_in("first", one=20)
    assert changed(1) == 21
    assert not loaded(changed)


def test_the_digest_is_one_of_names_and_contents_and_what_compiles(tmp_path, monkeypatch):
    file, same, renamed = (tmp_path / name for name in ("a.py", "same/a.py", "b.py"))
    same.parent.mkdir()
    for path in (file, same, renamed):
        path.write_text("1")
    before = compilation.digest([file])
    assert compilation.digest([same]) == before
    assert compilation.digest([renamed]) != before
    file.write_text("2")
    assert compilation.digest([file]) != before
    monkeypatch.setattr(compilation, "_toolchain", lambda: ("another processor",))
    assert compilation.digest([same]) != before


def test_without_a_folder_of_its_own_it_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("GAMUT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compilation.cache_root() == tmp_path / "gamut"


def test_where_the_cache_cannot_be_written_it_is_a_temporary_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("GAMUT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compilation.cache_root().name == f"gamut-{os.getuid()}"
