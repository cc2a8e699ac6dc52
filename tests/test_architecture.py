"""The rules of the house, checked on the syntax trees: who imports whom, how large things are."""

import ast
import dataclasses
import gc
import importlib
import importlib.util
import itertools
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTALLED = ("rollout", "policies", "bridges")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

MOST_LINES, MOST_FUNCTION_LINES, MOST_METHODS = 600, 60, 6

# Where a library may be imported; a folder stands for all below it.
RAY = (
    *(
        f"rollout/host/{each}.py"
        for each in ("inference_actors", "ray_actors", "ray_fleet", "session")
    ),
    "rollout/cluster/",
    "rollout/collect.py",
    "rollout/interop/ray_serving.py",
    "rollout/observe/exporter.py",
    "rollout/vector_env.py",
    "rollout/train/",
    "rollout/evaluate/",
    "rollout/sweep/",
)
HOMES = {
    "ray": RAY,
    "pyarrow": ("rollout/data/",),
    # rollout.host pickles recipes to send them to a game's own process; the suite checks that a
    # recipe survives it. Nothing that is stored is ever pickled. Files of MineStudio are pickles,
    # of which plain values are read and no code is run.
    "pickle": (
        "rollout/host/",
        "rollout/testing/bridge_checks.py",
        "rollout/data/formats/plain_pickle.py",
    ),
    "cloudpickle": ("rollout/host/",),
    "dill": (),
    "shelve": (),
    "wandb": ("rollout/observe/",),
    "tensorboardX": ("rollout/observe/tensorboard.py",),
    "marshal": (),
    # PyYAML's own readers turn `no` into false and let a key pass that is there twice.
    "yaml": ("rollout/yaml12.py",),
}
# What modules may import of ours, beside what is in the same package. The entry with the longest
# name counts; a name stands for all below it.
CORE = ("rollout.api", "rollout.errors", "rollout.files", "rollout.yaml12")
JOBS = (
    *("rollout.collect", "rollout.evaluate", "rollout.judge"),
    *("rollout.suite", "rollout.sweep", "rollout.train"),
)
OUTSIDE = (
    "rollout.commands",
    "rollout.gamut",
    "rollout.interface",
    "rollout.interop",
)  # users call these


def core_but(*excepted):
    """Everything in ``rollout`` but some packages."""
    found = {f"rollout.{each.stem}" for each in (ROOT / "rollout").iterdir()}
    return tuple(sorted(found - set(excepted)))


MAY_IMPORT = {
    "bridges": ("bridges.atlas", "bridges.compilation", "bridges.hud", *CORE),
    # MineStudio's engine is the game of the Minecraft bridge behind another socket.
    "bridges.minestudio": ("bridges.minestudio", "bridges.mineflayer", *CORE),
    "policies": ("rollout.models", "rollout.threads", *CORE),
    "rollout": core_but(*JOBS, *OUTSIDE),
    "rollout.api": ("rollout.errors",),
    "rollout.collect": core_but(*JOBS, *OUTSIDE),
    "rollout.commands": (*core_but("rollout.gamut", "rollout.interface"), "policies.human_window"),
    "rollout.data": ("rollout.reports", "rollout.signals", *CORE),
    "rollout.errors": (),
    "rollout.yaml12": ("rollout.errors", "rollout.files"),
    "rollout.evaluate": core_but(*JOBS, *OUTSIDE),
    "rollout.gamut_games": ("rollout.interop",),
    "rollout.gamut": core_but("rollout.commands", "rollout.interop"),
    "rollout.judge": core_but(*JOBS, *OUTSIDE),
    "rollout.models": ("rollout.data", "rollout.files", "rollout.observe.aggregates", *CORE),
    "rollout.interface": core_but("rollout.commands", "rollout.gamut", "rollout.interop"),
    "rollout.interop": core_but(*JOBS, *(each for each in OUTSIDE if "interop" not in each)),
    "rollout.suite": core_but(*OUTSIDE),
    "rollout.sweep": core_but(*OUTSIDE),
    "rollout.testing": (
        *(f"rollout.host.{each}" for each in ("builder", "instances", "processes", "referee")),
        *CORE,
    ),
    "rollout.testing.isolated": ("rollout.host.handle", "rollout.host.interpreter", *CORE),
    "rollout.testing.importer_checks": ("rollout.data", "rollout.testing.report", *CORE),
    "rollout.train": (*core_but(*JOBS, *OUTSIDE), "rollout.evaluate"),
}
# Classes that share more than four fields, and why; all others must declare an option once.
SHARED_FIELDS = {
    "what is built has other types than the keys it is built from": {"Task", "_TaskConfig"},
    "the library does not know configurations": {
        "Splits",
        "StateSetConfig",
        "NewModelConfig",
        "Sizes",
    },
    "a training example may be of an expert, who was never called": {"Call", "TrainingExample"},
    "a row of the index of a dataset is flat": {"EpisodeRef", "EpisodeResult", "Start"},
    "so is a line of the results of an evaluation": {"Entry", "EpisodeResult"},
    "a chaotic game draws the values of an episode from its options": {"ChaosBridge", "FaultPlan"},
    "bridges know neither one another nor how data is stored": {
        *("ChaosBridge", "FakeBridge", "Column", "BoxHead"),
    },
    "what plays and starts a game knows only those options of its bridge that it needs": {
        *("ModOptions", "Playing", "StardojoBridge"),
    },
    "MineStudio shows and starts the game of another bridge": {
        *("MineflayerBridge", "MinestudioBridge"),
    },
    "a line of a journal is flat": {"Entry", "Usage"},
    "a person and a client play a game that is named as in every job": {
        *("McpConfig", "PlayConfig", "ServeConfig"),
    },
    "what a client sees of a step is a row of a fragment": {"Fragment", "Moment", "Played"},
    "who asks a model names it, how, and its limits": {"JudgeConfig", "ModelOptions"},
    "what a function of a user is told is flat, and named as everywhere": {"Context", "Session"},
    "what is read from a screen is named as what it shows": {"BattleView", "Reading"},
    "a valley has what its content describes": {"Content", "World"},
}
# A game's library is loaded with the game, never when its bridge is imported.
GAME_LIBRARIES = ("crafter", "ale_py", "minigrid", "pygame", "ray", "torch")
# A third of the time until a script's first line, if it is loaded with it; pandas comes with
# pyarrow.dataset.
SLOW_LIBRARIES = (*GAME_LIBRARIES, "matplotlib", "pandas", "scipy", "tensorboardX", "wandb")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_garbage():
    """The trees stay; to look at them again and again takes six times as long as to make them."""
    gc.disable()
    yield
    gc.enable()


def sources(*folders):
    found = []
    for folder in folders:
        for place, within, files in os.walk(ROOT / folder):
            within[:] = [each for each in within if each != "node_modules"]  # those of others
            found += [Path(place, file) for file in files if file.endswith(".py")]
    return sorted(found)


def name(path):
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path):
    return ast.parse(path.read_text(), str(path))


@cache
def by_kind(path):
    """The nodes of a file by their class: a file is walked once for all rules."""
    found = defaultdict(list)
    for node in ast.walk(tree(path)):
        found[type(node)].append(node)
    return found


def nodes(path, *kinds):
    """Every node of a file that is of one of these classes."""
    return [node for kind in kinds for node in by_kind(path)[kind]]


PACKAGED = sources(*INSTALLED)
WITHOUT_TESTS = sources(*INSTALLED, "scripts", "examples", "benchmarks")


def imports(path):
    """Every imported module with the line it is imported in."""
    for node in nodes(path, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            yield (node.module or "", node.lineno)
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def functions(path):
    return nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)


def within(path, homes):
    return any(
        name(path) == home or (home[-1] == "/" and name(path).startswith(home)) for home in homes
    )


def test_there_is_something_to_check():
    assert len(PACKAGED) > 20


def test_files_are_short():
    long = {name(path): len(path.read_text().splitlines()) for path in PACKAGED}
    assert not {path: lines for path, lines in long.items() if lines > MOST_LINES}


def test_functions_are_short():
    long = [
        f"{name(path)}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in PACKAGED
        for node in functions(path)
        if node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert not long


def fields_of(node):
    """The names of the fields that a class declares itself."""
    return {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "ClassVar" not in ast.unparse(each.annotation)
    }


def share_too_much(fields, others):
    """Whether two classes have more than four fields in common."""
    return len(fields & others) > 4


def test_options_are_declared_once():
    classes = [node for path in PACKAGED for node in nodes(path, ast.ClassDef)]
    wide = [(node.name, fields) for node in classes if len(fields := fields_of(node)) > 4]
    pairs = itertools.combinations(wide, 2)
    shared = [{one, other} for (one, a), (other, b) in pairs if share_too_much(a, b)]
    excused = SHARED_FIELDS.values()
    assert [pair for pair in shared if not any(pair <= names for names in excused)] == []
    needed = [names & set().union(*(pair for pair in shared if pair <= names)) for names in excused]
    assert needed == list(excused)


def test_options_that_are_declared_twice_are_found():
    fields = "".join(f"    {name}: int\n" for name in "abcde")
    one, other = ast.parse(f"class One:\n{fields}class Other:\n{fields}").body
    assert share_too_much(fields_of(one), fields_of(other))
    other.body.pop()
    assert not share_too_much(fields_of(one), fields_of(other))


def is_protocol(node):
    names = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return "Protocol" in names


def protocols():
    return [
        (path, node)
        for path in sources("rollout/api")
        for node in nodes(path, ast.ClassDef)
        if is_protocol(node)
    ]


def test_seams_are_narrow():
    seams = {
        node.name: [n.name for n in node.body if isinstance(n, ast.FunctionDef)]
        for _, node in protocols()
    }
    assert {"Bridge", "Instance", "Policy", "Evaluator", "Recorder"} <= seams.keys()
    assert not {seam: methods for seam, methods in seams.items() if len(methods) > MOST_METHODS}


def module_of(path):
    """The dotted name of a file's module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_below(module, *packages):
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def may_import(module):
    """The modules of ours that a module may import; each stands for all below it."""
    owner = max((each for each in MAY_IMPORT if is_below(module, each)), key=len)
    # A bridge may import itself, never another bridge.
    own = ".".join(module.split(".")[:2]) if owner in {"bridges", "rollout"} else owner
    return (own, *MAY_IMPORT[owner])


def forbidden(module, imported):
    """Those of the imported modules that a module must not import."""
    strays = [
        each
        for each in imported
        if is_below(each, *INSTALLED) and not is_below(each, *may_import(module))
    ]
    if is_below(module, "rollout.api"):  # numpy, gymnasium and the standard library
        known = (*INSTALLED, *sys.stdlib_module_names, "numpy", "gymnasium")
        strays += [each for each in imported if not is_below(each, *known)]
    return strays


def test_modules_import_what_they_may():
    strays = [
        f"{name(path)}:{line} imports {imported}; it may import {may_import(module_of(path))}"
        for path in PACKAGED
        for imported, line in imports(path)
        if forbidden(module_of(path), [imported])
    ]
    assert not strays, "\n".join(strays)


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("bridges.chess.bridge", "rollout.train.gae"),
        ("bridges.chess.bridge", "rollout.apis"),
        ("bridges.chess", "bridges.gymnasium"),
        ("bridges.chess", "policies.random"),
        ("policies.greedy", "rollout.host.pool"),
        ("policies.greedy", "rollout.testing.fakes"),
        ("rollout.api.task", "rollout.registry"),
        ("rollout.api.task", "torch"),
        ("rollout.data.reader", "rollout.observe.metrics"),
        ("rollout.testing.trial", "rollout.host.pool"),
        ("rollout.train.train", "bridges.chess"),
        ("rollout.train.train", "rollout.sweep.plan"),
        ("rollout.evaluate.evaluate", "rollout.sweep.curves"),
    ],
)
def test_a_forbidden_import_is_found(module, imported):
    assert forbidden(module, ["rollout.errors", "numpy", imported]) == [imported]


def test_what_is_allowed_is_not_forbidden():
    assert not forbidden("bridges.chess.bridge", ["rollout.api.task", "bridges.chess.board", "ray"])
    assert not forbidden("rollout.sweep.plan", ["rollout.evaluate.legs", "rollout.train.config"])
    assert not forbidden("policies.greedy", ["policies.random", "rollout.api"])


def import_graph():
    """Each module of ours with those that it imports, wherever in the file it does."""
    modules = {module_of(path): path for path in PACKAGED}
    graph = {}
    for module, path in modules.items():
        names = [imported for imported, _ in imports(path)]
        # "from package import module" imports that module, not what is in the package.
        found = {each for each in names if each in modules}
        packages = {each.rpartition(".")[0] for each in found}
        named = {each for each in found if each not in packages or not is_package(modules[each])}
        graph[module] = named - {module}
    return graph


def is_package(path):
    return path.name == "__init__.py"


def circles(graph):
    """Groups of nodes each of which reaches all others of its group."""
    reached = {node: reach(graph, node) for node in graph}
    groups = {
        frozenset({a} | {b for b in reached[a] if a in reached[b]})
        for a in graph
        if a in reached[a]
    }
    return sorted(sorted(group) for group in groups)


def reach(graph, node):
    seen, left = set(), list(graph[node])
    while left:
        each = left.pop()
        if each not in seen:
            seen.add(each)
            left += graph.get(each, ())
    return seen


def test_modules_do_not_import_in_circles():
    assert circles(import_graph()) == []


def test_packages_do_not_import_in_circles():
    graph = {}
    for module, imported in import_graph().items():
        own = ".".join(module.split(".")[:2])
        others = {".".join(each.split(".")[:2]) for each in imported}
        graph.setdefault(own, set()).update(others - {own, "rollout"})
    assert circles(graph) == []


def test_a_circle_is_found_and_named(tmp_path, monkeypatch):
    package = tmp_path / "rollout"
    package.mkdir()
    files = {
        "a.py": "from rollout import b",
        "b.py": "def f():\n    import rollout.c",
        "c.py": "if TYPE_CHECKING:\n    from rollout.a import x",
        "d.py": "from rollout.a import x",
        "__init__.py": "",
    }
    for file, text in files.items():
        (package / file).write_text(text)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGED", [package / file for file in files])
    assert circles(import_graph()) == [["rollout.a", "rollout.b", "rollout.c"]]


@pytest.mark.parametrize("library", HOMES)
def test_libraries_stay_at_home(library):
    strays = [
        f"{name(path)}:{line} imports {module}"
        for path in PACKAGED
        if not within(path, HOMES[library])
        for module, line in imports(path)
        if module == library or module.startswith(f"{library}.")
    ]
    assert not strays


def test_rllib_is_imported_for_training_only():
    strays = [
        f"{name(path)}:{line}"
        for path in WITHOUT_TESTS
        if not within(path, ("rollout/train/", "benchmarks/"))  # which compare with it
        for module, line in imports(path)
        if module.startswith("ray.rllib")
    ]
    assert not strays


def waits_without_end(path):
    """Calls of ``ray.get`` and ``ray.wait`` that name no timeout, under whatever name."""
    direct = {
        alias.asname or alias.name
        for node in nodes(path, ast.ImportFrom)
        if node.module == "ray"
        for alias in node.names
        if alias.name in ("get", "wait")
    }
    modules = {"ray"} | {
        alias.asname
        for node in nodes(path, ast.Import)
        for alias in node.names
        if alias.name == "ray" and alias.asname
    }
    for node in nodes(path, ast.Call):
        called = node.func
        is_wait = isinstance(called, ast.Name) and called.id in direct
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            is_wait = called.value.id in modules and called.attr in ("get", "wait")
        timeouts = [k for k in node.keywords if k.arg == "timeout"]
        endless = not timeouts or (
            isinstance(timeouts[0].value, ast.Constant) and timeouts[0].value.value is None
        )
        if is_wait and endless:
            yield f"{name(path)}:{node.lineno} {ast.unparse(called)}"


# They record when something happened, and wait for nothing by it: the wall clock may jump.
DATED = {
    "rollout/cluster/jobs.py",
    "rollout/commands/old_runs.py",  # how old a run is
    "rollout/data/manifest.py",
    "rollout/data/rows.py",
    "rollout/evaluate/journal.py",  # when test states were opened
    "rollout/host/builder.py",
    "rollout/judge/people.py",  # when somebody rated
    "rollout/models/client.py",  # when a call was made
    "rollout/models/local.py",  # likewise
    "rollout/models/transport.py",  # Retry-After may be a date
    "rollout/observe/run_status.py",
    "rollout/observe/metrics.py",
    "rollout/run_directory.py",
}


def test_nothing_waits_by_the_wall_clock():
    asking = {
        name(path)
        for path in PACKAGED
        for node in nodes(path, ast.Attribute)
        if ast.unparse(node) in ("time.time", "datetime.now")
    }
    assert "rollout/host/builder.py" in asking
    assert asking - DATED == set()


def test_every_wait_for_ray_has_an_end():
    assert not [call for path in WITHOUT_TESTS for call in waits_without_end(path)]


def exported(path):
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return ast.literal_eval(node.value)
    return None


def public_names(path):
    """What a module binds without an underscore: imports of ours, assignments, definitions."""
    names = set()
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in INSTALLED:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {each for each in names if not each.startswith("_")}


PACKAGES = [path for path in PACKAGED if path.name == "__init__.py"]


@pytest.mark.parametrize("path", PACKAGES, ids=name)
def test_packages_export_what_they_say(path):
    listed = exported(path)
    if listed is None:
        assert not public_names(path), f"{name(path)} binds public names: list them in __all__"
        return
    assert listed == sorted(set(listed)) or len(listed) == len(set(listed)), "a name twice"
    lazy = any(isinstance(n, ast.FunctionDef) and n.name == "__getattr__" for n in tree(path).body)
    if not lazy:
        assert set(listed) == public_names(path)
    if name(path) == "rollout/gamut_games/__init__.py":
        return  # verifiers has an environment of its own
    module = importlib.import_module(".".join(path.relative_to(ROOT).parts[:-1]))
    assert not [each for each in listed if not hasattr(module, each)]


ENTRY_POINTS = [
    (group, entry, target)
    for group, entries in PROJECT["project"]["entry-points"].items()
    for entry, target in entries.items()
    if group.startswith("gamut.")  # another one is of a library that finds our games by it
]


def exists(target):
    try:
        return importlib.util.find_spec(target.partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False


# They read files of the project's own, or what they have just written themselves.
READS_ITS_OWN = {
    "bridges/atlas.py",  # pictures
    "bridges/chaos/game.py",  # /proc
    "bridges/compilation.py",  # sources
    *(  # tables, packages
        f"bridges/mineflayer/{each}.py"
        for each in (
            *("atomic_rows", "columns", "names", "node", "oracle/__init__", "reading"),
            "task_documents",
        )
    ),
    "bridges/mineflayer/minenpc/experts.py",  # the library of programs
    "bridges/mineflayer/spaces.py",  # a table
    "bridges/starbench/asking.py",  # notes
    "bridges/starbench/reading/detector.py",  # weights it has made
    "rollout/api/child_process.py",  # /proc, logs
    "rollout/commands/new.py",  # templates
    "rollout/files.py",
    "rollout/host/",  # the logs of games and of Ray
    "rollout/train/checkpoint.py",  # the digest of what it has written
}


# What these open is a part of a file that was checked, or is limited by the library, or is no file.
GAMES = ("games.", "self.games.", "self._games.")  # of rollout.interop
LIBRARIES = ("archive.", "av.", "lmdb.", "os.", "pa.ipc.", "PIL.", *GAMES)


def reads(path):
    """Calls that read a file by its name, whatever it is and however large."""
    for node in nodes(path, ast.Call):
        called = ast.unparse(node.func)
        method = called.rpartition(".")[2]
        modes = [a.value for a in node.args[-1:] if isinstance(a, ast.Constant)]
        opens = method == "open" and not called.startswith(LIBRARIES)
        if opens and not any(set("wax") & set(str(mode)) for mode in modes):
            yield f"{name(path)}:{node.lineno} {called}"
        whole = "." in called and method in ("read_text", "read_bytes")
        if whole or called in ("json.load", "np.load"):
            yield f"{name(path)}:{node.lineno} {called}"


def test_files_of_users_are_read_with_limits():
    """By ``rollout.files``: a pipe or a device would never end, a large file would take all."""
    unlimited = [
        call for path in PACKAGED if not within(path, READS_ITS_OWN) for call in reads(path)
    ]
    assert not unlimited


# Who starts processes that it does not wait for.
OWNS_PROCESSES = {
    "bridges/starbench/window/__main__.py",  # a server that ends with the last of its clients
    "rollout/api/child_process.py",
    "rollout/host/",  # guards, and what is left of the dead
    "rollout/observe/wandb_mirror.py",  # a thread waits for it
    "rollout/testing/fakes.py",
}


def test_child_processes_have_one_owner():
    """``rollout.api.child_process``: no other knows how they end, and how to end them."""
    owning = {"Popen", "posix_spawn", "posix_spawnp", "waitid", "killpg", "pidfd_open"}
    found = {
        f"{name(path)}:{node.lineno} {ast.unparse(node.func)}"
        for path in PACKAGED
        if not within(path, OWNS_PROCESSES)
        for node in nodes(path, ast.Call)
        if ast.unparse(node.func).rpartition(".")[2] in owning
    }
    assert not found


def test_importing_plugins_and_jobs_starts_nothing():
    """Their modules load no game and nothing slow, start no process and no thread."""
    targets = [target for _, _, target in ENTRY_POINTS if exists(target)]
    assert len(targets) > 5
    code = f"""
import importlib, sys, threading
import psutil
for target in {targets!r}:
    module, _, attribute = target.partition(":")
    plugin = importlib.import_module(module)
    for part in attribute.split("."):
        plugin = getattr(plugin, part)
    assert isinstance(plugin, type), target
loaded = sorted(set({GAME_LIBRARIES!r}) & set(sys.modules))
assert not loaded, f"importing {{{targets!r}}} loaded {{loaded}}"
import rollout.collect, rollout.evaluate.evaluate, rollout.sweep.sweep
loaded = sorted(set({SLOW_LIBRARIES!r}) & set(sys.modules))
assert not loaded, f"importing the jobs loaded {{loaded}}"
assert threading.active_count() == 1, threading.enumerate()
assert not psutil.Process().children(recursive=True)
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_plugins_are_frozen_dataclasses_with_documented_options():
    undocumented = []
    for _, entry, target in ENTRY_POINTS:
        if not exists(target):
            continue
        module, _, attribute = target.partition(":")
        plugin = getattr(importlib.import_module(module), attribute)
        assert plugin.__dataclass_params__.frozen, f"{entry}: {target} is not frozen"
        undocumented += [
            f"{target}.{each.name}"
            for each in dataclasses.fields(plugin)
            if each.init and not each.metadata.get("doc")
        ]
    assert not undocumented


def test_the_rules_find_what_they_look_for(tmp_path, monkeypatch):
    """Each rule above is shown a file that breaks it."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import ray as r\nfrom ray import get as fetch, wait\nimport pyarrow.parquet as pq\n"
        "r.get(1)\nr.wait([1], timeout=None)\nfetch(2)\nwait([3], timeout=5)\nr.get(1, timeout=2)\n"
        "open('f')\npath.open('rb')\npath.open('w')\npath.read_text()\nos.open('f', 0)\n"
        "class P(Protocol):\n    def a(self): ...\n"
        "__all__ = ['P', 'missing']\n"
    )
    assert [w.split()[1] for w in waits_without_end(bad)] == ["r.get", "r.wait", "fetch"]
    assert {"ray", "pyarrow.parquet", "ray.get"} <= {module for module, _ in imports(bad)}
    assert [call.split()[1] for call in reads(bad)] == ["open", "path.open", "path.read_text"]
    assert is_protocol(tree(bad).body[-2])
    assert exported(bad) == ["P", "missing"]
    assert public_names(bad) == {"P"}
    assert within(tmp_path / "rollout/data/x.py", HOMES["pyarrow"])
    assert not within(tmp_path / "rollout/database.py", HOMES["pyarrow"])
