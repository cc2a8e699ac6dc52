"""Tasks written by a language model, checked and tried until they can be used (MCU, section 2.4).

Stages: the answer is *read*; the task passes the bridge's *check*; a game *begins* an episode of
it; it is *shown* that it can be solved, by a plan or a program of the bridge, else it says "not
shown". What is wrong in the first three is sent back to the model, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout.api import Call, TaskProblem, TaskTools
from rollout.config import BridgeConfig
from rollout.errors import InputError, PolicyUnavailable
from rollout.models.client import ModelClient, Request
from rollout.models.sections import Sampling
from rollout.task_trial import try_task
from rollout.tasks import bridge_and_task

STAGES = ("read", "checked", "begun", "shown")
"""Stages in their order; ``shown`` can be missed by a task that is used."""

_AGAIN = "That cannot be used:\n{problems}\nAnswer again, with the whole task."


@dataclass(frozen=True)
class Generated:
    """A task that a model has written.

    Attributes:
        goal: what was asked.
        document: contents of the task file; None if no answer could be read.
        first: stages that the first answer passed.
        passed: stages that the last answer passed.
        solvable: evidence that it can be solved; empty for none.
        problems: what is wrong with the last answer.
        calls: the calls of the model.
    """

    goal: str
    document: Mapping[str, Any] | None
    first: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    solvable: str = ""
    problems: tuple[TaskProblem, ...] = ()
    calls: tuple[Call, ...] = field(default=(), repr=False)

    @property
    def usable(self) -> bool:
        """Whether a game begins the task."""
        return "begun" in self.passed

    def describe(self) -> dict[str, Any]:
        """Returns it as plain data."""
        return {
            "goal": self.goal,
            "task": None if self.document is None else self.document["name"],
            "calls": len(self.calls),
            "passed": list(self.passed),
            "passed_at_first": list(self.first),
            "solvable": self.solvable or "not shown",
            "problems": [each.describe() for each in self.problems],
        }


def generate(
    config: BridgeConfig,
    tools: TaskTools,
    client: ModelClient,
    goals: Iterable[str],
    *,
    difficulty: str = "simple",
    tries: int = 3,
    sampling: Sampling,
    play: bool = False,
) -> Iterator[Generated]:
    """Yields a task for each goal.

    Args:
        config: of the bridge.
        tools: of the bridge.
        client: of the model.
        goals: what the tasks ask, in words.
        difficulty: ``simple`` or ``hard``.
        tries: most answers for a goal.
        sampling: how answers are drawn.
        play: whether solutions that the bridge knows are played, and not only named.

    Raises:
        ConfigError: the server refuses the first request.
        BudgetExhausted: a limit is reached.
    """
    for goal in goals:
        yield _generated(config, tools, client, goal, difficulty, tries, sampling, play=play)


def _generated(
    config: BridgeConfig,
    tools: TaskTools,
    client: ModelClient,
    goal: str,
    difficulty: str,
    tries: int,
    sampling: Sampling,
    *,
    play: bool,
) -> Generated:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": tools.prompt(difficulty)},
        {"role": "user", "content": f"The task: {goal}"},
    ]
    fields = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    found = Generated(goal, None)
    calls: list[Call] = []
    for number in range(tries):
        request = Request(fields, messages, {}, "image/png", [goal, difficulty, number])
        try:
            call = client.ask(request)
        except PolicyUnavailable as error:
            problem = TaskProblem(f"the model did not answer: {error}")
            return Generated(goal, None, problems=(problem,), calls=tuple(calls))
        calls.append(call)
        result = _judged(config, tools, goal, call.answer, difficulty, play=play)
        first = found.first if number else result.passed
        found = Generated(
            goal, result.document, first, result.passed, result.solvable, result.problems,
            tuple(calls),
        )  # fmt: skip
        if found.usable:
            break
        said = "\n".join(
            f"- {': '.join(filter(None, (p.given, p.problem)))}" for p in found.problems
        )
        messages += [
            {"role": "assistant", "content": call.answer or "(nothing)"},
            {"role": "user", "content": _AGAIN.format(problems=said)},
        ]
    return found


def _judged(
    config: BridgeConfig, tools: TaskTools, goal: str, answer: str, difficulty: str, *, play: bool
) -> Generated:
    """The stages that an answer passes."""
    draft = tools.parse(goal, answer, difficulty)
    document, problems = draft.document, list(draft.problems)
    if document is None:
        return Generated(goal, None, problems=tuple(problems))
    passed = ["read"]
    try:
        problems += tools.check(document)
        if not problems:
            bridge_and_task(config, document)
    except InputError as error:
        problems.append(TaskProblem(" ".join(str(error).split())))
    if problems:
        return Generated(goal, document, passed=tuple(passed), problems=tuple(problems))
    passed.append("checked")
    solution = tools.solve(document)
    trial = try_task(config, document, solution if play else None)
    if trial.error:
        problems.append(TaskProblem(f"in the game: {trial.error}"))
        return Generated(goal, document, passed=tuple(passed), problems=tuple(problems))
    passed.append("begun")
    shown = solution.kind if trial.won is None else "won" if trial.won else ""
    passed += ["shown"] if shown else []
    return Generated(goal, document, passed=tuple(passed), solvable=shown)


def shares(generated: Iterable[Generated]) -> dict[str, dict[str, float]]:
    """Returns the shares of tasks that pass each stage, at the first answer and at the last."""
    every = list(generated)
    count = max(1, len(every))
    return {
        stage: {
            "first": sum(stage in each.first for each in every) / count,
            "last": sum(stage in each.passed for each in every) / count,
        }
        for stage in STAGES
    }
