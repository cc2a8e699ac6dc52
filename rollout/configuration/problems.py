"""Descriptions of what is wrong with a configuration: place, expectation, value and remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from rollout.errors import nearest

KeyPath = tuple[str | int, ...]
"""Place of a value: keys of mappings and indices of lists, outermost first."""

_MISTAKEN_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false"}

_MOST_SHOWN = 30  # characters of a wrong value, keys of a list of valid ones


@dataclass(frozen=True)
class Problem:
    """One fault in a configuration.

    Attributes:
        path: its place; the first parts that a user can recognise as keys.
        message: the expectation and the value that was given.
        unknown: True if there is no such key; the nearest ones are then named.
    """

    path: KeyPath
    message: str
    unknown: bool = False

    def under(self, prefix: KeyPath) -> Problem:
        """Returns the same problem with its path in the enclosing section."""
        return Problem((*prefix, *self.path), self.message, self.unknown)

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.message}" if self.path else self.message


def dotted(path: KeyPath) -> str:
    """Returns a path as it is written in ``--set``, list positions in brackets: ``tags[2]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def got(value: object) -> str:
    """Returns a value and its type as text, in the terms of YAML."""
    names = {bool: "true/false", int: "whole number", float: "number", str: "text", dict: "mapping"}
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    if len(text) > _MOST_SHOWN:
        text = text[:_MOST_SHOWN] + "..."
    return f"{text} ({names.get(type(value), type(value).__name__)})"


def explain(problem: Problem, valid: Sequence[str]) -> str:
    """Returns a problem as a sentence; an unknown key comes with the nearest of the valid ones."""
    if not problem.unknown:
        return str(problem)
    section = dotted(problem.path[:-1])
    prefix = f"{section}." if section else ""
    siblings = [key for key in valid if key.startswith(prefix)]
    # A near key of the same section comes first, then one of any section. The section itself,
    # which keys have in common, must not make them look alike.
    last = str(problem.path[-1])
    meant = known_as(last, valid)
    if meant:
        return f"{problem}. Here it is {' or '.join(meant)}."
    for candidates in (
        {key.removeprefix(prefix): key for key in siblings},
        {name: key for name in SYNONYMS for key in known_as(name, siblings)[:1]},
        {key.rpartition(".")[2]: key for key in valid},
    ):
        close = nearest(last, candidates)
        if close:
            return f"{problem}. Nearest: {', '.join(candidates[c] for c in close)}."
    more = len(siblings) - _MOST_SHOWN
    shown = ", ".join(siblings[:_MOST_SHOWN]) or "none"
    return f"{problem}. Valid: {shown}{f' and {more} more' if more > 0 else ''}."


def joined(problems: Iterable[str]) -> str:
    """Returns several problems as one message; a full stop remains at its end only."""
    *first, last = problems
    return "; ".join([*(text.removesuffix(".") for text in first), last])


def wrong_in(error: ValidationError) -> str:
    """Returns the first thing that pydantic found wrong with a file that people do not write."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return str(first["msg"])
    return f"{dotted(first['loc'])}: {first['msg']}, got {got(first['input'])}"


def problems_of(error: ValidationError, data: object, plugin: str = "") -> list[Problem]:
    """Returns what pydantic found wrong with ``data``, one problem for each place.

    Alternatives of a union that all fail are one problem with several expectations. If the data
    are the options of a plug-in, its name is in the messages.
    """
    expectations: dict[KeyPath, list[str]] = {}
    values: dict[KeyPath, object] = {}
    problems: list[Problem] = []
    for item in error.errors(include_url=False):
        path, value = _within(item["loc"], data)
        context: Mapping[str, Any] = item.get("ctx", {})
        if "problems" in context:  # the options of a plug-in, see configuration.sections
            problems += [problem.under(path) for problem in context["problems"]]
        elif item["type"] == "extra_forbidden":
            whose = f"option of {plugin}" if plugin and len(path) == 1 else "key"
            problems.append(Problem(path, f"unknown {whose}", unknown=True))
        elif item["type"] == "missing":
            missing = (*path, *item["loc"][-1:])
            needed = f"{plugin} needs it" if plugin and len(missing) == 1 else "give it a value"
            problems.append(Problem(missing, f"is missing; {needed}"))
        elif item["type"] in ("value_error", "assertion_error"):
            problems.append(Problem(path, str(context["error"])))
        else:
            expectations.setdefault(path, []).append(_expectation(item))
            values[path] = value
    for path, expected in expectations.items():
        wanted = " or ".join(dict.fromkeys(expected))
        problems.append(
            Problem(path, f"expected {wanted}, got {got(values[path])}{_advice(values[path])}")
        )
    return problems


def _within(location: Sequence[str | int], data: object) -> tuple[KeyPath, object]:
    """Returns the part of a pydantic location that lies in the data, and the value there.

    Pydantic mixes names of union alternatives into its locations; they are not keys of anything.
    """
    path: KeyPath = ()
    inner: Any = data
    for part in location:
        in_list = isinstance(inner, list | tuple) and isinstance(part, int) and part < len(inner)
        if in_list or (isinstance(inner, Mapping) and part in inner):
            inner = inner[part]
            path = (*path, part)
    return path, inner


_EXPECTED = {
    **dict.fromkeys(("model_type", "dict_type", "mapping_type"), "a mapping of keys"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    "string_type": "text",
    "path_type": "a path",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
}


def _expectation(item: Mapping[str, Any]) -> str:
    kind, message = str(item["type"]), str(item["msg"])
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind == "is_instance_of" and item["ctx"].get("class") == "Path":
        return _EXPECTED["path_type"]
    if kind.startswith(("greater_than", "less_than")):
        return message.replace("Input should be", "a number", 1)
    return message.removeprefix("Input should be ")


def _advice(value: object) -> str:
    if isinstance(value, str) and value.lower() in _MISTAKEN_BOOLEANS:
        return f"; write {_MISTAKEN_BOOLEANS[value.lower()]} without quotes"
    if isinstance(value, str) and value.strip("-+").replace(".", "", 1).isdigit():
        return f"; write {value} without quotes"
    return ""


SYNONYMS: dict[str, tuple[str, ...]] = {
    "learning_rate": ("algorithm.lr",),
    "lr_schedule": ("algorithm.schedule",),
    "anneal_lr": ("algorithm.schedule",),
    "gamma": ("algorithm.gamma",),
    "discount": ("algorithm.gamma",),
    "lambda": ("algorithm.gae_lambda",),
    "lambda_": ("algorithm.gae_lambda",),
    "gae_lambda": ("algorithm.gae_lambda",),
    "batch_size": ("algorithm.minibatch", "algorithm.batch"),
    "minibatch_size": ("algorithm.minibatch",),
    "sgd_minibatch_size": ("algorithm.minibatch",),
    "train_batch_size": ("algorithm.batch",),
    "train_batch_size_per_learner": ("algorithm.batch",),
    "n_epochs": ("algorithm.epochs",),
    "num_epochs": ("algorithm.epochs",),
    "num_sgd_iter": ("algorithm.epochs",),
    "update_epochs": ("algorithm.epochs",),
    "clip_param": ("algorithm.clip",),
    "clip_range": ("algorithm.clip",),
    "clip_coef": ("algorithm.clip",),
    "clip_range_vf": ("algorithm.value_clip",),
    "vf_clip_param": ("algorithm.value_clip",),
    "ent_coef": ("algorithm.entropy",),
    "entropy_coeff": ("algorithm.entropy",),
    "vf_coef": ("algorithm.value_coef",),
    "vf_loss_coeff": ("algorithm.value_coef",),
    "grad_clip": ("algorithm.max_grad_norm",),
    "max_grad_norm": ("algorithm.max_grad_norm",),
    "norm_adv": ("algorithm.normalize_advantages",),
    "normalize_advantage": ("algorithm.normalize_advantages",),
    "n_steps": ("fragment.steps",),
    "num_steps": ("fragment.steps",),
    "rollout_fragment_length": ("fragment.steps",),
    "total_timesteps": ("env_steps",),
    "timesteps": ("env_steps",),
    "max_steps": ("env_steps",),
    "n_envs": ("width", "instances"),
    "num_envs": ("width", "instances"),
    "num_envs_per_env_runner": ("width", "instances"),
    "num_envs_per_worker": ("width", "instances"),
    "num_workers": ("runners", "actors"),
    "num_rollout_workers": ("runners", "actors"),
    "num_env_runners": ("runners", "actors"),
    "workers": ("runners", "actors"),
    "num_learners": ("learners.count",),
    "num_gpus": ("learners.gpus",),
    "num_gpus_per_learner": ("learners.gpus",),
    "net_arch": ("policy.hidden",),
    "fcnet_hiddens": ("policy.hidden",),
    "hidden_sizes": ("policy.hidden",),
    "use_lstm": ("policy.memory",),
    "lstm_cell_size": ("policy.memory_size",),
    "env": ("bridge.name", "task"),
    "env_id": ("bridge.name", "task"),
    "n_eval_episodes": ("episodes",),
    "num_episodes": ("episodes",),
    "deterministic": ("explore",),
    "tensorboard_log": ("output",),
    "log_dir": ("output",),
    "save_freq": ("checkpoint.every",),
    "checkpoint_frequency": ("checkpoint.every",),
    "random_seed": ("seed",),
    "wandb_project": ("wandb.project",),
    "wandb_project_name": ("wandb.project",),
    "verbose": ("log.level",),
}
"""Names of keys in Stable-Baselines3, CleanRL, RLlib and Gymnasium, each with ours."""


def known_as(name: str, valid: Collection[str]) -> list[str]:
    """Returns the valid keys that a name may stand for in other libraries, likeliest first.

    Args:
        name: last part of an unknown key.
        valid: the dotted keys that the configuration may have; those of training lie under
            ``train`` in a sweep and a search.
    """
    meant = SYNONYMS.get(name.lower().replace("-", "_"), ())
    return [key for base in meant for key in (base, f"train.{base}") if key in valid]
