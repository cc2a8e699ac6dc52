"""Run by an environment with MineStudio's wheel: converts raw recordings with its own writer.

The wheel needs torch, lightning and more for other parts of it; of these only the names are there.
"""

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

ABSENT = ("torch", "ray", "albumentations", "einops", "gym", "gym3", "tree", "lightning")


class Named(types.ModuleType):
    """A module that has every name; each is a class that takes anything."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (MagicMock,), {}))
        return getattr(self, name)


class Finder:
    """Finds the libraries that are not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Named(spec.name)

    def exec_module(self, module):
        if module.__name__ == "ray":
            module.remote = lambda **_: lambda actor: actor  # writers run in this process


sys.meta_path.insert(0, Finder())
HERE = Path(importlib.util.find_spec("minestudio").origin).parent
for name in ("minestudio", "minestudio.data", "minestudio.data.minecraft"):
    package = types.ModuleType(name)
    package.__path__ = [str(HERE.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package

from minestudio.data.minecraft.callbacks import (  # noqa: E402
    ActionConvertCallback,
    ImageConvertCallback,
    MetaInfoConvertCallback,
)
from minestudio.data.minecraft.tools.convertion import ConvertWorker  # noqa: E402


def main(raw, out):
    for modality, kind in (
        ("action", ActionConvertCallback),
        ("image", ImageConvertCallback),
        ("meta_info", MetaInfoConvertCallback),
    ):
        about = {"input_dirs": [f"{raw}/{modality}"], "chunk_size": 32}
        if kind is ActionConvertCallback:  # whose own __init__ fails in 1.1.6
            kernel = kind.__new__(kind)
            vars(kernel).update(about)
        else:
            kernel = kind(**about)
        worker = ConvertWorker(
            write_path=f"{out}/{modality}/part-1",
            convert_kernel=kernel,
            tasks=kernel.load_episodes(),
            chunk_size=32,
            remote_tqdm=MagicMock(),
        )
        worker.run()
        worker.lmdb_handler.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
