"""Questions to a model in its roles: prompts of each role, and replies as records."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import TemplateError
from pydantic import BaseModel, ConfigDict, ValidationError

from policies.companion.schemas import Record, describe_error, read_reply
from policies.vlm.conversing import sampling_fields, with_verdict
from policies.vlm.options import ModelOptions
from policies.vlm.prompt import check_template, compile_templates, load_prompt, render_template
from rollout.api import BridgeSpec, Call
from rollout.errors import ConfigError
from rollout.models.chat_api import incomplete_reason
from rollout.models.client import Request
from rollout.yaml12 import load_yaml

FOLDER = Path(__file__).with_name("prompts")
_SHARED = "programs"  # the game's prompt, whose parts say what programs may call
_R = TypeVar("_R", bound=Record)


class RolePrompts(BaseModel):
    """What a model is told in each role.

    Attributes:
        system: template of the first message, of all roles.
        unusable: template of the message after an answer that could not be used.
        roles: template of the question, by role.
        parts: templates that the others include.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str
    unusable: str
    roles: Mapping[str, str]
    parts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Identifies the prompts by their content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def render(self, role: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns the messages that ask for a role.

        Raises:
            ConfigError: a template fails with these values.
        """
        system = render_template(self.system, "system", values, self.parts)
        question = render_template(self.roles[role], role, values, self.parts)
        return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def load_roles(
    file: Path, spec: BridgeSpec, roles: Iterable[str] = (), known: Iterable[str] | None = None
) -> RolePrompts:
    """Returns the prompts in a file, with the parts of the game's prompt ``programs``.

    Args:
        file: YAML file.
        spec: the game.
        roles: the roles that the file must have.
        known: the variables of the templates; None to check none.

    Raises:
        ConfigError: the game has no such prompt, or the file is no such prompt.
    """
    try:
        shared = load_prompt(_SHARED, spec.tasks).parts
    except LookupError as error:
        raise ConfigError(
            f"{spec.name} has no prompt {_SHARED!r} that says what programs may call; companions "
            f"play games that do, as mineflayer with bridge.actions=code"
        ) from error
    data = load_yaml(file)
    if not isinstance(data, dict):
        raise ConfigError(f"the prompts {file}: expected keys, got {type(data).__name__}")
    try:
        found = RolePrompts(**{**data, "parts": {**shared, **(data.get("parts") or {})}})
    except ValidationError as error:
        raise ConfigError(f"the prompts {file}: {describe_error(error)}") from error
    for role in roles:
        if role not in found.roles:
            raise ConfigError(f"the prompts {file}: no role {role!r}; needed: {', '.join(roles)}")
    texts = {"system": found.system, "unusable": found.unusable, **found.roles, **found.parts}
    if known is not None:
        for name, text in texts.items():
            check_template(file, name, text, found.parts, known)
    try:
        compile_templates(texts.values(), found.parts)
    except TemplateError as error:
        raise ConfigError(f"the prompts {file}: {error}") from error
    return found


class RoleClient:
    """Asks a model in its roles.

    Args:
        options: sampling and limits.
        prompts: what it is told.
        reparse: times an unusable answer is asked for again.
    """

    def __init__(self, options: ModelOptions, prompts: RolePrompts, reparse: int) -> None:
        self._options, self._prompts, self._reparse = options, prompts, reparse
        self._digest = prompts.digest

    def ask(
        self,
        role: str,
        kind: type[_R],
        values: Mapping[str, Any],
        *,
        step: int,
        identity: list[Any],
        explore: bool,
        calls: list[Call],
    ) -> Generator[Request, Call, tuple[_R | None, str]]:
        """Asks until an answer is a record or no tries are left.

        Args:
            role: the role.
            kind: the record that is expected.
            values: the variables of the templates.
            step: number of the step.
            identity: of the request: the seed of the episode and the number of its call.
            explore: whether the answer is sampled.
            calls: the calls are added to these, with their verdicts.

        Returns:
            the record, or None with the problem of the last answer.
        """
        messages, problem = self._prompts.render(role, values), ""
        for number in range(self._reparse + 1):
            named = [*identity, role, number]
            fields = sampling_fields(self._options.sampling, named, explore)
            reply = yield Request(fields, messages, {}, "", named)
            call = replace(reply, role=role, step=step, number=number, prompt=self._digest, seen="")
            code, problem = incomplete_reason(call.finish)
            if not code:
                try:
                    record = read_reply(kind, call.answer)
                    calls.append(with_verdict(call, "ok", "", {}, role))
                    return record, ""
                except ValueError as error:
                    code, problem = "malformed", str(error)[:600]
            calls.append(with_verdict(call, code, problem, {}))
            told = {**values, "problem": problem}
            again = render_template(self._prompts.unusable, "unusable", told, self._prompts.parts)
            messages = [
                *messages,
                {"role": "assistant", "content": call.answer or "(nothing)"},
                {"role": "user", "content": again},
            ]
        return None, problem
