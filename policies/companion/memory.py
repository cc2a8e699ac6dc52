"""The memory of a companion: a typed store with provenance, scope and staleness."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from policies.companion.schemas import (
    MemoryEntry,
    MemoryKind,
    Provenance,
    Record,
    Scope,
    Source,
    UserData,
    describe_error,
    position_of,
)
from rollout.errors import ConfigError
from rollout.files import locked, parse_json, read_document, write_atomically

MOST_ENTRIES = 512
_TRUST: tuple[Provenance, ...] = ("inferred", "told", "seen")
_PATIENT_S = 10.0  # for the file that another run writes
_NEAR = 32.0  # blocks at which closeness counts half
_WORD = re.compile(r"[a-z0-9]+")
_IGNORED = frozenset(
    _WORD.findall(
        "a an and at by can do for from get give go i in is it me my of on or please some that the "
        "this to you your with"
    )
)


class MemoryFile(Record):
    """A file of memories: they hold in one world only."""

    world: str = Field(min_length=1, max_length=400)
    entries: list[MemoryEntry] = Field(default_factory=list, max_length=MOST_ENTRIES)
    user: UserData = UserData()


@dataclass(frozen=True)
class Memory:
    """Memories of one world; an immutable value, so that a step that is repeated is the same.

    Attributes:
        world: the world they belong to.
        entries: the memories, by id.
        user: the profile of the player.
    """

    world: str
    entries: Mapping[int, MemoryEntry] = field(default_factory=dict)
    user: UserData = field(default_factory=UserData)

    def remember(
        self,
        kind: MemoryKind,
        key: str,
        value: Any,
        provenance: Provenance,
        *,
        source: Source | None = None,
        scope: Scope | None = None,
        tick: int = 0,
        confidence: float = 1.0,
    ) -> Memory:
        """Returns the memory with an entry more, which replaces one of the same key and scope.

        What is inferred replaces nothing that was seen or told, unless that is stale. Beyond
        ``MOST_ENTRIES`` the entry that was used least and longest ago is forgotten.

        Raises:
            pydantic.ValidationError: the entry breaks the bounds of ``MemoryEntry``.
        """
        entry = MemoryEntry(
            id=max(self.entries, default=0) + 1,
            kind=kind,
            key=key,
            value=value,
            provenance=provenance,
            source=source or Source(),
            scope=scope or Scope(),
            created_tick=tick,
            last_used_tick=tick,
            confidence=confidence,
        )
        return self._with(entry)

    def _with(self, entry: MemoryEntry) -> Memory:
        found = dict(self.entries)
        for each in self.entries.values():
            if _names_same(each, entry):
                trusted = each.provenance != "inferred" and not each.stale
                if entry.provenance == "inferred" and trusted:
                    return self
                del found[each.id]
        found[entry.id] = entry
        if len(found) > MOST_ENTRIES:
            least = min(
                (each for each in found.values() if each.id != entry.id),
                key=lambda each: (each.uses, each.last_used_tick, each.id),
            )
            del found[least.id]
        return replace(self, entries=found)

    def mark_stale(self, *ids: int) -> Memory:
        """Returns the memory in which entries wait for confirmation."""
        return self._changed(ids, stale=True)

    def confirm(self, *ids: int, tick: int = 0) -> Memory:
        """Returns the memory in which entries hold again, as seen at a tick."""
        return self._changed(ids, stale=False, provenance="seen", last_used_tick=tick)

    def used(self, *ids: int, tick: int = 0) -> Memory:
        """Returns the memory in which a use of entries is counted."""
        found = dict(self.entries)
        for number in ids:
            each = found[number]
            found[number] = each.model_copy(update={"uses": each.uses + 1, "last_used_tick": tick})
        return replace(self, entries=found)

    def _changed(self, ids: Iterable[int], **values: Any) -> Memory:
        changed = {number: self.entries[number].model_copy(update=values) for number in ids}
        return replace(self, entries={**self.entries, **changed})

    def nearest(
        self,
        query: str,
        *,
        k: int = 8,
        scope: Scope | None = None,
        position: Sequence[float] | None = None,
    ) -> list[MemoryEntry]:
        """Returns the ``k`` entries nearest to a request, best first.

        Entries of another player, family of tasks or area are left out. Nearness is the share of
        the entry's words that the request has, then provenance (seen before told before inferred),
        how close the place is, and how often it was used.

        Args:
            query: the request or subtask, in words.
            k: maximum number of entries.
            scope: what the entries are for; empty fields take any.
            position: where the agent is, x, y, z in blocks.
        """
        words, wanted = words_of(query), scope or Scope()
        ranked = sorted(
            (each for each in self.entries.values() if _fits(each.scope, wanted)),
            key=lambda each: (-_nearness(each, words, position), -each.uses, each.id),
        )
        return ranked[:k]

    def binding(self, slot: str, scope: Scope | None = None) -> MemoryEntry | None:
        """Returns the entry that binds a slot of a request; None if none does.

        It is a preference whose key has all words of the slot, and that is not stale.
        """
        words, wanted = words_of(slot), scope or Scope()
        found = [
            each
            for each in self.entries.values()
            if each.kind == "preference"
            and not each.stale
            and words
            and words <= words_of(each.key)
            and _fits(each.scope, wanted)
        ]
        return max(found, key=lambda each: (each.last_used_tick, each.id), default=None)

    def joined(self, other: Memory) -> Memory:
        """Returns the memory with the entries of another whose names it has not."""
        own = {_name_of(each) for each in self.entries.values()}
        number = max(self.entries, default=0)
        joined = self
        for each in other.entries.values():
            if _name_of(each) not in own:
                number += 1
                joined = joined._with(each.model_copy(update={"id": number}))
        return joined

    def save_with(self, path: Path) -> None:
        """Writes the memory to a file, with what other runs have written there since.

        Raises:
            ConfigError: the file cannot be read, or belongs to another world.
            OSError: it cannot be written, or another run has held it for long.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(f"{path.name}.lock"), _PATIENT_S, "companion memory"):
            known = load_memory(path, self.world) if path.is_file() else self
            self.joined(known).save(path)

    def save(self, path: Path) -> None:
        """Writes the memory to a file, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        file = MemoryFile(world=self.world, entries=list(self.entries.values()), user=self.user)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, file.model_dump_json(indent=1) + "\n", fsync=False)


def load_memory(path: Path, world: str) -> Memory:
    """Returns the memory in a file.

    Raises:
        ConfigError: it cannot be read, or belongs to another world.
    """
    try:
        file = MemoryFile.model_validate(parse_json(read_document(path)))
    except ValidationError as error:
        raise ConfigError(f"the memory {path}: {describe_error(error)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"the memory {path} cannot be read: {error}") from error
    if file.world != world:
        raise ConfigError(
            f"the memory {path} belongs to the world {file.world!r}, and this episode plays in "
            f"{world!r}; places of one world are false in another: name another file, or none"
        )
    return Memory(world, {each.id: each for each in file.entries}, file.user)


def given_memory(
    world: str, given: Mapping[str, Any], source: str, origin: Sequence[float] = (0, 0, 0)
) -> Memory:
    """Returns what a companion is given to know: the keys ``memory`` and ``user``.

    Args:
        world: the world.
        given: the metadata of a task, or the details of a first frame.
        source: what it is, for messages.
        origin: what places are relative to, x, y, z in blocks; nothing for absolute ones.

    Raises:
        ConfigError: an entry or the profile is not valid.
    """
    corner = [math.floor(each) for each in origin]
    found: dict[int, MemoryEntry] = {}
    entries = given.get("memory") or []
    if not isinstance(entries, list):
        raise ConfigError(f"{source}: memory: expected a list, got {entries!r}")
    for number, data in enumerate(entries, 1):
        try:
            entry = MemoryEntry.model_validate({**data, "id": number})
        except (ValidationError, TypeError) as error:
            said = describe_error(error) if isinstance(error, ValidationError) else error
            raise ConfigError(f"{source}: memory[{number - 1}]: {said}") from error
        place = position_of(entry.value)
        if place is not None and any(corner):
            moved: Any = [a + b for a, b in zip(corner, place, strict=True)]
            value = {**entry.value, "position": moved} if isinstance(entry.value, dict) else moved
            entry = entry.model_copy(update={"value": value})
        found[entry.id] = entry
    try:
        user = UserData.model_validate(given.get("user") or {})
    except ValidationError as error:
        raise ConfigError(f"{source}: user: {describe_error(error)}") from error
    return Memory(world, found, user)


@functools.lru_cache(maxsize=4 * MOST_ENTRIES)
def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text that tell it from others, in lower case and singular."""
    found = _WORD.findall(text.casefold().replace("_", " "))
    return frozenset(
        each.removesuffix("s") if len(each) > 3 else each for each in found if each not in _IGNORED
    )


def _names_same(one: MemoryEntry, other: MemoryEntry) -> bool:
    return _name_of(one) == _name_of(other)


def _name_of(entry: MemoryEntry) -> tuple[str, ...]:
    """Returns what one memory is named by: there is one of a kind, key and scope."""
    scope = entry.scope
    return entry.kind, entry.key.casefold(), scope.player, scope.task_family, scope.area


def _fits(scope: Scope, wanted: Scope) -> bool:
    """Returns whether entries of a scope may be used where another is wanted."""
    pairs = (
        (scope.player, wanted.player),
        (scope.task_family, wanted.task_family),
        (scope.area, wanted.area),
    )
    return all(not has or not wants or has == wants for has, wants in pairs)


def _nearness(entry: MemoryEntry, words: frozenset[str], position: Sequence[float] | None) -> float:
    own = words_of(entry.key) or frozenset({""})
    shared = len(own & words) / len(own)
    text = 0.5 * bool(words_of(str(entry.value)) & words)
    place = position_of(entry.value)
    close = 0.0
    if place is not None and position is not None:
        close = 1 / (1 + math.dist(place, position) / _NEAR)
    trust = _TRUST.index(entry.provenance) / 10
    return 4 * shared + text + trust + 0.2 * close - 0.5 * entry.stale
