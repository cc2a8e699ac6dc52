"""A valley: its state with the actions, commands and observations of StarDojo's mod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from bridges.stardojo.rules import (
    acting,
    arguments,
    barns,
    carpenter,
    clock,
    codec,
    commands,
    community,
    creatures,
    farmer,
    mail,
    menus,
    mines,
    monsters,
    observe,
    quests,
    residents,
    saves,
    services,
)
from bridges.stardojo.rules.registry import COMMAND
from bridges.stardojo.rules.world import World
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
        faithful: whether menus behave as with the released mod (see ``menus.choose``).

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
        return codec.dumps(self.world)

    def restore(self, snapshot: bytes) -> None:
        """Restores what ``snapshot`` returned."""
        self.world = codec.loads(World, snapshot)
        self._pending = None

    @property
    def ready(self) -> bool:
        """Whether the mod would let an action begin: no animation, no fade."""
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
            menus.choose(self.world, option, quantity, outward != 0, faithful=self.faithful)
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
        """Lets game time pass, 60 ticks a second, and walks on."""
        while ticks > 0:
            pending = self._pending
            walking = pending is not None and not pending.done
            step = min(ticks, pending.wait) if walking and pending else ticks
            clock.advance(self.world, step)
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
            raise UnknownNameError("command", name, COMMAND.rules)
        arguments.checked(name, rule, args)
        return rule(self.world, *args)

    def observe(self, size: int = 3) -> dict[str, Any]:
        """Returns the fields of ``observe_v2`` but the picture; see ``observe.observe``."""
        return observe.observe(self.world, size, faithful=self.faithful)
