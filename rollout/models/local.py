"""Models that transformers runs in this process: requests are answered in batches."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from rollout.api import Array, Call
from rollout.errors import ConfigError
from rollout.models.client import ModelClient, Request
from rollout.models.sections import Local

CONFIG, ADAPTER = "config.json", "adapter_config.json"
EXPORT = "model"
"""Folder of a run in which a training leaves its model in the form of transformers or PEFT."""


@dataclass(eq=False)
class _Asked:
    """A request that waits for its turn."""

    request: Request
    call: Call | None = None


class LocalModel:
    """A language or vision-language model in this process.

    The random seed of an answer is a hash of the request (episode, step, try): it does not depend
    on the other requests of its batch. torch and transformers are loaded at the first use.

    Args:
        options: which model, and where it runs.
        images: whether requests have pictures.

    Attributes:
        calls: 1; requests of several rows are answered together.
        version: of the weights.

    Raises:
        ConfigError: the folder is missing, the packages are not installed, or the model takes no
            pictures.
    """

    calls = 1

    def __init__(self, options: Local, *, images: bool = False) -> None:
        self.options, self.version = options, 0
        self._busy = 0  # requests that are being answered
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._waiting: list[_Asked] = []
        try:
            from rollout.models.transformer import Transformer  # noqa: PLC0415 - slow to import
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"local.model={options.model} needs the package {error.name}; install Gamut with "
                f"its extra vlm: pip install 'gamut[vlm]'"
            ) from error
        self.transformer = Transformer.of(options, folder_of(options.model))
        if images and not self.transformer.takes_images:
            raise ConfigError(
                f"local.model={options.model} takes no pictures; set history.images=0, or name a "
                f"vision-language model"
            )

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights that a training changes.

        Raises:
            ConfigError: they belong to another model.
        """
        with self._lock:
            self.transformer.load(weights)
            self.version = version

    def figures(self) -> dict[str, float]:
        """Returns the number of requests that are being answered, for metrics."""
        return {"models/in_flight": float(self._busy)}

    def ask(self, request: Request) -> Call:
        """Returns the call of one request; what other threads ask meanwhile is answered together.

        It raises what ``answer`` raises, where a request of the batch may be the cause.
        """
        asked = _Asked(request)
        self._waiting.append(asked)
        with self._turn:
            if asked.call is None:
                batch = [asked]  # with what has the same fields
                for each in self._waiting.copy():
                    if each is asked or each.request.fields == request.fields:
                        self._waiting.remove(each)
                        batch += [each] if each is not asked else []
                calls = self.answer([each.request for each in batch])
                for each, call in zip(batch, calls, strict=True):
                    each.call = call
        assert asked.call is not None
        return asked.call

    def answer(self, requests: Sequence[Request]) -> list[Call]:
        """Returns the calls with their replies.

        They have ``prompt_ids``, ``output_ids`` with the token that ends the answer, and
        ``output_logprobs``, the log-probabilities of the distribution that was sampled: that of
        ``temperature``, without tokens of pictures.
        """
        found: list[Call] = []
        for at in range(0, len(requests), self.options.batch):
            part = requests[at : at + self.options.batch]
            with self._lock:
                self._busy = len(part)
                found += self._answer(part)
                self._busy = 0
        return found

    def _answer(self, requests: Sequence[Request]) -> list[Call]:
        started = time.time()
        began = time.monotonic()
        prompts = [(r.messages, pictures_of(r)) for r in requests]
        first = requests[0].fields
        generated = self.transformer.generate(
            prompts,
            seeds=[_seed(request.identity) for request in requests],
            temperature=float(first["temperature"]),
            max_tokens=int(first["max_tokens"]),
        )
        seconds = round(time.monotonic() - began, 4)
        return [
            Call(
                started=started,
                seconds=seconds,
                asked=self.options.model,
                reported=self.options.model,
                answer=each.text,
                finish=each.finish,
                prompt_ids=each.prompt_ids,
                output_ids=each.output_ids,
                output_logprobs=each.logprobs,
                input_tokens=len(each.prompt_ids),
                output_tokens=len(each.output_ids),
                usd=0.0,
                earlier=False,
                version=self.version,
                temperature=request.fields["temperature"],
                messages=list(request.messages),
            )
            for request, each in zip(requests, generated, strict=True)
        ]


class PlaysLocalModel:
    """The weights of a policy whose model may be local; see ``rollout.api.Trainable``."""

    _model: ModelClient | LocalModel | None

    @property
    def version(self) -> int:
        """Version of the weights of a local model; 0 for models elsewhere."""
        return self._model.version if isinstance(self._model, LocalModel) else 0

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights that a training changes; see ``rollout.api.Trainable``.

        Raises:
            ConfigError: the model is not a local one, or the weights belong to another.
        """
        if not isinstance(self._model, LocalModel):
            raise ConfigError("a model at an endpoint takes no weights; name one in local.model")
        self._model.load(weights, version)

    def figures(self) -> Mapping[str, float]:
        """Returns calls in flight, what was spent and the limits; see ``rollout.api.Reporting``."""
        return {} if self._model is None else self._model.figures()


def folder_of(model: str) -> str:
    """Returns the folder of a model: of a run that trained one, the model that it left.

    Raises:
        ConfigError: it is a path, and there is no model.
    """
    path = Path(model).expanduser()
    for folder in (path, path / EXPORT):
        if (folder / CONFIG).is_file() or (folder / ADAPTER).is_file():
            return str(folder)
    if path.exists() or model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ConfigError(
            f"local.model={model}: expected a folder with {CONFIG} or {ADAPTER}, or a run that "
            f"trained a model; there is none"
        )
    return model


def pictures_of(request: Request) -> list[Array]:
    """Returns the pictures of a request in the order of its messages, ``(H, W, 3)`` uint8 RGB."""
    parts = [
        part
        for message in request.messages
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    return [decoded(request.images[p["digest"]]) for p in parts if p["type"] == "image"]


def decoded(file: bytes) -> Array:
    """Returns the picture of a file, ``(H, W, 3)`` uint8 RGB."""
    image: Any = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR_RGB)
    return np.asarray(image)


def _seed(identity: Sequence[Any]) -> int:
    text = json.dumps(list(identity)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
