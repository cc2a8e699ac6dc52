"""Groups of options shared by policies and judges that use models."""

from __future__ import annotations

import math
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

REFERENCE = re.compile(r"(\w+ )?\$(\w+)")
"""A value that names an environment variable: ``$NAME``, or ``Bearer $NAME``."""


class OptionGroup(BaseModel):
    """A group of options."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Endpoint(OptionGroup):
    """An endpoint of the chat API of OpenAI, which most servers of models offer."""

    url: str = Field(
        "", description="base URL, e.g. http://127.0.0.1:8000/v1; a query goes with each request"
    )
    key_env: str = Field("", description="environment variable of the key; empty for no key")
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="further headers; $NAME is the environment variable NAME, e.g. api-key: $KEY",
    )
    images: bool = Field(True, description="whether the model takes images")
    calls: int = Field(64, ge=1, description="most requests at once; fewer after status 429")
    timeout_s: float = Field(
        120.0, gt=0, description="seconds for one try, until its response is complete"
    )
    deadline_s: float = Field(
        240.0, gt=0, description="seconds for a call with all its retries, below host.policy_s"
    )
    logprobs: bool = Field(False, description="whether to ask for log-probabilities of tokens")
    extra: dict[str, object] = Field(
        default_factory=dict,
        description="fields of each request, e.g. reasoning_effort; null leaves a field out",
    )

    @field_validator("extra")
    @classmethod
    def _is_no_prompt(cls, extra: dict[str, object]) -> dict[str, object]:
        if "messages" in extra:
            raise ValueError("messages are what the prompt makes; leave them out")
        return extra


class Lora(OptionGroup):
    """A LoRA adapter to all linear layers of a model."""

    rank: int = Field(16, ge=1, description="its rank")
    alpha: int = Field(32, ge=1, description="the adapter counts alpha / rank")


class Local(OptionGroup):
    """A model that transformers runs in the processes that decide."""

    model: str = Field(
        "", description="folder of a model, a run that trained one, or a name on the Hub"
    )
    device: str = Field("auto", description="auto (a GPU if there is one), cpu, cuda, cuda:1, ...")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="type of its weights; auto for that of the folder"
    )
    batch: int = Field(64, ge=1, description="most answers that are generated at once")
    lora: Lora | None = Field(
        None, description="a new adapter to train; null trains all weights, or the model's adapter"
    )


class Sampling(OptionGroup):
    """Sampling of answers."""

    temperature: float = Field(1.0, ge=0, description="0 where the most probable action is played")
    max_tokens: int = Field(1024, ge=1, description="tokens of an answer")
    seed: bool = Field(False, description="whether to send a seed, derived from episode and step")


class Examples(OptionGroup):
    """Recorded episodes of the same task that are shown before the one to play."""

    dataset: str = Field("", description="a dataset, or a run that recorded one; empty for none")
    count: int = Field(2, ge=1, description="episodes: those whose states share most factors")
    steps: int = Field(4, ge=1, description="first steps of each")
    only: Literal["success", "all"] = Field("success", description="which episodes may be chosen")


class RunLimits(OptionGroup):
    """Limits that pause a run; null for no limit."""

    calls: int | None = Field(None, ge=1, description="calls of the run")
    tokens: int | None = Field(None, ge=1, description="tokens of the run, prompts and answers")
    usd: float | None = Field(None, gt=0, description="price of the run in US dollars")

    @property
    def of_run(self) -> tuple[float, float, float]:
        """Maximum calls, tokens and dollars of a run."""
        wanted = (self.calls, self.tokens, self.usd)
        calls, tokens, usd = (math.inf if w is None else float(w) for w in wanted)
        return calls, tokens, usd
