"""A store with the protocol of S3 in a process of its own, which can be cut off and restarted.

The process needs moto, and its clients s3fs; both may be in another environment, whose packages
``packages`` finds after those of this one::

    uv venv s3 && uv pip install -p s3 s3fs 'moto[s3]' flask flask-cors
    S3_PACKAGES=$(echo s3/lib/python*/site-packages) python -m benchmarks.faults ...
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

_PACKAGES = "S3_PACKAGES"
_CUT, _RESTORE = signal.SIGUSR1, signal.SIGUSR2
_KEYS = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def packages() -> str:
    """Makes the packages of ``S3_PACKAGES`` importable here, and returns their folder."""
    folder = os.environ.get(_PACKAGES, "")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    return folder


class StoreServer(AbstractContextManager["StoreServer"]):
    """The store, with one bucket, ``bucket``.

    Args:
        folder: for a file that makes the packages importable in other processes.

    Attributes:
        env: environment variables with which other processes reach it.
    """

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a line for each request
            text=True,
        )
        url = self._said()
        customize = folder / "customize"
        customize.mkdir(exist_ok=True)
        line = f"import sys\nsys.path.append({packages()!r})\n"
        (customize / "sitecustomize.py").write_text(line)
        self.env: Mapping[str, str] = {
            **_KEYS,
            "AWS_ENDPOINT_URL": url,
            "PYTHONPATH": str(customize),
        }
        # Instances are kept by their arguments, and the address of this store is none of them.
        type(self.system).clear_instance_cache()
        self.system.mkdir("bucket")

    @property
    def system(self) -> Any:
        """The file system of the store, for this process."""
        packages()
        os.environ.update({k: v for k, v in self.env.items() if k != "PYTHONPATH"})
        import s3fs

        return s3fs.S3FileSystem(use_listings_cache=False)

    def cut(self) -> None:
        """Cuts the store off; what is in it stays."""
        self._process.send_signal(_CUT)
        self._said()

    def restore(self) -> None:
        """Lets the store answer again."""
        self._process.send_signal(_RESTORE)
        self._said()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _said(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the store has ended; is moto in {_PACKAGES}={packages()}?")
        return line


def serve() -> None:
    """Serves until it is killed; signals cut it off and let it answer again."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {_CUT, _RESTORE})  # before threads begin
    packages()
    from moto.server import ThreadedMotoServer

    port = 0
    while True:
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        print(f"http://{host}:{port}", flush=True)
        signal.sigwait({_CUT})
        server.stop()
        print("cut", flush=True)
        signal.sigwait({_RESTORE})


if __name__ == "__main__":
    serve()
