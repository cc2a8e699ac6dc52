"""The stages of a companion: route, plan, ask, write and review, run, judge, repair.

MineNPC-Task (arXiv 2601.05215), section 3: nothing is executed before the preview of the plan, at
most one question is asked, programs are reviewed before they run, and what changed is judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import Field, ValidationError

from policies.companion.asking import RoleClient
from policies.companion.guard import Violation, check_program
from policies.companion.observing import changes, one_line
from policies.companion.schemas import (
    Code,
    Plan,
    Record,
    Review,
    Routing,
    TaskModel,
    ValidationOutput,
    position_of,
)
from policies.companion.session import Turn
from rollout.api import Call
from rollout.models.client import Request
from rollout.models.sections import RunLimits

RESUME, NEW = 0, 1
_LINE = 240  # characters of a line of the chat
_SURE = 0.5  # confidence below which keywords route a line
_MOST_STAGES = 12  # of one step
_NEAR = 6.0  # blocks around a place that a subtask confirms
_KEYWORDS = {
    "control": ("stop", "cancel", "pause", "wait", "retry", "again", "back"),
    "memory": ("remember", "call this", "this is", "note that"),
    "conversation": ("hello", "hi", "thanks", "thank", "how are", "who are", "good"),
}
_COMMANDS = {"cancel": "stop", "wait": "pause", "again": "retry", "yes": "retry"}
ROLES = ("route", "plan", "code", "review", "judge")
VARIABLES = (
    *("name", "details", "player", "user", "memories", "chat", "request", "slots", "answers"),
    *("asked", "plan", "completed", "subtask", "problem", "deeds", "code"),
    *("line", "before", "after", "changed"),
)
"""Variables of all templates, and of some roles: the line that is routed, and what is judged."""
_R = TypeVar("_R", bound=Record)

Action: TypeAlias = tuple[int, str]
"""The kind of an action and its program."""

Asking: TypeAlias = Generator[Request, Call, Action | None]
"""A stage that asks the model; returns the action of the step, or None to go on at once."""

Doing: TypeAlias = Callable[[Turn, bool], Asking | Action | None]
"""A stage; only those that ask the model are generators."""


class Limits(RunLimits):
    """Limits of an episode and of the run; null for no limit."""

    reparse: int = Field(1, ge=0, description="times an unusable answer is asked for again")
    programs: int = Field(3, ge=1, le=10, description="programs written for a try at a subtask")
    repairs: int = Field(2, ge=0, description="repairs of a request")
    listen: int = Field(5, ge=0, description="steps after which the task's goal is the request")
    answer: int = Field(10, ge=1, description="steps in which the player may answer")
    subtask: int = Field(90, ge=1, description="steps of a program")
    confidence: int = Field(6, ge=0, le=10, description="confidence with which a subtask is done")
    episode_calls: int | None = Field(80, ge=1, description="calls of an episode")


class Stages:
    """Plays the stages of a session, one step at a time."""

    def __init__(self, roles: RoleClient, limits: Limits, view_distance: int = 4) -> None:
        self._roles, self._limits = roles, limits
        self._view_distance = view_distance
        self._stages: Mapping[str, Doing] = {
            "listen": self._listen,
            "answer": self._answer,
            "code": self._code,
            "run": self._run,
            "judge": self._judge,
            "offer": self._offer,
            "over": self._over,
        }

    def step(self, turn: Turn, explore: bool) -> Generator[Request, Call, Action]:
        """Returns the action of a step; the turn has the new state of the session."""
        if turn.session.broken:
            return self._invalid(turn)
        for _ in range(_MOST_STAGES):
            done = self._stages[turn.session.stage](turn, explore)
            action = (yield from done) if isinstance(done, Generator) else done
            if action is not None:
                return action
        return self._give_up(turn, "it went round in circles in one step")

    # What is asked

    def _ask(
        self, turn: Turn, explore: bool, role: str, kind: type[_R], **more: Any
    ) -> Generator[Request, Call, tuple[_R | None, str]]:
        session, most = turn.session, self._limits.episode_calls
        if most is not None and session.calls >= most:
            return None, f"the episode has used its {most} calls (limits.episode_calls)"
        before = len(turn.calls)
        found, problem = yield from self._roles.ask(
            role,
            kind,
            self._values(turn, **more),
            step=session.step,
            identity=[session.seed, session.calls],
            explore=explore,
            calls=turn.calls,
        )
        made = turn.calls[before:]
        turn.change(calls=session.calls + len(made))
        turn.tell(
            "asked",
            role=role,
            calls=len(made),
            seconds=round(sum(each.seconds or 0.0 for each in made), 4),
            input_tokens=sum(each.input_tokens or 0 for each in made),
            output_tokens=sum(each.output_tokens or 0 for each in made),
            problem=problem,
        )
        return found, problem

    def _values(self, turn: Turn, **more: Any) -> dict[str, Any]:
        """Returns the variables of the templates."""
        session, memory = turn.session, turn.memory
        used = [memory.entries[each] for each in session.used if each in memory.entries]
        return {
            "name": turn.details.get("name", "the companion"),
            "details": turn.details,
            "player": session.player,
            "user": memory.user,
            "memories": used,
            "chat": session.chat[-10:],
            "request": session.request,
            "slots": session.slots,
            "answers": session.answers,
            "asked": session.asked,
            "plan": session.plan,
            "completed": [each for each in session.plan if each.status == "completed"],
            "subtask": session.subtask,
            "problem": session.problem,
            "deeds": session.deeds,
            "code": session.program,
            **more,
        }

    # Intent routing

    def _listen(self, turn: Turn, explore: bool) -> Asking:
        session = turn.session
        if session.unread:
            line = session.unread[0].text
            turn.change(unread=session.unread[1:])
            return (yield from self._route(turn, explore, line))
        waited = session.step - session.since >= self._limits.listen
        if not session.requests and waited and session.goal:
            turn.tell("unheard", request=session.goal)
            return (yield from self._begin(turn, explore, session.goal, {}))
        return RESUME, ""

    def _route(self, turn: Turn, explore: bool, line: str) -> Asking:
        turn.recall(line)
        found, problem = yield from self._ask(turn, explore, "route", Routing, line=line)
        if found is None or found.confidence < _SURE:
            intent = by_keywords(line)
            turn.tell("routed", intent=intent, by="keywords", line=line, problem=problem)
            slots = dict(found.slots) if found else {}
            found = Routing(intent=intent, slots=slots, confidence=0.0)
        else:
            turn.tell("routed", intent=found.intent, by="model", line=line)
        if found.intent == "task":
            return (yield from self._begin(turn, explore, line, found.slots))
        if found.intent == "memory":
            return self._keep(turn, line, found.slots)
        if found.intent == "control":
            return self._control(turn, str(found.slots.get("command") or line))
        return say(turn, found.reply or "I am here.")

    def _keep(self, turn: Turn, line: str, slots: Mapping[str, Any]) -> Action:
        """Remembers what the player said."""
        key = str(slots.get("key") or line)[:120]
        value: Any = slots.get("value")
        if value in (None, ""):
            place = turn.details.get("location_stats", {}).get("pos", (0, 0, 0))
            value = {"position": [round(float(each)) for each in place], "radius": 6}
        given = str(slots.get("kind") or "")
        kind = given if given in ("landmark", "preference", "artifact") else "artifact"
        if position_of(value) is not None:
            kind = "landmark"
        try:
            turn.remember(kind, key, value, "told", turn.session.scope)
        except ValidationError:
            turn.remember("artifact", key, str(value)[:1000], "told", turn.session.scope)
        return say(turn, f"I will remember {key}.")

    def _control(self, turn: Turn, command: str) -> Action | None:
        """Stops, pauses, or goes on with what was stopped."""
        wanted = command_of(command) or "stop"
        session = turn.session
        turn.tell("control", command=wanted)
        if wanted in ("retry", "back") and session.plan:
            if wanted == "back":
                self._go_back(turn)
            turn.change(stage="code", tries=0, failed=(), repairs=0)
            return None
        turn.change(stage="listen")
        return say(turn, "I stop.", ends=True)

    # Plan and question

    def _begin(self, turn: Turn, explore: bool, request: str, slots: Mapping[str, Any]) -> Asking:
        """Begins a request: plans it, shows the plan, and asks the question if there is one."""
        requests = turn.session.requests + 1
        turn.change(request=request[:1000], slots=slots, requests=requests, plan=(), answers=())
        turn.change(asked=False, repairs=0, tries=0, failed=(), problem="", unbound="")
        turn.recall(request)
        plan, problem = yield from self._ask(turn, explore, "plan", Plan)
        if plan is None:
            return self._give_up(turn, f"I have no plan: {problem}")
        turn.change(plan=tuple(plan.task_plan), unbound=plan.unbound)
        turn.tell("plan", plan=[each.model_dump() for each in plan.task_plan])
        lines = [preview(plan.task_plan)]
        question = plan.question
        if question and self._bound(turn, plan.unbound):
            question = ""
        if question and not turn.session.asked:
            turn.change(stage="answer", asked=True, unread=())
            turn.tell("question", question=question, slot=plan.unbound)
            lines.append(question if question.endswith("?") else f"{question}?")
        else:
            turn.change(stage="code", unbound="")
        return say(turn, *lines)

    def _bound(self, turn: Turn, slot: str) -> bool:
        """Binds the open slot by what is remembered, if anything does."""
        entry = turn.memory.binding(slot, turn.session.scope) if slot else None
        turn.tell("preference", slot=slot, hit=entry is not None)
        if entry is None:
            return False
        self._patch(turn, slot, entry.value)
        turn.change(memory=turn.memory.used(entry.id, tick=turn.tick))
        return True

    def _patch(self, turn: Turn, slot: str, value: Any) -> None:
        """Writes a value into the subtasks that are not completed."""
        slot = slot or "answer"
        plan = tuple(
            each
            if each.status == "completed"
            else each.model_copy(update={"parameters": {**each.parameters, slot: value}})
            for each in turn.session.plan
        )
        turn.change(plan=plan, unbound="")
        turn.tell("delta", slot=slot, value=value)

    def _answer(self, turn: Turn, explore: bool) -> Action | None:
        del explore
        session = turn.session
        if session.unread:
            said = session.unread[0].text
            command = command_of(said)
            if command in ("stop", "pause"):
                turn.change(unread=session.unread[1:])
                return self._control(turn, command)
            asked = next((each for task in session.plan for each in task.clarifying_questions), "")
            slot = session.unbound or "answer"
            turn.change(
                unread=session.unread[1:],
                answers=(*session.answers, {"question": asked, "answer": said}),
            )
            turn.tell("answered", answer=said, slot=slot)
            self._patch(turn, slot, said.rstrip(".!"))
            turn.remember("preference", slot, said.rstrip(".!"), "told", turn.session.scope)
            turn.change(stage="code")
            return None
        if session.step - session.since < self._limits.answer:
            return RESUME, ""
        turn.tell("unanswered", steps=session.step - session.since)
        return self._give_up(turn, "nobody answered my question, and I do not guess")

    # Code, review, execution

    def _code(self, turn: Turn, explore: bool) -> Asking:
        """Writes a program, has it checked and reviewed, and starts it."""
        subtask = turn.session.subtask
        if subtask is None:
            return self._finish(turn)
        self._mark(turn, subtask.index, "in-progress")
        problem = turn.session.problem
        for number in range(1, self._limits.programs + 1):
            turn.change(tries=turn.session.tries + 1, problem=problem)
            code, problem = yield from self._ask(turn, explore, "code", Code)
            if code is None:
                break
            problem = self._refusal(turn, code.code)
            if not problem:
                turn.change(program=code.code)
                review, problem = yield from self._ask(turn, explore, "review", Review)
                turn.tell("reviewed", valid=bool(review and review.valid), number=number)
                if review is not None and review.valid:
                    turn.change(stage="run", before=turn.state, deeds=(), problem="")
                    turn.tell("started", number=number)
                    return NEW, f"{code.code}\nawait task(bot);"
                if review is not None:
                    said = [f"line {each.line}: {each.comment}" for each in review.comments]
                    problem = f"the review refused the program: {'; '.join(said) or 'no reason'}"
        return self._repair(turn, problem or "no program was approved")

    def _refusal(self, turn: Turn, code: str) -> str:
        """Returns why a program must not run; empty if it may."""
        found = check_program(code, view_distance=self._view_distance)
        if found:
            turn.tell("refused", violations=[each.as_json() for each in found])
            return "the program breaks a rule: " + "; ".join(map(str, found))
        if "task" not in code:
            return "the program does not define async function task(bot)"
        if one_line(code) in turn.session.failed:
            turn.tell("repeated")
            return "the same program has failed before; write another one"
        return ""

    def _run(self, turn: Turn, explore: bool) -> Action | None:
        del explore
        session = turn.session
        stopped = session.unread and command_of(session.unread[0].text) in ("stop", "pause")
        if stopped:
            command = session.unread[0].text
            turn.change(unread=session.unread[1:])
            return self._control(turn, command)
        ran = session.step - session.since
        if turn.running and ran < self._limits.subtask:
            return RESUME, ""
        problem = f"the program still ran after {ran} steps, and was ended" if turn.running else ""
        turn.tell("ran", steps=ran, ended=bool(problem), error=error_of(turn))
        turn.change(stage="judge", problem=problem or error_of(turn))
        return (NEW, "") if problem else None

    # Judgement and repair

    def _judge(self, turn: Turn, explore: bool) -> Asking:
        session, after = turn.session, turn.state
        assert session.before is not None
        subtask = session.subtask
        assert subtask is not None
        changed = changes(session.before, after)
        verdict, problem = yield from self._ask(
            turn,
            explore,
            "judge",
            ValidationOutput,
            before=session.before,
            after=after,
            changed=changed,
        )
        done = (
            verdict is not None
            and verdict.is_task_completed
            and verdict.confidence_score >= self._limits.confidence
        )
        turn.tell(
            "judged",
            done=done,
            verdict=verdict.model_dump() if verdict else None,
            changed=[each.model_dump() for each in changed],
        )
        self._confirm(turn, done=done)
        if done:
            self._mark(turn, subtask.index, "completed")
            turn.change(stage="code", problem="", tries=0, failed=())
            return None
        said = (verdict.failure or verdict.suggestions or "") if verdict else problem
        why = "; ".join(each for each in (session.problem, said) if each)
        turn.change(failed=(*session.failed, one_line(session.program)))
        return self._repair(turn, why or "the judge saw no success")

    def _confirm(self, turn: Turn, *, done: bool) -> None:
        """Confirms the places of the plan that it is near to, or holds them stale."""
        place = turn.state.position
        here = (place.x, place.y, place.z)
        near = []
        for number in turn.session.used:
            entry = turn.memory.entries.get(number)
            spot = position_of(entry.value) if entry else None
            if spot and max(abs(a - b) for a, b in zip(spot, here, strict=True)) <= _NEAR:
                near.append(number)
        if near:
            memory = turn.memory
            changed = memory.confirm(*near, tick=turn.tick) if done else memory.mark_stale(*near)
            turn.learned = turn.learned or changed != memory
            turn.change(memory=changed)
            turn.tell("memory", confirmed=near if done else [], stale=[] if done else near)

    def _repair(self, turn: Turn, why: str) -> Action:
        """Offers a repair, or gives up after as many as are allowed."""
        subtask = turn.session.subtask
        assert subtask is not None
        if turn.session.repairs >= self._limits.repairs:
            return self._give_up(turn, f"I could not {subtask.subtask}: {why}")
        turn.change(stage="offer", repairs=turn.session.repairs + 1, problem=why[:1500])
        turn.tell("repair", offered=True, why=why[:600])
        return say(
            turn,
            f"I could not {subtask.subtask}: {why}",
            "Say back, stop, or something else to do; otherwise I try again.",
        )

    def _offer(self, turn: Turn, explore: bool) -> Action | None:
        del explore
        session = turn.session
        if session.unread:
            said = session.unread[0].text
            command = command_of(said)
            turn.tell("repair", accepted=command or "new request", said=said)
            if command in ("stop", "pause"):
                turn.change(unread=session.unread[1:])
                return self._control(turn, command)
            if command is None:
                turn.change(stage="listen")  # a new goal is a new request
                return None
            turn.change(unread=session.unread[1:])
            if command == "back":
                self._go_back(turn)
        elif session.step - session.since < self._limits.answer:
            return RESUME, ""
        else:
            turn.tell("repair", accepted="retry", said="")
        turn.change(stage="code", tries=0)
        return None

    def _go_back(self, turn: Turn) -> None:
        """Opens the last completed subtask again."""
        done = [each.index for each in turn.session.plan if each.status == "completed"]
        if done:
            self._mark(turn, done[-1], "pending")

    def _mark(self, turn: Turn, index: int, status: str) -> None:
        plan = tuple(
            each.model_copy(update={"status": status}) if each.index == index else each
            for each in turn.session.plan
        )
        turn.change(plan=plan)
        turn.tell("subtask", index=index, status=status)

    # Ends

    def _finish(self, turn: Turn) -> Action:
        turn.tell("finished", request_text=turn.session.request)
        turn.change(stage="listen", request="", slots={}, plan=())
        return say(turn, "Done.")

    def _give_up(self, turn: Turn, why: str) -> Action:
        turn.tell("gave_up", why=why[:600])
        turn.change(stage="over", problem=why[:1500])
        turn.stop = why[:600]
        return say(turn, why, ends=True)

    def _invalid(self, turn: Turn) -> Action:
        broken = turn.session.broken
        turn.tell("invalid", violations=[each.as_json() for each in broken])
        turn.change(stage="over")
        turn.stop = f"invalid: {broken[0]}"[:600]
        return NEW, ""

    def _over(self, turn: Turn, explore: bool) -> Action | None:
        del turn, explore
        return RESUME, ""


def say(turn: Turn, *lines: str, ends: bool = False) -> Action:
    """Returns the action that says lines in the chat; commands in them are told as violations.

    Args:
        turn: the step.
        lines: what is said; longer lines are cut.
        ends: whether a program that runs is ended even if there is nothing to say.
    """
    said = []
    for line in map(one_line, lines):
        text = line.lstrip("/ ")
        if line.lstrip().startswith("/"):
            broken = Violation("static", "operator_command", line[:160])
            turn.tell("refused", violations=[broken.as_json()])
        if text:
            said.append(text if len(text) <= _LINE else f"{text[: _LINE - 3]}...")
    if not said:
        return (NEW, "") if ends else (RESUME, "")
    turn.tell("said", lines=said)
    return NEW, "\n".join(f"bot.chat({json.dumps(each)});" for each in said)


def preview(plan: list[TaskModel]) -> str:
    """Returns a plan as one line of the chat."""
    width = max(12, (_LINE - 8) // len(plan) - 4)
    steps = (each.subtask for each in plan)
    short = (each if len(each) <= width else f"{each[: width - 2]}.." for each in steps)
    return "Plan: " + ", ".join(f"{n} {text}" for n, text in enumerate(short, 1))


def by_keywords(line: str) -> Any:
    """Returns the intent of a line by its words."""
    text = f" {one_line(line).casefold()} "
    for intent, words in _KEYWORDS.items():
        first = [text.strip().startswith(word) for word in words]
        if any(first):
            return intent
    return "task"


def command_of(line: str) -> str | None:
    """Returns the command in a line: stop, pause, retry or back; None for other lines."""
    words = one_line(line).casefold().strip(".!").split()
    if not words or len(words) > 4:
        return None
    found = _COMMANDS.get(words[0].strip(","), words[0].strip(","))
    return found if found in ("stop", "pause", "retry", "back") else None


def error_of(turn: Turn) -> str:
    """Returns the error that ended the program, in words; empty for none."""
    error = turn.details.get("code_info", {}).get("code_error") or {}
    if not error:
        return ""
    line = error.get("error_line")
    at = f" in line {line}" if line else ""
    return f"{error.get('error_type')}{at}: {error.get('error_message')}"[:600]
