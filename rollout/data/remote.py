"""Datasets at an address of fsspec, e.g. ``s3://bucket/name``: files are fetched when read."""

from __future__ import annotations

import logging
import re
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

from rollout.data.layout import Layout, numbers_in
from rollout.data.shard import Seal
from rollout.errors import DatasetError
from rollout.files import replacing

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*(::[a-z][a-z0-9+.-]*)*://")
_MOST_SHARDS = 32  # whose files are kept
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
_LIBRARIES = ("aiobotocore", "boto3", "botocore", "fsspec", "gcsfs", "google", "s3fs", "urllib3")
_MEANINGS = (
    (
        "NoCredential|Unable to locate credentials|DefaultCredentialsError|Anonymous caller",
        "there are no credentials: export those of the store in the environment, e.g. "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or "
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    (
        "PermissionError|Forbidden|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch",
        "the store refuses the credentials of the environment",
    ),
    ("NoSuchBucket|bucket does not exist", "there is no such bucket; make it, or name another"),
    (
        "Endpoint|Connect|Timeout|refused|unreachable|getaddrinfo",
        "the store does not answer; check the network and, if it is not the usual one, "
        "AWS_ENDPOINT_URL",
    ),
)
"""Patterns of errors of libraries of stores, each with what it means."""


def is_address(path: Path | str) -> bool:
    """Returns True for an address of fsspec, and False for a path of this machine."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def open_system(address: str) -> tuple[Any, str]:
    """Returns the file system of an address, and the path in it.

    Raises:
        DatasetError: there is no such kind of address, or its library is not installed.
    """
    import fsspec  # noqa: PLC0415 - few need it

    kind = address.partition("://")[0]
    for name in _LIBRARIES:  # which log the headers of requests at the level debug
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        system, base = fsspec.core.url_to_fs(address)
    except ImportError as error:
        extra = _EXTRAS.get(kind)
        how = f"; run: pip install 'gamut[{extra}]'" if extra else ""
        raise DatasetError(f"cannot open {address}: {error}{how}") from error
    except ValueError as error:
        raise DatasetError(f"cannot open {address}: {error}") from error
    except Exception as error:  # libraries of stores raise errors of their own, of every kind
        raise DatasetError(f"cannot open {address}: {explained(error)}") from error
    return system, str(base).rstrip("/")


def explained(error: BaseException) -> str:
    """Returns what an error of a store means, in words, and what to do."""
    name, text = type(error).__name__, " ".join(str(error).split())
    for pattern, said in _MEANINGS:
        if re.search(pattern, f"{name}: {text}"):
            return f"{said} ({name}: {text})" if text else f"{said} ({name})"
    return repr(error)


class RemoteLayout(Layout):
    """The files of a dataset at an address, at the time when it was opened.

    The description, the index and the seals are fetched at once into a temporary folder, and a
    shard when it is read; it is compared with its seal. Journals are not looked for.

    Args:
        address: the dataset, or its run directory.

    Raises:
        DatasetError: there is no dataset, or it cannot be read.
    """

    def __init__(self, address: str) -> None:
        self._address, self._fetched = address, OrderedDict[int, None]()
        self._system, base = open_system(address)
        self._folder = tempfile.TemporaryDirectory(prefix="gamut-dataset-")
        super().__init__(Path(self._folder.name))
        try:
            found = [base, f"{base}/dataset"]
            self._base = next((b for b in found if self._exists(f"{b}/dataset.json")), base)
            self.create()
            self._shards = self._listed()
            self._get(self.manifest)
            for folder in ("episodes", "seals"):
                for number in self._shards[folder]:
                    self._get(self.file(folder, number))
        except BaseException:
            self.close()
            raise

    def numbers(self, folder: str) -> list[int]:
        """Returns the numbers of the files in a folder, ascending."""
        return self._shards[folder]

    def fetch(self, number: int) -> None:
        """Fetches a data shard, unless it is here.

        Raises:
            DatasetError: it cannot be read, or is not the one that was sealed.
        """
        path = self.data(number)
        if number not in self._fetched:
            self._get(path)
            seal = Seal.read(self.seal(number)) if self.seal(number).exists() else None
            if seal is not None and not seal.fits(path):
                path.unlink()
                raise DatasetError(f"{self._place(path)} is damaged: it does not match its seal")
        self._fetched[number] = None
        self._fetched.move_to_end(number)
        if len(self._fetched) > _MOST_SHARDS:
            self.data(self._fetched.popitem(last=False)[0]).unlink()

    def close(self) -> None:
        """Removes the temporary folder. Idempotent."""
        self._folder.cleanup()

    def _listed(self) -> dict[str, list[int]]:
        """The numbers of the shards by folder, of the files that are there now."""
        shards: dict[str, list[int]] = {name: [] for name in self.folders}
        try:
            self._system.invalidate_cache()
            for folder in ("data", "seals", "episodes"):
                found = self._system.find(f"{self._base}/{folder}")
                shards[folder] = numbers_in(str(p).rpartition("/")[2] for p in found)
        except Exception as error:  # libraries of stores raise errors of their own, of every kind
            raise DatasetError(f"cannot list {self._address}: {explained(error)}") from error
        # What was added after the shards were listed belongs to a later time.
        return {name: [n for n in found if n in shards["data"]] for name, found in shards.items()}

    def _exists(self, place: str) -> bool:
        try:
            return bool(self._system.exists(place))
        except Exception as error:
            raise DatasetError(f"cannot read {self._address}: {explained(error)}") from error

    def _get(self, path: Path) -> None:
        try:
            with replacing(path, fsync=False) as new:
                self._system.get_file(self._place(path), str(new))
        except FileNotFoundError as error:
            raise DatasetError(
                f"{self._address} holds no dataset, or not all of it: there is no {self.name(path)}"
            ) from error
        except Exception as error:
            raise DatasetError(f"cannot read {self._place(path)}: {error!r}") from error

    def _place(self, path: Path) -> str:
        return f"{self._base}/{path.relative_to(self.root).as_posix()}"
