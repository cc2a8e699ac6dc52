"""A valley: its state with the actions, commands and observations of StarDojo's mod."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from bridges.stardojo.rules import (
    acting,
    barns,
    carpenter,
    commands,
    community,
    creatures,
    farmer,
    mail,
    mines,
    monsters,
    observe,
    quests,
    residents,
    saves,
    services,
)
from bridges.stardojo.rules.night import faint, pass_out
from bridges.stardojo.rules.registry import COMMAND, TEN, TICKS, checked
from bridges.stardojo.rules.world import TEN_MINUTES, World
from rollout.errors import InputError, UnknownNameError

RULES = (
    barns,
    carpenter,
    commands,
    community,
    creatures,
    mail,
    mines,
    monsters,
    quests,
    residents,
    services,
)
"""Modules that fill the tables of rules when they are imported."""
MOST_TICKS = 60 * 60 * 30
"""An action that takes more game time than this has lost its way."""


@dataclass(slots=True)
class Pending:
    """An action that was begun: whether it is done, and its reply."""

    done: bool
    reply: bool | None = None
    walk: acting.Walk | None = None
    wait: int = 0


class Valley:
    """One valley that is played.

    Args:
        save: ``save_new``, ``save_farming`` or ``save_quests``.
        seed: of all that is random.
        state: values of the factors that change the save, see ``saves``.
        faithful: whether menus behave as with the released mod (see ``acting.choose``).

    Raises:
        UnknownNameError: there is no such save.
    """

    ACTIONS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {name: arity for name, (arity, _) in (acting.MOVES | acting.DEEDS).items()}
        | {"choose_option": 3}
    )

    def __init__(
        self,
        save: str = "save_new",
        seed: int = 0,
        *,
        state: Mapping[str, Any] | None = None,
        faithful: bool = False,
    ) -> None:
        self.faithful = faithful
        self.world: World = saves.build(save, seed, state or {})
        self._pending: Pending | None = None

    def snapshot(self) -> bytes:
        """Returns the whole state; an action in progress is not part of it.

        Raises:
            InputError: an action is in progress.
        """
        if self._pending is not None and not self._pending.done:
            raise InputError("snapshot: an action is in progress; advance until it is done")
        return dumps(self.world)

    def restore(self, snapshot: bytes) -> None:
        """Restores what ``snapshot`` returned."""
        self.world = loads(World, snapshot)
        self._pending = None

    @property
    def ready(self) -> bool:
        """True if the mod would begin an action: no animation, no fade."""
        return self.world.busy <= 0

    def begin(self, name: str, args: tuple[Any, ...] = ()) -> Pending:
        """Begins an action now; walks go on with ``advance``, everything else is done at once.

        Raises:
            InputError: no such action, or another number of arguments.
        """
        arity = self.ACTIONS.get(name)
        if arity is None:
            raise UnknownNameError("action", name, self.ACTIONS)
        if len(args) != arity:
            raise InputError(f"{name}: expected {arity} arguments, got {len(args)}")
        if name == "choose_option":
            option, quantity, outward = args
            acting.choose(self.world, option, quantity, outward != 0, faithful=self.faithful)
            pending = Pending(True)
        elif name in acting.MOVES:
            pending = Pending(False, walk=acting.MOVES[name][1](self.world, *args))
            self._go_on(pending)
        else:
            acting.DEEDS[name][1](self.world, *args)
            pending = Pending(True)
        self._pending = pending
        return pending

    def _go_on(self, pending: Pending) -> None:
        assert pending.walk is not None
        try:
            pending.wait = next(pending.walk)
        except StopIteration as end:
            pending.done, pending.reply, pending.walk = True, bool(end.value), None

    def advance(self, ticks: int) -> None:
        """Advances game time, 60 ticks a second, and the walk in progress."""
        while ticks > 0:
            pending = self._pending
            walking = pending is not None and not pending.done
            step = min(ticks, pending.wait) if walking and pending else ticks
            _advance(self.world, step)
            ticks -= step
            if walking and pending:
                pending.wait -= step
                if pending.wait <= 0:
                    self._go_on(pending)
        farmer.collect(self.world)

    def act(self, name: str, args: tuple[Any, ...] = ()) -> bool | None:
        """Acts and waits until the action and its animation are over; returns the mod's reply.

        Raises:
            InputError: as in ``begin``.
        """
        pending = self.begin(name, args)
        left = MOST_TICKS
        while not pending.done and left > 0:
            left -= pending.wait
            self.advance(max(1, pending.wait))
        if not pending.done:
            pending.done, pending.reply = True, False
        if self.world.busy > 0:
            self.advance(self.world.busy)
        return pending.reply

    def setup(self, name: str, args: tuple[Any, ...] = ()) -> Any:
        """Runs a command of ``InitTaskAPI``; only ``get_monster_kills`` returns something.

        Raises:
            InputError: no such command, an argument that does not fit, or one too many or too few.
        """
        rule = COMMAND.get(name)
        if rule is None:
            raise UnknownNameError("command", name, COMMAND)
        checked(name, rule, args)
        return rule(self.world, *args)

    def observe(self, size: int = 3) -> dict[str, Any]:
        """Returns the fields of ``observe_v2`` but the picture; see ``observe.observe``."""
        return observe.observe(self.world, size, faithful=self.faithful)


LAST = 120 * TEN_MINUTES
"""Ticks of a day: at 2:00 in the night the farmer passes out."""
_SLICE = 15


def _advance(world: World, ticks: int) -> None:
    """Advances the clock; an open menu stops it, not the farmer's animation."""
    while ticks > 0:
        if world.menu is not None:
            world.busy = max(0, world.busy - ticks)
            return
        monsters = bool(world.here.monsters)
        step = min(ticks, TEN_MINUTES - world.ticks % TEN_MINUTES)
        if monsters:
            step = min(step, _SLICE)
        world.ticks += step
        world.busy = max(0, world.busy - step)
        world.farmer.safe_ticks = max(0, world.farmer.safe_ticks - step)
        ticks -= step
        if monsters:
            TICKS.call(world, step)
        if world.farmer.health <= 0:
            faint(world)
        if world.ticks % TEN_MINUTES == 0:
            TEN.call(world)
            if world.ticks >= LAST:
                pass_out(world)
        if world.farmer.energy <= farmer.EXHAUSTED:
            pass_out(world)


T = TypeVar("T")


def dumps(tree: Any) -> bytes:
    """Returns a tree of dataclasses, lists, dicts and plain values as bytes."""
    return json.dumps(_plain(tree), separators=(",", ":"), ensure_ascii=False).encode()


def loads(kind: Callable[..., T], data: bytes) -> T:
    """Returns the tree that ``dumps`` saved.

    Args:
        kind: class of its root; the types of the fields say what else there is.
        data: the bytes.
    """
    made: T = reader(kind)(json.loads(data))
    return made


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind is dict:
        if value and type(next(iter(value))) is tuple:
            return {f"{k[0]},{k[1]}": _plain(v) for k, v in value.items()}
        return {k: _plain(v) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [_plain(each) for each in value]
    if names := _names(kind):
        return [_plain(getattr(value, name)) for name in names]
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple(each.name for each in dataclasses.fields(kind))


@cache
def reader(kind: Any) -> Callable[[Any], Any]:
    """Returns the function that makes a value of a type from plain JSON values."""
    origin, args = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object(kind)
    if origin in (Union, types.UnionType):
        inner = reader(next(each for each in args if each is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is dict:
        return _dict(get_origin(args[0]) is tuple, reader(args[1]))
    if origin is list:
        inner = reader(args[0])
        return lambda value: [inner(each) for each in value]
    return tuple if origin is tuple else lambda value: value


def _dict(tiles: bool, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if tiles:
        return lambda value: {_tile(k): inner(v) for k, v in value.items()}
    return lambda value: {k: inner(v) for k, v in value.items()}


def _tile(text: str) -> tuple[int, int]:
    x, y = text.split(",")
    return int(x), int(y)


def _object(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    names = _names(kind)
    readers: list[Callable[[Any], Any]] = []

    def read(values: list[Any]) -> Any:
        if not readers:  # only now, because types may contain themselves
            readers.extend(reader(hints[name]) for name in names)
        made: Any = object.__new__(kind)
        for name, each, value in zip(names, readers, values, strict=True):
            setattr(made, name, each(value))
        return made

    return read
