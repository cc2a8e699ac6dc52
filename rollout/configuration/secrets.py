"""Refuses secrets in configurations, which would be written to files; never shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rollout.configuration.problems import KeyPath, dotted
from rollout.errors import ConfigError

_USER = re.compile(r"(?<=://)[^/?#\s@]*(?:@[^/?#\s@]*)*@")
_IN_QUERY = re.compile(
    r"(?<=[?&])(?:(?:subscription-|api[-_]?)?key|access_token|token|sig|signature|secret|password)="
    r"[^&#\s]+",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r"\b(?:sk-[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|hf_\w{20,}|"
    r"(?:xai|gsk|nvapi|pplx)[-_][\w-]{20,}|AKIA[A-Z0-9]{16})"
)
_FREE = ("extra", "headers")  # mappings whose names and values are the user's
_NAMED = re.compile(
    r"(?:.*[-_.])?(?:apikey|key|token|auth|authorization|cookie|secret|password|passwd|credentials?)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r".*cache[-_]?key|(?:pad|eos|bos|stop|unk|image|start|end)_token", re.IGNORECASE
)
_REFERENCE = re.compile(r"(?:\w+ )?\$\w+")


def refuse_secrets(data: Mapping[str, Any]) -> None:
    """Checks that plain data of a configuration holds no passwords or keys.

    Raises:
        ConfigError: it does; the message names the configuration keys and never the secrets.
    """
    found = [f"{dotted(path)} holds {what}" for path, what in _secrets(data)]
    if found:
        raise ConfigError(
            f"{'; '.join(found)}, which would be written to the files of the run. Export it in an "
            f"environment variable, and name that: endpoint.key_env=NAME, or in endpoint.headers, "
            f"e.g. {{api-key: $NAME}}"
        )


def hidden(text: str) -> str:
    """Returns a text with ``***`` in place of passwords and keys that have a known form."""
    for pattern in (_USER, _IN_QUERY, _KEYS):
        text = pattern.sub("***@" if pattern is _USER else "***", text)
    return text


def _secrets(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _secrets(each, (*path, name))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _secrets(each, (*path, number))
    elif isinstance(value, str) and (what := _kind(value, path)):
        yield path, what


def _kind(value: str, path: KeyPath) -> str:
    """Returns the kind of secret that a text is; empty for none."""
    if not value or _REFERENCE.fullmatch(value):
        return ""
    if _USER.search(value):
        return "a URL with a user or a password"
    if "://" in value and _IN_QUERY.search(value):
        return "a URL with a key in its query"
    if _KEYS.search(value):
        return "a key"
    name = str(path[-1]) if path else ""
    free = any(part in _FREE for part in path[:-1])
    named = _NAMED.fullmatch(name) and not _NO_SECRET.fullmatch(name)
    return "a key or a password" if free and named else ""
