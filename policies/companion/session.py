"""The state of a companion in one episode, and what one step does with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from policies.companion.guard import Violation, violations_in
from policies.companion.memory import Memory, given_memory, words_of
from policies.companion.observing import bot_state, deeds, heard, used_chests
from policies.companion.schemas import BotState, ChatMessage, MemoryEntry, Scope, Source, TaskModel
from rollout.api import Call, Details, Task

Stage: TypeAlias = Literal["listen", "answer", "code", "run", "judge", "offer", "over"]
_CHAT, _CHESTS, _DEEDS = 24, 32, 60
_FAMILIES = {
    "mining": "mine dig cobblestone ore coal iron stone log chop",
    "farming": "wheat farm seed plant harvest bread crop",
    "building": "build wall house pyramid roof place decorate",
    "crafting": "craft make stair plank smelt",
    "storage": "chest store storage deposit glass",
    "tools": "pickaxe axe shovel sword hoe tool",
}


@dataclass(frozen=True)
class Session:
    """The state of a companion in one episode.

    Attributes:
        seed: of the episode.
        world: the world that its memory belongs to.
        goal: the request if nobody makes one in the chat.
        step: number of the next step.
        stage: what it does.
        since: step in which the stage began.
        memory: what it remembers; None before the first frame.
        player: who gives requests; empty until somebody speaks.
        chat: the recent lines.
        unread: lines of the player that it has not dealt with.
        request: what it works on; empty for nothing.
        requests: number of requests so far.
        slots: values of the request, by name; null for those left open.
        plan: the subtasks.
        unbound: the slot that the question is about.
        answers: the question and its answer.
        asked: whether it has asked its question.
        before: its state before the subtask.
        deeds: what happened since the subtask began, in words.
        program: the program of the subtask.
        tries: programs that were written for the subtask.
        failed: programs that failed, which are not run again.
        problem: what went wrong last.
        repairs: repairs of the request so far.
        used: ids of the memories that the plan was made with.
        chests: containers that it used, the latest last.
        broken: how it broke the policy.
        calls: number of calls of the model so far.
    """

    seed: int = 0
    world: str = ""
    goal: str = ""
    step: int = 0
    stage: Stage = "listen"
    since: int = 0
    memory: Memory | None = None
    player: str = ""
    chat: tuple[ChatMessage, ...] = ()
    unread: tuple[ChatMessage, ...] = ()
    request: str = ""
    requests: int = 0
    slots: Mapping[str, Any] = field(default_factory=dict)
    plan: tuple[TaskModel, ...] = ()
    unbound: str = ""
    answers: tuple[Mapping[str, str], ...] = ()
    asked: bool = False
    before: BotState | None = None
    deeds: tuple[str, ...] = ()
    program: str = ""
    tries: int = 0
    failed: tuple[str, ...] = ()
    problem: str = ""
    repairs: int = 0
    used: tuple[int, ...] = ()
    chests: tuple[str, ...] = ()
    broken: tuple[Violation, ...] = ()
    calls: int = 0

    @property
    def subtask(self) -> TaskModel | None:
        """The first subtask that is not completed; None if there is none."""
        return next((each for each in self.plan if each.status != "completed"), None)

    @property
    def scope(self) -> Scope:
        """What its memories are for now."""
        return Scope(player=self.player, task_family=family_of(self.request))


def family_of(request: str) -> str:
    """Returns the family of tasks of a request: the one that most of its words are of."""
    words = words_of(request)
    counts = {name: len(words & words_of(text)) for name, text in _FAMILIES.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


class Turn:
    """One step of a session: its frame, and what it leads to.

    Attributes:
        session: the state, which changes during the step.
        details: of the frame.
        calls: calls of the model in this step.
        events: what happened, for telemetry.
        stop: why the episode ends after this step; empty to play on.
        learned: whether its memory changed by more than the count of uses.
    """

    def __init__(self, session: Session, details: Details, task: Task) -> None:
        self.session, self.details = session, details
        self.calls: list[Call] = []
        self.events: list[dict[str, Any]] = []
        self.stop, self.learned = "", False
        self.tick = int(details.get("tick", 0))
        self._observe(task)

    @property
    def memory(self) -> Memory:
        """What it remembers."""
        assert self.session.memory is not None
        return self.session.memory

    @property
    def running(self) -> bool:
        """Whether a program runs."""
        return bool(self.details.get("code_info", {}).get("is_running"))

    @property
    def state(self) -> BotState:
        """What the agent perceives."""
        session = self.session
        return bot_state(
            self.details, goal=session.request[:200], chat=session.chat, chests=session.chests
        )

    def change(self, **values: Any) -> None:
        """Changes the session; a new stage begins now."""
        if "stage" in values:
            values.setdefault("since", self.session.step)
        self.session = replace(self.session, **values)

    def tell(self, kind: str, **values: Any) -> None:
        """Adds an event to the telemetry."""
        session = self.session
        subtask = session.subtask
        self.events.append(
            {
                "kind": kind,
                "tick": self.tick,
                "request": session.requests,
                "subtask": subtask.index if subtask else 0,
                "attempt": session.tries,
                **values,
            }
        )

    def remember(self, kind: Any, key: str, value: Any, provenance: Any, scope: Scope) -> None:
        """Adds a memory, and tells so."""
        source = Source(tick=self.tick, chat_id=None, task_id=str(self.session.requests))
        memory = self.memory.remember(
            kind, key[:120], value, provenance, source=source, scope=scope, tick=self.tick
        )
        if memory != self.memory:
            self.learned = True
            self.tell("memory", write=key, provenance=provenance)
            self.change(memory=memory)

    def recall(self, query: str, k: int = 8) -> list[MemoryEntry]:
        """Returns the nearest memories, and tells so."""
        position = self.details.get("location_stats", {}).get("pos")
        found = self.memory.nearest(query, k=k, scope=self.session.scope, position=position)
        ids = tuple(each.id for each in found)
        self.tell("memory", read=list(ids))
        self.change(memory=self.memory.used(*ids, tick=self.tick), used=ids)
        return found

    def _observe(self, task: Task) -> None:
        """Takes what the frame brings: memory of the task, chat, containers, violations."""
        details, session = self.details, self.session
        if session.memory is None:
            at = details.get("location_stats", {}).get("pos", (0, 0, 0))
            if "memory" in details or "user" in details:
                memory = given_memory(session.world, details, f"the start of {task.name}")
            else:
                memory = given_memory(session.world, task.metadata, f"the task {task.name}", at)
            self.change(memory=memory)
        if session.step == 0:
            self.change(player=self.memory.user.user_info.user_name)
            known = len(self.memory.entries)
            self.change(goal=str(details.get("request") or task.goal)[:1000])
            self.tell("begin", world=session.world, seed=session.seed, memories=known)
        name = details.get("name", "")
        lines = tuple(heard(details))
        others = [line for line in lines if line.who != name]
        if not self.session.player and others:
            self.change(player=others[0].who)
        unread = [line for line in others if line.who == self.session.player]
        self.change(
            chat=(*self.session.chat, *lines)[-_CHAT:],
            unread=(*self.session.unread, *unread)[-8:],
            deeds=(*self.session.deeds, *deeds(details))[-_DEEDS:],
        )
        for key, used in used_chests(details):
            self.change(chests=(*self.session.chests, f"{key}: {used}")[-_CHESTS:])
            self.remember("artifact", key, used, "seen", Scope())
        broken = violations_in(details)
        if broken:
            self.change(broken=tuple(broken))
