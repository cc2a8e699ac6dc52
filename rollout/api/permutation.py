"""A keyed permutation of ``0 .. size-1`` for any size, in constant memory.

A balanced Feistel network over the smallest even number of bits that holds ``size``, with
cycle-walking: a value that falls outside is encrypted again until it falls inside (Black and
Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Both directions cost a few hash calls;
nothing is stored, so even 10^20 states take no memory.
"""

from __future__ import annotations

import hashlib
import operator

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
        value = self._encrypt(self._check(position))
        while value >= self.size:
            value = self._encrypt(value)
        return value

    def position(self, element: int) -> int:
        """Returns where ``element`` stands: the inverse of calling the permutation."""
        value = self._decrypt(self._check(element))
        while value >= self.size:
            value = self._decrypt(value)
        return value

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

    def _encrypt(self, value: int) -> int:
        left, right = value >> self._half, value & self._mask
        for i in range(_ROUNDS):
            left, right = right, left ^ self._hash(i, right)
        return (left << self._half) | right

    def _decrypt(self, value: int) -> int:
        left, right = value >> self._half, value & self._mask
        for i in reversed(range(_ROUNDS)):
            left, right = right ^ self._hash(i, left), left
        return (left << self._half) | right
