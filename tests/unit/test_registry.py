import pickle
import textwrap
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest

from rollout import registry
from rollout.errors import ContractError, InputError, UnknownNameError
from rollout.registry import PluginImportError, load_plugin, names


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a distribution on the path, as an installer would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(distribution: str, entry_points: str, **modules: str) -> None:
        about = tmp_path / f"{distribution}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        )
        (about / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

    return install


def test_a_package_adds_a_plugin_by_its_entry_point(install) -> None:
    install("reg_mine", "[gamut.bridges]\nreg_mine = reg_mine:Mine\n", reg_mine="class Mine: ...")
    assert "reg_mine" in names("bridges")
    assert load_plugin("bridges", "reg_mine").__name__ == "Mine"
    assert "reg_mine" not in names("policies")


def test_what_is_installed_later_is_found(install) -> None:
    for name in ("reg_first", "reg_second"):
        assert name not in names("bridges")
        install(name, f"[gamut.bridges]\n{name} = {name}:Mine\n", **{name: "class Mine: ..."})
        assert name in names("bridges")


def test_names_are_sorted_and_import_nothing(install) -> None:
    install("reg_b", "[gamut.policies]\nzz = reg_b:X\naa = reg_b:Y\n", reg_b="raise SystemError")
    assert {"aa", "zz"} <= set(names("policies"))
    assert list(names("policies")) == sorted(names("policies"))


def test_an_unknown_name_lists_the_nearest_and_the_valid() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown bridge 'fakee'. Nearest: fake") as caught:
        load_plugin("bridges", "fakee")
    assert "gymnasium" in caught.value.valid


def test_an_unknown_group_lists_the_valid() -> None:
    with pytest.raises(UnknownNameError, match=r"plug-in group 'bridge'.*bridges"):
        names("bridge")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("def (", "SyntaxError"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("x = 1", "AttributeError"),
    ],
)
def test_a_plugin_that_cannot_be_imported_names_its_distribution_and_the_cause(
    install, body: str, cause: str
) -> None:
    name = f"reg_broken{abs(hash(body))}"
    install("reg_broken", f"[gamut.evaluators]\n{name} = {name}:Bad\n", **{name: body})
    with pytest.raises(PluginImportError, match=cause) as caught:
        load_plugin("evaluators", name)
    assert "reg_broken 1.2" in str(caught.value)
    assert f"{name}:Bad" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ImportError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_two_claims_on_one_name_are_refused(install) -> None:
    install("reg_one", "[gamut.bridges]\nreg_same = reg_one:A\n")
    install("reg_two", "[gamut.bridges]\nreg_same = reg_two:B\n")
    with pytest.raises(PluginImportError, match=r"(?s)reg_(one|two) 1.2.*reg_(one|two) 1.2"):
        load_plugin("bridges", "reg_same")
    assert names("bridges").count("reg_same") == 1


def test_an_entry_point_must_name_a_class(install) -> None:
    install("reg_fn", "[gamut.policies]\nreg_fn = reg_fn:f\n", reg_fn="def f(): ...")
    with pytest.raises(ContractError, match="expected 'reg_fn:f' to name a class, got function"):
        load_plugin("policies", "reg_fn")


def test_files_that_a_run_writes_beside_its_script_read_nothing_again(
    install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("reg_kept", "[gamut.bridges]\nreg_kept = reg_kept:Mine\n")
    read: list[str] = []

    def counted(*, group: str) -> EntryPoints:
        read.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(registry, "entry_points", counted)
    for number in range(3):
        (tmp_path / f"summary-{number}.json").touch()
        assert "reg_kept" in names("bridges")
    assert read == ["gamut.bridges"]
