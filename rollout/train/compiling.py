"""What torch.compile needs: a C++ compiler that works, and a folder for what it made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from rollout.api.bridge import cache_folder

_LIMIT_S = 60.0
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
    with (
        tempfile.TemporaryDirectory(prefix="gamut-compiler-") as folder,
        tempfile.TemporaryFile() as log,
    ):
        source, out = Path(folder) / "probe.cpp", Path(folder) / "probe.so"
        source.write_text(_SOURCE)
        headers = sysconfig.get_paths()["include"]
        process = subprocess.Popen(
            [path, "-shared", "-fPIC", f"-I{headers}", str(source), "-o", str(out)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it may start others, which end with it
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"the C++ compiler {path} did not end within {limit_s:g} s; {_ADVICE}"
        if code:
            log.seek(0)
            lines = log.read(65_536).decode(errors="replace").strip().splitlines()
            why = next((line for line in lines if "error" in line), (lines or ["no message"])[-1])
            return f"the C++ compiler {path} failed with status {code}: {why[:300]}; {_ADVICE}"
        return "" if out.exists() else f"the C++ compiler {path} made no file; {_ADVICE}"


def keep_compiled() -> None:
    """Makes torch.compile keep what it made for other runs, where the user has not said where."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "inductor"))
