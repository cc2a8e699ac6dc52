"""The conformance suites of state spaces and of their splits into parts."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from rollout.api import Splits, StateSet, StateSpace, factor_from_data
from rollout.api.sets import ALL, EXTRAPOLATION, OUTSIDE, TRAIN
from rollout.errors import StateError, TestStateError, UnknownNameError
from rollout.testing.report import CheckFunction, Report, Skipped, Suite, must_raise, require

SMALL = 3000  # states that are enumerated; larger spaces are sampled
_SAMPLES = 200


def check_state_space(space: StateSpace, *, seed: int = 0, timeout_s: float = 60.0) -> Report:
    """Returns whether indices and states of the space correspond one to one.

    Args:
        space: the state space.
        seed: seed of the sample of states, if there are many.
        timeout_s: timeout of each check, in seconds.
    """
    checks: dict[str, CheckFunction] = {
        "size is the product": _size,
        "index and state are inverse": partial(_inverse, seed=seed),
        "refuses what does not exist": _refuses,
        "restricts": _restricts,
        "describes itself": _describes,
    }
    suite = Suite(f"state space {space.digest} of {space.size} states", timeout_s)
    return suite.run(checks, space)


def check_splits(splits: Splits, *, seed: int = 0, timeout_s: float = 60.0) -> Report:
    """Returns whether parts do not overlap, sets nest, and ``part_of`` is consistent.

    Args:
        splits: the splits.
        seed: seed of the sample of states, if there are many.
        timeout_s: timeout of each check, in seconds.
    """
    checks: dict[str, CheckFunction] = {
        "parts are a partition": partial(_partition, seed=seed),
        "sets know their states": partial(_membership, seed=seed),
        "larger sets contain smaller ones": _nesting,
        "digests are stable": _digests,
        "refuses what a part does not have": _too_large,
        "only train is trained on": partial(_trainable, seed=seed),
    }
    return Suite(f"splits of {splits.space.size} states", timeout_s).run(checks, splits)


def _some(size: int, seed: int, most: int = _SAMPLES) -> Iterator[int]:
    """Numbers below ``size``: all if it is small, otherwise the ends and a sample between."""
    if size <= SMALL:
        yield from range(size)
        return
    yield from (0, size - 1)
    rng = np.random.default_rng(seed)
    for _ in range(most):
        yield int.from_bytes(rng.bytes((size.bit_length() + 71) // 8), "little") % size


def _size(space: StateSpace) -> str:
    sizes = [factor.size for factor in space]
    require(space.size == math.prod(sizes), f"size {space.size} is not the product of {sizes}")
    return " x ".join(map(str, sizes))


def _inverse(space: StateSpace, *, seed: int) -> str:
    indices = list(_some(space.size, seed))
    for index in indices:
        state = space.state(index)
        back = space.index(state.values)
        require(state.index == index == back, f"state {index} comes back as {back}")
        require(space.index_of_digits(space.digits(index)) == index, f"digits of {index}")
    return f"{len(indices)} of {space.size} states"


def _refuses(space: StateSpace) -> str:
    for index in (-1, space.size):
        must_raise(StateError, partial(space.state, index), f"index {index}")
    values = dict(space.state(0).values)
    first = space.factors[0].name
    must_raise(StateError, partial(space.index, {**values, first: "no such value"}), "a value")
    missing = {k: v for k, v in values.items() if k != first}
    must_raise(StateError, partial(space.index, missing), f"a state without {first!r}")
    return "indices, values and missing factors"


def _restricts(space: StateSpace) -> str:
    last = space.state(space.size - 1).values
    point = space.restrict({name: (value,) for name, value in last.items()})
    require(point.size == 1, f"one value per factor leaves {point.size} states, expected 1")
    require(point.state(0).values == last, "the only state left is not the one that was kept")
    name = space.factors[0].name
    must_raise(StateError, partial(space.restrict, {name: ["no such value"]}), "a value")
    return "to a single state"


def _describes(space: StateSpace) -> str:
    data = json.loads(json.dumps(space.describe()))
    again = StateSpace(tuple(factor_from_data(each) for each in data))
    require(again == space, "the space made from its description is another one")
    require(again.digest == space.digest, "the digest of an equal space differs")
    return f"digest {space.digest}"


def _parts(splits: Splits) -> list[str]:
    """The parts, which must not overlap."""
    return [part for part in splits.names if part != ALL and splits.part_size(part)]


def _owner(splits: Splits, part: str, index: int) -> bool:
    """Returns True if ``part_of`` agrees; with one held-out factor its part is the whole."""
    named = splits.part_of(index)
    held = named.startswith(EXTRAPOLATION) and part.startswith(EXTRAPOLATION)
    return named == part or (len(splits.hold_out) == 1 and held)


def _partition(splits: Splits, *, seed: int) -> str:
    counts: dict[str, int] = {}
    for part in _parts(splits):
        states = splits.take(part)
        for k in _some(states.size, seed):
            index = states[k].index
            named = splits.part_of(index)
            require(_owner(splits, part, index), f"{part} state {index} belongs to {named}")
        counts[part] = states.size
    ordinary = sum(n for part, n in counts.items() if not part.startswith(EXTRAPOLATION))
    require(ordinary == splits.part_size(ALL), f"{counts} are not all {splits.part_size(ALL)}")
    if splits.space.size <= SMALL:
        _enumerate(splits)
    return ", ".join(f"{part} {n}" for part, n in counts.items())


def _enumerate(splits: Splits) -> None:
    """On a small space: each part has every state once, and no state is in two parts."""
    of: dict[int, str] = {}
    for part in _parts(splits):
        if part == EXTRAPOLATION and len(splits.hold_out) == 1:
            continue  # has the same states as the part of its only factor
        indices = [state.index for state in splits.take(part)]
        require(len(set(indices)) == len(indices), f"the {part} part holds a state twice")
        for index in indices:
            require(index not in of, f"state {index} is in {part} and in {of.get(index)}")
            of[index] = part
    for index in set(range(splits.space.size)) - of.keys():
        part = splits.part_of(index)
        in_none = part in (EXTRAPOLATION, OUTSIDE)
        require(in_none, f"state {index} is in no set, yet part_of says {part}")


def _sets(splits: Splits) -> Iterator[StateSet]:
    for part in splits.names:
        whole = splits.part_size(part)
        for size in sorted({1, whole // 2, whole} - {0}) if whole else ():
            for order in (0, 1):
                yield splits.take(part, size, order=order)


def _membership(splits: Splits, *, seed: int) -> str:
    sets = list(_sets(splits))
    for states in sets:
        held = {states[k].index for k in _some(states.size, seed, 20)}
        require(
            all(index in states for index in held), f"{states.name} does not know its own states"
        )
        if splits.space.size <= SMALL:
            known = {index for index in range(splits.space.size) if index in states}
            require(known == held, f"{states.name}: {len(known)} states known, {len(held)} listed")
    return f"{len(sets)} sets"


def _nesting(splits: Splits) -> str:
    pairs = 0
    for part in splits.names:
        whole = splits.part_size(part)
        for order in (0, 1):
            for size in sorted({1, 2, whole // 2} & set(range(1, min(whole, SMALL)))):
                small, large = (splits.take(part, n, order=order) for n in (size, size + 1))
                for k in range(size):
                    same = small[k] == large[k]
                    require(same, f"{part} of {size} and of {size + 1} differ at {k}")
                pairs += 1
    if not pairs:
        raise Skipped("every part has a single state")
    return f"{pairs} pairs"


def _digests(splits: Splits) -> str:
    other = dataclasses.replace(splits, hold_out=copy.deepcopy(splits.hold_out))
    seen: dict[str, str] = {}
    for states in _sets(splits):
        again = other.take(states.part, states.size, order=states.order)
        require(again.digest == states.digest, f"{states.name}: an equal set has another digest")
        what = f"{states.part} {states.size} {states.order}"
        require(states.digest not in seen, f"{what} and {seen.get(states.digest)} share a digest")
        seen[states.digest] = what
    json.dumps(splits.describe())
    return f"{len(seen)} digests, all different"


def _too_large(splits: Splits) -> str:
    for part in splits.names:
        size = splits.part_size(part)
        for asked in (0, size + 1):
            must_raise(StateError, partial(splits.take, part, asked), f"{asked} of {part}")
    must_raise(UnknownNameError, partial(splits.take, "no such part"), "an unknown part")
    return "sizes 0 and one too many, unknown parts"


def _trainable(splits: Splits, *, seed: int) -> str:
    for part in splits.names:
        if not splits.part_size(part):
            continue
        states = splits.take(part)
        if part == TRAIN:
            states.require_trainable()
        else:
            must_raise(TestStateError, states.require_trainable, f"training on {part}")
        if part == ALL:
            continue
        for k in _some(states.size, seed, 20):
            ask = partial(splits.require_trainable, states[k].index)
            if part == TRAIN:
                ask()
            else:
                must_raise(TestStateError, ask, f"training on a {part} state")
    return "held-out sets and states refused"
