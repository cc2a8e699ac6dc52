"""Compiled code of blockworld: where it is kept, and that it is made once."""

import re
import shutil
import threading
from pathlib import Path

import pytest

from bridges.blockworld import compiled, warm

GAME = Path(compiled.__file__).parent
PARTS = ("rules", "pictures", "oracle")


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
    for part in PARTS:
        assert compiled.cache_folder(part).parent == folder
        assert compiled.cache_folder(part).name.startswith(f"blockworld-{part}-")


def sources():
    """Every source with compiled code, and every picture and table it has as constants."""
    found = [path for part in PARTS for path in sorted((GAME / part).glob("*.py"))]
    shared = [GAME.parent / name for name in ("atlas.py", "compilation.py", "hud.py")]
    return [*found, GAME / "compiled.py", *shared, *sorted(GAME.glob("data/*"))]


@pytest.mark.parametrize("changed", sources(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_change_of_a_source_changes_the_folders_of_all_that_use_it(changed, folder, monkeypatch):
    copy = folder / "bridges" / "blockworld"
    for path in sources():
        to = folder / path.relative_to(GAME.parents[1])
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    monkeypatch.setattr(compiled, "_HERE", copy)
    before = {part: compiled.cache_folder(part) for part in PARTS}
    with (folder / changed.relative_to(GAME.parents[1])).open("ab") as file:
        file.write(b"CHANGED = 1\n")
    compiled.cache_folder.cache_clear()
    after = {part for part in PARTS if compiled.cache_folder(part) != before[part]}
    own = changed.parent.name
    if changed.name == "hud.py":
        assert after == {"pictures"}
    else:
        assert after == ({own} if own in ("pictures", "oracle") else set(PARTS))


def test_compiled_code_calls_that_of_its_own_package_and_of_the_rules():
    """The digest of a folder covers no others."""
    own = "bridges.blockworld"
    for part in PARTS:
        for path in (GAME / part).glob("*.py"):
            imported = re.findall(rf"{own}\.([a-z_]+)", path.read_text())
            strays = {*imported} - {part, "rules", "compiled"}
            assert strays <= ({"actions"} if path.name == "expert.py" else set()), path


def test_what_compiles_is_in_a_package():
    for path in GAME.glob("*.py"):
        assert path.name == "compiled.py" or not re.search(
            r"^@\w*(kernel|inner)$", path.read_text(), re.MULTILINE
        )
