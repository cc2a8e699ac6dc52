"""The fields of a request as the provider of a model wants them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from rollout.models.sections import Endpoint, Options
from rollout.yaml12 import load_yaml

_FILE = Path(__file__).with_name("providers.yaml")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


class Provider(Options):
    """An entry of ``providers.yaml``, which explains the keys."""

    hosts: list[str]
    models: str = ""
    fields_: dict[str, str | None] = Field(default_factory=dict, alias="fields")
    set_: dict[str, Any] = Field(default_factory=dict, alias="set")

    def fits(self, host: str, model: str) -> bool:
        """Returns whether it holds for a model at a host."""
        there = any(host == each or host.endswith(f".{each}") for each in self.hosts)
        return there and re.match(self.models, model.rpartition("/")[2]) is not None


def sent_fields(endpoint: Endpoint, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a request as they are sent to an endpoint.

    Args:
        endpoint: where they are sent; its ``extra`` counts before what is known of providers.
        fields: the fields, among them ``model``.
    """
    sent = dict(fields)
    host = urlsplit(endpoint.url).hostname or ""
    for provider in _providers():
        if not provider.fits(host, str(fields["model"])):
            continue
        for name, other in provider.fields_.items():
            value = sent.pop(name, None)
            if other is not None and value is not None:
                sent[other] = value
        sent |= provider.set_
    sent |= endpoint.extra
    return {name: value for name, value in sent.items() if value is not None}


def most_tokens(sent: Mapping[str, Any], default: int) -> int:
    """Returns how many tokens an answer has at most, by the fields that are sent."""
    found = [sent[name] for name in _LIMITS if isinstance(sent.get(name), int)]
    return max(found, default=default)


@functools.cache
def _providers() -> list[Provider]:
    return [Provider(**each) for each in load_yaml(_FILE, ours=True)]
