"""What torch.compile needs: a C++ compiler that works, and a folder for what it made."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from rollout.api import cache_folder
from rollout.api.child_process import ChildProcess

_LIMIT_S, _CLOSE_S = 60.0, 5.0
_ADVICE = "name another one by the environment variable CXX, or set algorithm.compile=false"
_SOURCE = '#include <Python.h>\nextern "C" int probe() { return PY_MAJOR_VERSION; }\n'


def compiler_fault(limit_s: float = _LIMIT_S) -> str:
    """Compiles a line of C++ as torch.compile will compile its own.

    Args:
        limit_s: seconds after which the compiler hangs.

    Returns:
        the compiler, what is wrong with it, and what to do; empty if it works.
    """
    name = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    path = shutil.which(name)
    if path is None:
        return f"the C++ compiler {name} is not on PATH; install it, {_ADVICE}"
    with tempfile.TemporaryDirectory(prefix="gamut-compiler-") as folder:
        source, made = Path(folder) / "probe.cpp", Path(folder) / "probe.so"
        source.write_text(_SOURCE)
        headers = sysconfig.get_paths()["include"]
        command = [path, "-shared", "-fPIC", f"-I{headers}", str(source), "-o", str(made)]
        try:
            process = ChildProcess(command, log=Path(folder) / "log")
        except OSError as error:
            return f"the C++ compiler {path} cannot be started ({error.strerror}); {_ADVICE}"
        try:
            ended = process.ended(time.monotonic() + limit_s)
            if ended is None:
                return f"the C++ compiler {path} did not end within {limit_s:g} s; {_ADVICE}"
        finally:
            process.close(time.monotonic() + _CLOSE_S)
        if made.exists():
            return ""
        lines = process.last_output(10_000).splitlines() or ["no message"]
        why = next((line for line in lines if "error" in line), lines[-1])
        return f"the C++ compiler {path} made no file ({ended}: {why[:300]}); {_ADVICE}"


def keep_compiled() -> None:
    """Makes torch.compile keep what it made for other runs, where the user has not said where."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    given = Path(os.environ.get(name, ""))
    # Torch sets the variable itself when it is imported.
    torchs = given.parent == Path(tempfile.gettempdir()) and given.name.startswith("torchinductor_")
    if torchs or not os.environ.get(name):
        os.environ[name] = str(cache_folder() / "inductor")
