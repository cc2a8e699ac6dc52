"""A keyed permutation of ``0 .. size-1`` for any size, in constant memory.

A balanced Feistel network over the smallest even number of bits that holds ``size``, with
cycle-walking: a value that falls outside is encrypted again until it falls inside (Black and
Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Both directions cost a few hash calls;
nothing is stored, so even 10^20 states take no memory.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.errors import StateError

_ROUNDS = 6  # four give a strong pseudo-random permutation (Luby and Rackoff, 1988); two to spare


class Permutation:
    """A bijection of ``range(size)``, chosen by ``key``.

    The same key and size give the same permutation on every machine and in every version of
    Python, because only BLAKE2b and integer arithmetic are used.
    """

    __slots__ = ("_half", "_mask", "_rounds", "key", "size")

    def __init__(self, size: int, key: bytes) -> None:
        if size < 1:
            raise StateError(f"a permutation needs at least one element, got size={size}")
        self.size = size
        self.key = key
        bits = max(2, (size - 1).bit_length())
        self._half = (bits + 1) // 2
        self._mask = (1 << self._half) - 1
        self._rounds = tuple(
            hashlib.blake2b(key, digest_size=8, person=b"gamut-%d" % i) for i in range(_ROUNDS)
        )

    def __call__(self, position: int) -> int:
        """Returns the element at ``position``; both are in ``range(size)``."""
        return self._walk(self._check(position), inverse=False)

    def position(self, element: int) -> int:
        """Returns where ``element`` stands: the inverse of calling the permutation."""
        return self._walk(self._check(element), inverse=True)

    def many(self, values: NDArray[Any], *, inverse: bool = False) -> NDArray[Any]:
        """Permutes an array of integers below ``size``; faster than one by one for ``int64``.

        Args:
            values: positions; elements if ``inverse``. ``int64``, or Python integers as ``object``.
            inverse: returns positions of elements instead.
        """
        if values.dtype == np.object_:
            out: NDArray[Any] = np.empty(len(values), np.object_)
            out[:] = [self._walk(int(value), inverse=inverse) for value in values]
            return out
        out = self._network(values, self._hash_many, inverse=inverse)
        while len(outside := np.flatnonzero(out >= self.size)):
            out[outside] = self._network(out[outside], self._hash_many, inverse=inverse)
        return out

    def __reduce__(self) -> tuple[type[Permutation], tuple[int, bytes]]:
        return type(self), (self.size, self.key)  # the hash states cannot travel; key and size do

    def _check(self, value: int) -> int:
        value = operator.index(value)  # numpy's integers would overflow on the way
        if not 0 <= value < self.size:
            raise StateError(f"expected 0 <= value < {self.size}, got {value}")
        return value

    def _hash(self, round_index: int, value: int) -> int:
        state = self._rounds[round_index].copy()
        state.update(value.to_bytes((self._half + 7) // 8, "little"))
        word = int.from_bytes(state.digest(), "little")
        if self._half > 64:  # wider halves than one digest: stretch it
            wide = hashlib.shake_128(state.digest()).digest((self._half + 7) // 8)
            word = int.from_bytes(wide, "little")
        return word & self._mask

    def _hash_many(self, round_index: int, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Hashes what is different once."""
        different, where = np.unique(values, return_inverse=True)
        words = [self._hash(round_index, value) for value in different.tolist()]
        return np.array(words, np.int64)[where]

    def _walk(self, value: int, *, inverse: bool) -> int:
        value = self._network(value, self._hash, inverse=inverse)
        while value >= self.size:
            value = self._network(value, self._hash, inverse=inverse)
        return value

    def _network(self, value: Any, mix: Callable[[int, Any], Any], *, inverse: bool) -> Any:
        """One pass over an integer, or over an array of them."""
        fixed, mixed = value >> self._half, value & self._mask
        if inverse:
            fixed, mixed = mixed, fixed
        for i in reversed(range(_ROUNDS)) if inverse else range(_ROUNDS):
            fixed, mixed = mixed, fixed ^ mix(i, mixed)
        if inverse:
            fixed, mixed = mixed, fixed
        return (fixed << self._half) | mixed
