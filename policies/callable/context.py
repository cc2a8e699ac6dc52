"""What a function of one game gets: an observation, and the context of its step."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import MASK, Array, BridgeSpec, Columns, Details, pixels
from rollout.api.bridge import PRIVILEGED
from rollout.errors import ConfigError
from rollout.models.observations import is_shown_picture, observation_values, picture_file

_MOST_KEPT = 4096  # memories of episodes whose hosts are in other processes


@dataclass(frozen=True)
class Picture:
    """A picture that is observed.

    Attributes:
        array: its pixels, ``(H, W, 3)`` or ``(H, W, 1)`` uint8.
    """

    array: Array
    _leaf: spaces.Space[Any]

    @cached_property
    def png(self) -> bytes:
        """Its file, PNG."""
        return picture_file(self._leaf, self.array)

    @property
    def url(self) -> str:
        """Its file as a ``data:`` URL, as messages to models have pictures."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


@dataclass(frozen=True)
class Observation:
    """What an agent observes in a step; copies, which may be kept and changed.

    Attributes:
        text: the texts of the game; if it has none, its small columns, a line for each.
        values: columns of at most 64 numbers, and texts, as plain values.
        pictures: pictures by column.
        columns: all columns as arrays.
        details: data of the game without a fixed shape.
    """

    text: str
    values: Mapping[str, Any]
    pictures: Mapping[str, Picture]
    columns: Mapping[str, Array]
    details: Details


def observe(spec: BridgeSpec, observations: Columns, row: int, details: Details) -> Observation:
    """Returns a row of observations for an agent."""
    shown = observation_values(spec, observations, row, details)
    values: dict[str, Any] = shown["observation"]
    leaves = {k: s for k, s in spec.observation_space.items() if not k.startswith(PRIVILEGED)}
    columns = {key: np.array(observations[key][row]) for key in leaves}
    pictures = {
        key: Picture(np.asarray(pixels(leaf, columns[key])), leaf)
        for key, leaf in leaves.items()
        if is_shown_picture(leaf)
    }
    lines = [f"{key}: {value}" for key, value in values.items() if not key.startswith(MASK)]
    return Observation(shown["text"] or "\n".join(lines), values, pictures, columns, details)


@dataclass(frozen=True)
class Left:
    """What is left to spend; None where there is no limit.

    Attributes:
        steps: steps of the episode, this one included.
        calls: calls of the model, in the episode and the run.
        usd: US dollars of the run.
    """

    steps: int | None
    calls: int | None
    usd: float | None


class Clients:
    """OpenAI's clients of the gateway; all games share their connections."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, kind: str) -> Any:
        """Returns a client; that of an episode has its base URL and key.

        Args:
            kind: empty, or ``Async`` for coroutines.

        Raises:
            ConfigError: the package is not installed.
        """
        with self._lock:
            if kind not in self._made:
                openai = _openai()
                # Proxies of the environment are for other machines.
                http = getattr(openai, f"Default{kind}HttpxClient")(trust_env=False)
                self._made[kind] = getattr(openai, f"{kind}OpenAI")(
                    api_key="-", base_url="http://-", max_retries=0, http_client=http
                )
            return self._made[kind]

    def close(self) -> None:
        """Closes the connections of the plain client."""
        if "" in self._made:
            self._made[""].close()

    async def close_async(self) -> None:
        """Closes the connections of the other; in the event loop that has used them."""
        if "Async" in self._made:
            await self._made["Async"].close()


def _openai() -> Any:
    try:
        import openai  # noqa: PLC0415 - not a dependency
    except ModuleNotFoundError as error:
        raise ConfigError(
            "context.client needs OpenAI's package: pip install openai; or use any client with "
            "context.base_url"
        ) from error
    return openai


@dataclass(frozen=True)
class Context:
    """The context of a step.

    Attributes:
        goal: the instruction of the task.
        actions: all actions in words.
        schema: JSON schema of an action.
        legal: legal actions in words; empty if all are.
        step: number of the step in its episode, from 0.
        episode: number of the episode.
        seed: of the episode.
        explore: whether answers are sampled; the most probable ones are wanted if not.
        left: what is left to spend.
        memory: a dictionary of the episode, for anything; empty at its first step.
        problem: why the last answer could not be used; empty if it was.
        model: name of the model of the run; empty without one.
        base_url: its base URL, for any client of OpenAI's API; empty without a model.
        api_key: the key of the episode, for clients that want one.
    """

    goal: str
    actions: str
    schema: Mapping[str, Any]
    legal: str
    step: int
    episode: int
    seed: int
    explore: bool
    left: Left
    memory: dict[str, Any]
    problem: str
    model: str
    base_url: str
    api_key: str
    _clients: Clients

    @property
    def client(self) -> Any:
        """An ``openai.OpenAI`` that asks the model of the run.

        Raises:
            ConfigError: the run has no model, or the package is not installed.
        """
        return self._with_key("")

    @property
    def async_client(self) -> Any:
        """An ``openai.AsyncOpenAI`` that asks the model of the run; raises as ``client``."""
        return self._with_key("Async")

    def _with_key(self, kind: str) -> Any:
        if not self.base_url:
            raise ConfigError(
                "context.client: the run has no model; name one in policy.endpoint.url and "
                "policy.model, or in policy.local.model"
            )
        client = self._clients.get(kind)
        return client.with_options(base_url=self.base_url, api_key=self.api_key)


class Memory:
    """The memory of an episode, which stays in the process in which its agent decides.

    Hosts in other processes get its key only, so it may contain anything, such as clients.

    Attributes:
        key: of the episode.
        values: the memory; None in other processes, and after the death of its own.
    """

    def __init__(self, key: str, values: dict[str, Any] | None) -> None:
        self.key, self.values = key, values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and self.values == other.values

    __hash__ = None  # type: ignore[assignment] # it changes

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        if self.values is not None:
            with _lock:
                _kept[self.key] = self
                _kept.move_to_end(self.key)
                while len(_kept) > _MOST_KEPT:
                    _kept.popitem(last=False)
        return _find, (self.key,)


_kept: OrderedDict[str, Memory] = OrderedDict()
_lock = threading.Lock()


def _find(key: str) -> Memory:
    with _lock:
        return _kept.get(key) or Memory(key, None)
