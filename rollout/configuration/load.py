"""From files and ``--set`` to models, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rollout.configuration import document
from rollout.configuration.document import Document
from rollout.configuration.explain import valid_keys
from rollout.configuration.problems import KeyPath, Problem, explain, joined, problems_of
from rollout.configuration.sections import ordered_keys
from rollout.errors import ConfigError
from rollout.files import remote, write_atomically
from rollout.yaml12 import dump_yaml

M = TypeVar("M", bound=BaseModel)


def load_config(
    model: type[M], path: Path | str | None, overrides: Iterable[tuple[str, Any]] = ()
) -> M:
    """Returns the configuration in a file.

    Args:
        model: what it must be.
        path: a YAML file; None when the overrides say everything.
        overrides: keys and values in the sense of ``parse_set``; later ones win.

    Raises:
        ConfigError: there is no such file, it is not YAML, or a key or a value is wrong. The
            message says all that is wrong, with file, line and dotted key.
    """
    source = Document({}) if path is None else document.read(Path(path).expanduser())
    return from_document(model, source.override(overrides))


def make_config(model: type[M], data: Mapping[str, Any], *, source: str = "") -> M:
    """Returns the configuration that plain data describes.

    Args:
        model: what it must be.
        data: nested mappings, as a YAML file would hold them.
        source: where they came from, for messages.

    Raises:
        ConfigError: a key or a value is wrong.
    """
    return from_document(model, Document(dict(data), source))


def from_document(model: type[M], source: Document) -> M:
    """Returns the configuration that a YAML document describes, or raises like ``load_config``."""
    elsewhere = [
        Problem(path, said)
        for path, text in _texts(source.data)
        if not text.lower().startswith("http") and (said := remote(text))  # which servers have
    ]
    if elsewhere:  # under any key: those of plug-ins do not say which of them are paths
        raise _wrong(source, elsewhere)
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        valid = valid_keys(model, source.data)
        raise _wrong(source, problems_of(error, source.data), valid) from error


def _wrong(source: Document, problems: Sequence[Problem], valid: Sequence[str] = ()) -> ConfigError:
    texts = [(source.place(each.path), explain(each, valid)) for each in problems]
    return ConfigError(joined(": ".join(filter(None, text)) for text in texts))


def _texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """All texts in plain data, each with its place."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping | list | tuple):
        parts = data.items() if isinstance(data, Mapping) else enumerate(data)
        for key, value in parts:
            yield from _texts(value, (*path, key))


def resolved(config: BaseModel) -> dict[str, Any]:
    """Returns a configuration as plain data, every default and option spelled out."""
    values = config.model_dump(mode="json")
    ordered = {name: values.pop(name) for name in ordered_keys(type(config)) if name in values}
    return {**ordered, **values}


def write_config(config: BaseModel, path: Path) -> None:
    """Writes a configuration with every default spelled out; loading it gives an equal one.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    head = "# Every key of the run, defaults spelled out. Runs again with --config THIS_FILE.\n"
    write_atomically(path, head + dump_yaml(resolved(config)))
