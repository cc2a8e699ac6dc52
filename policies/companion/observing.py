"""What a companion perceives: records made from a frame's details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.companion.schemas import (
    BotState,
    ChatMessage,
    Entity,
    Environment,
    Inventory,
    Movement,
    Position,
    StateChange,
)
from rollout.api import clean_text

_LINE, _NAME = 250, 120
_FACTS = (
    *("item", "block", "properties", "count", "tool", "to", "thrower", "region", "entity"),
    "position",
)
_BLOCKS, _ENTITIES, _CHAT = 24, 16, 16


def bot_state(
    details: Mapping[str, Any],
    *,
    goal: str = "",
    chat: Sequence[ChatMessage] = (),
    chests: Sequence[str] = (),
) -> BotState:
    """Returns the state of an agent.

    Args:
        details: of the frame.
        goal: what it is doing.
        chat: the recent lines of the chat.
        chests: containers that it saw or used lately.
    """
    life, at = details.get("life_stats", {}), details.get("location_stats", {})
    running = bool(details.get("code_info", {}).get("is_running"))
    worn = details.get("equip", {})
    weather = "rain" if at.get("is_raining") else "clear"
    return BotState(
        time=int(details.get("tick", 0)),
        position=_position(at.get("pos", (0, 0, 0))),
        health=min(40, max(0, round(life.get("life", 0)))),
        hunger=min(20, max(0, round(life.get("food", 0)))),
        nearby_blocks=[_block(each) for each in details.get("blocks_in_sight", ())][:_BLOCKS],
        equipment=[f"{slot}: {item[0]}" for slot, item in worn.items() if item[1]],
        inventory=Inventory(items=items_of(details)),
        chests=list(chests[-32:]),
        movement=Movement(goal=goal, state="running" if running else "still"),
        nearby_entities=[_entity(each) for each in details.get("entities", ())[:_ENTITIES]],
        recent_chat=[f"{line.who}: {line.text}" for line in chat[-_CHAT:]],
        environment=Environment(
            biome=str(at.get("biome", "")), weather=weather, time=int(details.get("time", 0))
        ),
    )


def items_of(details: Mapping[str, Any]) -> dict[str, int]:
    """Returns the items that an agent carries: counts by name."""
    found: Counter[str] = Counter()
    for each in details.get("inventory_all", {}).values():
        found[str(each["name"])] += int(each["count"])
    return dict(found)


def _position(place: Sequence[float]) -> Position:
    x, y, z = (round(float(each), 2) for each in place)
    return Position(x=x, y=y, z=z)


def _block(each: Mapping[str, Any]) -> str:
    count = f" ({each['count']})" if each["count"] > 1 else ""
    return f"{each['name']}{count} at {', '.join(map(str, each['nearest']))}"


def _entity(each: Mapping[str, Any]) -> Entity:
    return Entity(
        name=one_line(str(each["name"]))[:_NAME] or "?",
        kind=str(each.get("kind", ""))[:_NAME],
        distance=float(each["distance"]),
        position=_position(each["position"]),
        health=float(each["health"]) if each.get("health") is not None else None,
    )


def one_line(text: str) -> str:
    """Returns a text as one line that any file can hold; see ``rollout.api.clean_text``."""
    return clean_text(" ".join(text.split()))


def heard(details: Mapping[str, Any]) -> Iterator[ChatMessage]:
    """Yields the lines of the chat since the last frame, also the agent's own."""
    for event in details.get("event", ()):
        text = one_line(str(event.get("only_message", "")))[:_LINE]
        who = str(event.get("username", ""))[:_NAME]
        if event.get("type") == "chat" and text and who:
            yield ChatMessage(who=who, text=text, tick=max(0, int(event.get("tick", 0))))


def used_chests(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the key and a description of each container used since the last frame."""
    for event in details.get("trace", ()):
        kind, place = event.get("type"), event.get("position")
        if kind in ("opened", "took", "put") and isinstance(place, Sequence):
            key = f"{event.get('block', 'chest')} at {', '.join(map(str, place))}"
            moved = f" {event.get('count')} {event.get('item')}" if kind != "opened" else ""
            yield one_line(key)[:_NAME], one_line(f"{kind}{moved}")[:_LINE]


def deeds(details: Mapping[str, Any]) -> Iterator[str]:
    """Yields what happened since the last frame, of the trace, in words."""
    for event in details.get("trace", ()):
        kind = str(event.get("type", ""))
        if kind in ("chat", "violation", ""):
            continue
        facts = {key: event[key] for key in _FACTS if event.get(key) not in (None, "", {})}
        told = (f"{key} {_short(value)}" for key, value in facts.items())
        yield one_line(f"{event.get('who', '')} {kind}: {', '.join(told)}")[:_LINE]


def _short(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


def changes(before: BotState, after: BotState) -> list[StateChange]:
    """Returns the differences between two states: items, health, hunger, place, blocks in sight."""
    found = []
    own, now = before.inventory.items, after.inventory.items
    for name in sorted(own.keys() | now.keys()):
        had, has = own.get(name, 0), now.get(name, 0)
        if had != has:
            found.append(_change(f"inventory.{name}", had, has, f"{has - had:+d} {name}"))
    for key in ("health", "hunger"):
        was, is_ = getattr(before, key), getattr(after, key)
        if was != is_:
            found.append(_change(key, was, is_, f"{is_ - was:+d}"))
    if before.position != after.position:
        was, is_ = before.position.model_dump(), after.position.model_dump()
        found.append(_change("position", was, is_, "moved"))
    gone = [each for each in before.nearby_blocks if each not in after.nearby_blocks]
    new = [each for each in after.nearby_blocks if each not in before.nearby_blocks]
    if gone or new:
        found.append(_change("nearby_blocks", "; ".join(gone)[:900], "; ".join(new)[:900], ""))
    return found[:64]


def _change(key: str, previous: Any, current: Any, description: str) -> StateChange:
    return StateChange(key=key[:_NAME], previous=previous, current=current, description=description)
