"""What Alex does in a step: it checks itself, and asks the model in the roles that follow."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import Field

from policies.companion.asking import RoleClient
from policies.companion.guard import violations_in
from policies.companion.memory import Memory
from policies.companion.observing import heard
from policies.companion.schemas import Code, Name, Provenance, Record, Scope, Text
from rollout.api import Call, Details, Task
from rollout.models.client import Request
from rollout.models.observations import picture_digest
from rollout.models.sections import OptionGroup, RunLimits

RESUME, NEW = 0, 1
Action: TypeAlias = tuple[int, str]
Collection: TypeAlias = Literal["chat", "event", "environment", "skill"]
Pictures: TypeAlias = Mapping[str, bytes]
_T = TypeVar("_T")
_R = TypeVar("_R", bound=Record)
_Asking: TypeAlias = Generator[Request, Call, _T]
_KEY, _SAID = 120, 3500
_PROVENANCE: Mapping[str, Provenance] = {"chat": "told", "skill": "inferred"}  # else seen


class Retrieve(OptionGroup):
    """How many memories a plan is made with, by their similarity to what happens."""

    chat: int = Field(5, ge=0, description="lines of chat; paper and code 5")
    event: int = Field(2, ge=0, description="events; paper and code 2")
    environment: int = Field(2, ge=0, description="descriptions of what it saw; paper and code 2")
    skill: int = Field(5, ge=0, description="programs that succeeded; paper 5, code: not retrieved")
    recent_chat: int = Field(7, ge=0, description="last lines of chat; paper 8, code 7")
    plans: int = Field(5, ge=0, description="last short-term plans; paper and code 5")


class AlexLimits(RunLimits):
    """Limits of Alex, and of the run."""

    code_errors: int = Field(3, ge=1, description="errors of programs for a plan; paper and code 3")
    code_ticks: int = Field(
        500, ge=1, description="ticks after which it asks itself about a program; paper 2000"
    )
    critic: int = Field(3, ge=1, description="judgements that a plan failed; paper 2, code 3")
    programs: int | None = Field(
        None, ge=1, description="programs of an episode; 15 of the paper's wool; null for any"
    )
    episode_calls: int | None = Field(None, ge=1, description="calls of an episode; null for any")
    reparse: int = Field(2, ge=0, description="times an unusable answer is asked for again; code 2")


class Special(Record):
    """Whether something is dealt with now."""

    reasoning: Text
    handling: bool


class LongPlan(Record):
    """A plan for the life of the agent."""

    reasoning: Text
    long_term_plan: Text


class ShortPlan(Record):
    """The next thing to do, a phrase such as ``Mine 3 oak_log``."""

    reasoning: Text
    short_term_plan: Name


class Critique(Record):
    """A judgement of a short-term plan."""

    reasoning: Text
    success: bool
    critique: Text


class Scene(Record):
    """A picture in words."""

    image_summary: Text


class Skill(Record):
    """What a program can do."""

    name: Name
    description: Text


class Program(Code):
    """A program with the thought that led to it."""

    explain: Text
    plan: Text


@dataclass(frozen=True)
class Plan:
    """A short-term plan and how it went."""

    text: str
    result: str = "unfinished"


@dataclass(frozen=True)
class Mind:
    """The state of an agent in one episode.

    Attributes:
        seed: of the episode.
        step: number of the next step.
        memory: chat, events, environment and skills, in scopes of their own.
        long_plan: the plan for its life; empty before it is made.
        plans: the short-term plans, the latest last.
        recent: the last lines of chat.
        code: the program of the plan.
        errors: errors of programs for the plan.
        failures: judgements that the plan failed.
        overtime: how often it was asked about the running program.
        programs: programs so far.
        calls: calls of the model so far.
    """

    seed: int = 0
    step: int = 0
    memory: Memory = field(default_factory=lambda: Memory("alex"))
    long_plan: str = ""
    plans: tuple[Plan, ...] = ()
    recent: tuple[str, ...] = ()
    code: str = ""
    errors: int = 0
    failures: int = 0
    overtime: int = 0
    programs: int = 0
    calls: int = 0


class Turn:
    """One step of an agent.

    Attributes:
        mind: the state, which changes during the step.
        details: of the frame.
        pictures: what it sees, files by caption; empty without a camera.
        explore: whether answers are sampled.
        calls: calls of the model in this step.
        events: what happened, for telemetry.
        stop: why the episode ends after this step; empty to play on.
    """

    def __init__(self, mind: Mind, details: Details, pictures: Pictures, explore: bool) -> None:
        self.mind, self.details, self.pictures, self.explore = mind, details, pictures, explore
        self.name = str(details.get("name", ""))
        self.code_info: Mapping[str, Any] = details.get("code_info") or {}
        self.calls: list[Call] = []
        self.events: list[dict[str, Any]] = []
        self.stop = ""

    @property
    def happened(self) -> list[Mapping[str, Any]]:
        """Events since the last frame, without the agent's own lines."""
        found = self.details.get("event") or []
        return [each for each in found if each.get("username") != self.name]

    def change(self, **values: Any) -> None:
        """Changes the state."""
        self.mind = replace(self.mind, **values)

    def tell(self, kind: str, **values: Any) -> None:
        """Adds an event to the telemetry."""
        self.events.append({"kind": kind, **values})

    def remember(self, collection: Collection, key: str, value: Any) -> None:
        """Adds a memory; one of the same key is replaced."""
        scope = Scope(task_family=collection)
        memory = self.mind.memory.remember(
            "artifact",
            key[:_KEY],
            value,
            _PROVENANCE.get(collection, "seen"),
            scope=scope,
            tick=max(0, int(self.details.get("tick", 0))),
        )
        self.change(memory=memory)
        self.tell("memory", op="write", collection=collection, key=key[:_KEY])

    def recall(self, collection: Collection, query: str, k: int) -> list[Any]:
        """Returns the values of the ``k`` memories of a collection nearest to a text."""
        found = self.mind.memory.nearest(query, k=k, scope=Scope(task_family=collection))
        if found:
            keys = [each.key for each in found]
            self.tell("memory", op="read", collection=collection, keys=keys)
        return [each.value for each in found]

    def judged(self, result: str) -> None:
        """Notes how the current plan went."""
        *before, last = self.mind.plans
        self.change(plans=(*before, replace(last, result=result)))


ROLES = ("special", "critic", "see", "long_plan", "short_plan", "act", "skill")
VARIABLES = (
    *("name", "goal", "hints", "details", "pictures", "long_plan", "plans", "plan", "recent_chat"),
    *("code", "reasons", "critique", "error", "problem", "skills_known"),
    *("related_chat", "related_event", "related_environment"),
)
"""Variables of the prompts; some are of one role only."""


class Thinking:
    """The roles of Alex, one generator of requests per step.

    Args:
        client: asks the model in a role.
        task: the task.
        retrieve: how many memories it uses.
        limits: its limits.
        multitask: whether it deals with special events.
        tokens: tokens of an answer that is a program.
        kind: MIME type of the pictures.
    """

    def __init__(
        self,
        client: RoleClient,
        task: Task,
        *,
        retrieve: Retrieve,
        limits: AlexLimits,
        multitask: bool,
        tokens: int,
        kind: str,
    ) -> None:
        self._client, self._task, self._kind = client, task, kind
        self._retrieve, self._limits = retrieve, limits
        self._multitask, self._tokens = multitask, tokens

    def step(self, turn: Turn) -> _Asking[Action]:
        """Yields requests, receives their calls, and returns the action of the step."""
        self._perceive(turn)
        if broken := violations_in(turn.details):
            turn.tell("refused", violations=[each.as_json() for each in broken])
        running = bool(turn.code_info.get("is_running"))
        for name, so_far in (("programs", turn.mind.programs), ("episode_calls", turn.mind.calls)):
            most = getattr(self._limits, name)
            if most is not None and so_far >= most and not running:
                turn.stop = f"the episode has used its {most} {name} (limits.{name})"
                return RESUME, ""
        reasons = self._special_events(turn) if self._multitask else []
        if reasons:
            special = yield from self._ask(turn, "special", Special, reasons=reasons)
            if special is not None and special.handling:
                turn.tell("interrupt", reasons=reasons)
                return (yield from self._plan(turn))
        if error := _error(turn.code_info):
            return (yield from self._mend(turn, error))
        if running:
            return RESUME, ""
        return (yield from (self._judge(turn) if turn.mind.plans else self._plan(turn)))

    def _perceive(self, turn: Turn) -> None:
        """Keeps what was heard and what happened."""
        lines = list(heard(turn.details))
        for line in lines:
            if line.who != turn.name:
                turn.remember(
                    "chat", f"{line.who}: {line.text}", f"{line.who}: {line.text}"[:_SAID]
                )
        recent = (*turn.mind.recent, *(f"{line.who}: {line.text}" for line in lines))
        turn.change(recent=recent[len(recent) - min(len(recent), self._retrieve.recent_chat) :])
        for each in turn.happened:
            text = str(each.get("message", ""))
            if each.get("type") != "chat" and text.strip():
                turn.remember("event", text, text[:_SAID])
        if any(each.get("type") == "death" for each in turn.details.get("event") or ()):
            turn.change(long_plan="")  # once in a life; the game tells of the agent's own death

    def _special_events(self, turn: Turn) -> list[str]:
        """Returns what may interrupt the plan: its name in the chat, a hurt, a long program."""
        found = []
        for each in turn.happened:
            kind, text = each.get("type"), str(each.get("message", ""))
            named = turn.name.casefold() in str(each.get("only_message", "")).casefold()
            if kind == "chat" and turn.name and named:
                found.append(text)
            if kind == "entityHurt" and each.get("entity_type") == "self":
                found.append(text)
        passed = int(turn.code_info.get("code_tick") or 0)
        overtime = passed // self._limits.code_ticks if turn.code_info.get("is_running") else 0
        if overtime > turn.mind.overtime:
            turn.change(overtime=overtime)
            found.append(f"the program has been running for {passed} ticks")
        return found

    def _mend(self, turn: Turn, error: str) -> _Asking[Action]:
        """Writes the program again, or plans something easier after too many errors."""
        turn.change(errors=turn.mind.errors + 1)
        turn.tell("error", error=error, count=turn.mind.errors)
        if turn.mind.errors < self._limits.code_errors:
            return (yield from self._act(turn, error=error))
        turn.judged(f"too difficult: {error}")
        return (yield from self._plan(turn))

    def _judge(self, turn: Turn) -> _Asking[Action]:
        """Judges the plan whose program has ended, and goes on, again, or to another plan."""
        critique = yield from self._ask(turn, "critic", Critique)
        success = critique is not None and critique.success
        said = critique.critique if critique is not None else "the critic gave no verdict"
        turn.tell("judged", verdict={"success": success, "critique": said})
        if success:
            turn.judged("success")
            skill = yield from self._ask(turn, "skill", Skill)
            if skill is not None:
                about = f"{skill.name}: {skill.description}"
                kept = {"about": about[:500], "code": turn.mind.code[: _SAID - 600]}
                turn.remember("skill", about, kept)
            return (yield from self._plan(turn))
        turn.change(failures=turn.mind.failures + 1)
        if turn.mind.failures < self._limits.critic:
            return (yield from self._act(turn, critique=said))
        turn.judged(f"failed: {said}")
        return (yield from self._plan(turn))

    def _plan(self, turn: Turn) -> _Asking[Action]:
        """Looks, remembers, and plans; then acts."""
        if turn.pictures:
            scene = yield from self._ask(turn, "see", Scene)
            if scene is not None and scene.image_summary.strip():
                place = turn.details.get("location_stats", {}).get("pos")
                text = f"at {place}: {scene.image_summary}"
                turn.remember("environment", scene.image_summary, text[:_SAID])
        if not turn.mind.long_plan:
            long = yield from self._ask(turn, "long_plan", LongPlan)
            if long is None:
                return RESUME, ""
            turn.change(long_plan=long.long_term_plan)
            turn.tell("plan", plan=f"long-term: {long.long_term_plan}")
        short = yield from self._ask(turn, "short_plan", ShortPlan)
        if short is None:
            return RESUME, ""
        text = short.short_term_plan
        plans = tuple(
            replace(each, result="do it later")
            if each.text.casefold() == text.casefold() and each.result == "unfinished"
            else each
            for each in turn.mind.plans
        )
        kept = max(1, self._retrieve.plans)
        turn.change(plans=(*plans, Plan(text))[-kept:], errors=0, failures=0)
        turn.tell("plan", plan=text)
        return (yield from self._act(turn))

    def _act(self, turn: Turn, *, critique: str = "", error: str = "") -> _Asking[Action]:
        """Writes a program for the plan, and starts it; waits if there is none."""
        program = yield from self._ask(turn, "act", Program, critique=critique, error=error)
        if program is None:
            return RESUME, ""
        turn.change(code=program.code, overtime=0, programs=turn.mind.programs + 1)
        return NEW, program.code

    def _ask(self, turn: Turn, role: str, kind: type[_R], **more: Any) -> _Asking[_R | None]:
        mind, retrieve = turn.mind, self._retrieve
        query = " ".join(str(each.get("message", "")) for each in turn.happened)
        if mind.plans:
            query += f" {mind.plans[-1].text}"
        plans = mind.plans[-retrieve.plans :] if retrieve.plans else ()
        values: dict[str, Any] = {
            "name": turn.name,
            "goal": turn.details.get("mission") or self._task.goal,
            "hints": self._task.metadata,
            "details": turn.details,
            "pictures": list(turn.pictures),
            "long_plan": mind.long_plan,
            "plans": plans,
            "plan": mind.plans[-1].text if mind.plans else "",
            "recent_chat": mind.recent,
            "code": mind.code,
            **more,
        }
        if role == "short_plan":
            for name in ("chat", "event", "environment"):
                values[f"related_{name}"] = turn.recall(name, query, getattr(retrieve, name))
        if role == "act":
            values["skills_known"] = turn.recall("skill", values["plan"], retrieve.skill)
        identity = [mind.seed, mind.step, len(turn.calls)]
        asking = self._client.ask(
            role,
            kind,
            values,
            step=mind.step,
            identity=identity,
            explore=turn.explore,
            calls=turn.calls,
        )
        tokens = self._tokens if role == "act" else None
        record, problem = yield from _completed(asking, turn.pictures, self._kind, tokens)
        if problem:
            turn.tell("unusable", role=role, problem=problem)
        return record


def _completed(
    asking: Generator[Request, Call, _T], pictures: Pictures, kind: str, tokens: int | None
) -> Generator[Request, Call, _T]:
    """Asks with pictures before the question, and perhaps with another limit of tokens."""
    images = {picture_digest(file): file for file in pictures.values()}
    shown: list[dict[str, Any]] = []
    for caption, file in pictures.items():
        shown.append({"type": "text", "text": caption})
        shown.append({"type": "image", "digest": picture_digest(file)})
    reply: Any = None
    while True:
        try:
            request = asking.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        system, question, *more = request.messages
        if shown:
            text = {"type": "text", "text": question["content"]}
            question = {**question, "content": [*shown, text]}
        fields = {**request.fields, **({"max_tokens": tokens} if tokens else {})}
        messages = [system, question, *more]
        reply = yield replace(request, fields=fields, messages=messages, images=images, kind=kind)


def _error(info: Mapping[str, Any]) -> str:
    """Returns the error that ended the program; empty for none."""
    error = info.get("code_error") or {}
    if not error:
        return ""
    line = f" in line {error['error_line']}" if error.get("error_line") else ""
    return f"{error.get('error_type')}{line}: {error.get('error_message')}"[:600]
