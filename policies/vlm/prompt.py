"""Prompts: YAML files of Jinja templates, which run in a sandbox."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from jinja2 import DictLoader, Environment, TemplateError, meta
from jinja2 import Template as Compiled
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from rollout.errors import ConfigError, UnknownNameError, nearest
from rollout.yaml12 import load_yaml

Template: TypeAlias = Literal["system", "observation", "unusable", "example", "reflect"]
TEMPLATES: tuple[Template, ...] = get_args(Template)
PACKAGED = Path(__file__).with_name("prompts")
VARIABLES = {
    "task": "name of the task",
    "goal": "the goal of the episode: `mission` of the details, else the goal of the task",
    "hints": "the metadata of the task",
    "actions": "all actions",
    "legal": "those of them that are legal now; empty if all are",
    "form": "how to answer",
    "step": "number of the step, from 0",
    "text": "the observation as text: `text` of the details, and columns of text",
    "details": "data of the game without a fixed shape",
    "observation": "small columns of numbers, by name",
    "example": "number of the recorded episode that begins here; 0 for the one that is played",
    "kept": "fields of earlier answers that are kept, by name",
    "lessons": "what it wrote about earlier episodes from the same state, oldest first",
    "problem": "why the last answer could not be used; empty if it could",
}
"""Variables of all templates."""
REFLECT_VARIABLES = {
    "trial": "how an earlier episode ended; see rollout.api.Trial",
    "log": "its steps",
    "words": "most words of a critique",
}
"""Further variables of the template ``reflect``."""

_ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
EXAMPLE = """\
{% if example %}
Example {{ example }}, from an earlier episode. Its goal: {{ goal }}
{% else %}
Now your own episode. Your goal: {{ goal }}
{% endif %}
"""
REFLECT = """\
You have played an episode of a game. Your goal was: {{ goal }}
{% if trial.success is none %}
It is over
{% elif trial.success %}
You succeeded
{% else %}
You failed
{% endif %}
after {{ trial.length }} steps, with a return of {{ '%.6g' % trial.total_reward }}. Its log, in
which each observation is followed by your answer:

{{ log }}

You will play it again. Write for yourself, in at most {{ words }} words, what you did wrong or
well, and what you will do differently. Answer with that text alone.
"""
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]*$")]


class AnswerField(BaseModel):
    """A field of an answer beside the action.

    Attributes:
        doc: description of the field in the prompt.
        keep: ``no``: it is recorded only. ``history``: the model sees it with its earlier answers.
            ``latest``: the newest one is the variable ``kept`` of the templates.
        chars: longest text that is kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    doc: str
    keep: Literal["no", "history", "latest"] = "no"
    chars: int = Field(2000, ge=1)


class Prompt(BaseModel):
    """A prompt; see docs/vlm.md.

    Attributes:
        system: template of the first message.
        observation: template of the message of a step.
        unusable: template of the message after an answer that could not be used.
        example: template of what begins each recorded example, and then the episode itself.
        reflect: template of the message that asks for a critique of an earlier episode.
        fields: fields of the answer beside the action, in their order.
        parts: templates that others include by name, ``{% include "name" %}``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str
    observation: str
    unusable: str
    example: str = EXAMPLE
    reflect: str = REFLECT
    fields: dict[_Name, AnswerField] = Field(default_factory=dict)
    parts: dict[_Name, str] = Field(default_factory=dict)

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the prompt by its content."""
        without = set[str]() if self.parts else {"parts"}  # as before there were any
        data = self.model_dump_json(exclude=without)
        return hashlib.sha256(data.encode()).hexdigest()[:16]

    @property
    def variables(self) -> set[str]:
        """The variables used in the messages of an episode."""
        texts = (self.system, self.observation, *self.parts.values())
        return set().union(*map(_variables, texts))

    @property
    def shows_lessons(self) -> bool:
        """True if the messages contain the critiques of earlier episodes."""
        return "lessons" in self.variables

    def render(self, template: Template, **values: Any) -> str:
        """Returns the text of a template.

        Raises:
            ConfigError: the template fails with these values.
        """
        return render_template(getattr(self, template), template, values, self.parts)


def render_template(
    text: str, name: str, values: Mapping[str, Any], parts: Mapping[str, str]
) -> str:
    """Returns the text of a template.

    Args:
        text: the template.
        name: its name, for messages.
        values: its variables.
        parts: templates that it may include, by name.

    Raises:
        ConfigError: the template fails with these values.
    """
    try:
        found = _compiled(text, tuple(parts.items())).render(values)
    except Exception as error:  # a template may raise anything
        raise ConfigError(f"the template {name} of the prompt: {error}") from error
    return found.strip()


def _variables(text: str) -> set[str]:
    return set(meta.find_undeclared_variables(_ENVIRONMENT.parse(text)))


@functools.lru_cache(maxsize=16)
def _environment(parts: tuple[tuple[str, str], ...]) -> Environment:
    return _ENVIRONMENT.overlay(loader=DictLoader(dict(parts)))


@functools.lru_cache(maxsize=64)
def _compiled(text: str, parts: tuple[tuple[str, str], ...]) -> Compiled:
    return _environment(parts).from_string(text)


def compile_templates(texts: Iterable[str], parts: Mapping[str, str]) -> None:
    """Compiles templates and their parts before the first step needs them: 0.1 s for large ones.

    Raises:
        jinja2.TemplateError: one cannot be parsed.
    """
    given = tuple(parts.items())
    for text in texts:
        _compiled(text, given)
    for name in parts:
        _environment(given).get_template(name)


def load_prompt(name: str, tasks: Path | None, _outer: tuple[Path, ...] = ()) -> Prompt:
    """Returns a prompt by the path of its file or by its name.

    Args:
        name: a path that ends with ``.yaml``, or a name; the folder ``prompts`` beside the tasks of
            the game is searched first, then that of Gamut.
        tasks: folder of the tasks of the game.

    A key ``extends`` names a prompt, whose parts it has unless it gives its own.

    Raises:
        UnknownNameError: there is none of that name.
        ConfigError: the file cannot be read, is not a prompt, extends itself, or uses an unknown
            variable.
    """
    folders = [PACKAGED] if tasks is None else [tasks / "prompts", PACKAGED]
    if name.endswith((".yaml", ".yml")):
        path: Path | None = Path(name).expanduser()
    else:
        path = next((f / f"{name}.yaml" for f in folders if (f / f"{name}.yaml").is_file()), None)
    if path is None:
        known = {each.stem for folder in folders for each in folder.glob("*.yaml")}
        raise UnknownNameError("prompt", name, known, "A path ends with .yaml.")
    if path in _outer:
        raise ConfigError(f"the prompt {path} extends itself; remove one `extends`")
    data = load_yaml(path)
    base = data.pop("extends", None) if isinstance(data, dict) else None
    if base is not None:
        whole = load_prompt(str(base), tasks, (*_outer, path)).model_dump()
        data = {**whole, **data, "parts": {**whole["parts"], **(data.get("parts") or {})}}
    try:
        prompt = Prompt.model_validate(data)
    except ValueError as error:
        raise ConfigError(f"the prompt {path}: {_first_problem(error)}") from error
    for template in TEMPLATES:
        valid = VARIABLES | (REFLECT_VARIABLES if template == "reflect" else {})
        check_template(path, template, getattr(prompt, template), prompt.parts, valid)
    for part, text in prompt.parts.items():
        check_template(path, part, text, prompt.parts, VARIABLES)
    return prompt


def _first_problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


def check_template(
    path: Path, name: str, text: str, parts: Mapping[str, str], known: Iterable[str]
) -> None:
    """Checks that a template can be parsed and uses known variables and parts only.

    Raises:
        ConfigError: it does not.
    """
    try:
        used = _variables(text)
        included = set(meta.find_referenced_templates(_ENVIRONMENT.parse(text)))
    except TemplateError as error:
        raise ConfigError(f"the prompt {path}, {name}: {error}") from error
    for part in sorted(map(str, included - parts.keys())):
        raise ConfigError(
            f"the prompt {path}, {name}: includes the unknown part {part!r}; its parts are "
            f"{', '.join(parts) or 'none'}"
        )
    for variable in sorted(used - set(known)):
        close = nearest(variable, known)
        near = f" Nearest: {', '.join(close)}." if close else ""
        raise ConfigError(
            f"the prompt {path}, {name}: unknown variable {variable!r}.{near} "
            f"Valid: {', '.join(known)}."
        )
