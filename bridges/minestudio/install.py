"""Lets MineStudio start our engine: ``python -m bridges.minestudio.install FOLDER``.

MineStudio runs ``xvfb-run -a java ... -jar $MINESTUDIO_DIR/engine/build/libs/mcprec-6.13.jar``, and
asks at the terminal whether to download the jar if it is missing. So an empty file takes the place
of the jar, and a program called ``xvfb-run`` starts our engine.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

JAR = "engine/build/libs/mcprec-6.13.jar"
PROGRAM = "bin/xvfb-run"


def install(folder: Path, python: str | None = None) -> dict[str, str]:
    """Writes the files; returns the environment variables under which MineStudio finds them.

    Args:
        folder: MineStudio's own, ``MINESTUDIO_DIR``. One for each process, which keeps its
            database there.
        python: interpreter of the engine, which has Gamut's packages; None for this one.

    Raises:
        FileExistsError: there is a jar, MineStudio's own engine, which stays.
    """
    folder = folder.absolute()
    jar, program = folder / JAR, folder / PROGRAM
    if jar.exists() and jar.stat().st_size:
        raise FileExistsError(f"{jar}: MineStudio's own engine is there; take another folder")
    for file in (jar, program):
        file.parent.mkdir(parents=True, exist_ok=True)
    jar.touch()
    root = Path(__file__).parents[2]
    command = [python or sys.executable, "-m", "bridges.minestudio.engine"]
    # The arguments are those of xvfb-run and java; the last is --envPort=PORT.
    program.write_text(
        "#!/bin/sh\n"
        "for last; do :; done\n"
        f"unset PYTHONHOME VIRTUAL_ENV\nexport PYTHONPATH={shlex.quote(str(root))}\n"
        f'exec {shlex.join(command)} "$last"\n'
    )
    program.chmod(0o755)
    return {"MINESTUDIO_DIR": str(folder), "PATH_FIRST": str(program.parent)}


def main() -> None:
    """Installs the engine and writes the environment as commands of a shell."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: python -m bridges.minestudio.install FOLDER")
    found = install(Path(sys.argv[1]))
    sys.stdout.write(
        f"export MINESTUDIO_DIR={shlex.quote(found['MINESTUDIO_DIR'])}\n"
        f"export PATH={shlex.quote(found['PATH_FIRST'])}:$PATH\n"
    )


if __name__ == "__main__":
    main()
