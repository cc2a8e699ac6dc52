"""Messages of a journal that contain their own checksum, so that damage is noticed and passed over.

A journal is an Arrow IPC stream: a message with the schema, then one for each batch. Each has a
*note* in its metadata, text of fixed length: a CRC-32 of the whole message (computed with zeros in
its place), one of the rest of the note, the length of the message, and the numbers of rows and of
finished episodes before and after it. After damage, reading continues at the next message whose
checksum is right, and the notes give the number of rows between. Journals of earlier versions have
no notes; there, a message counts as whole if Arrow can read it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

NOTE_KEY = "check"
MARK = b"\xff\xff\xff\xff"
"""The beginning of every message."""

_PREFIX = 8  # bytes: the mark and the length of the metadata
_NOTE = re.compile(
    rb"gamut\.check:(?P<crc>[0-9a-f]{8}) (?P<own>[0-9a-f]{8}) (?P<numbers>(?:[0-9a-f]{12} ?){5})"
)
_BLANK = b"0" * 8
# A mark, a length below 16 MiB, an offset below 64 KiB: white pixels do not begin like this.
_BEGIN = re.compile(rb"\xff{4}...\x00..\x00\x00", re.DOTALL)
_CHUNK = 1 << 22  # bytes read at once while searching


class Note(NamedTuple):
    """The size of a message and its place in the journal, in rows and in finished episodes.

    Attributes:
        nbytes: bytes of the message.
        row, next_row: rows before it and up to its end.
        end, next_end: finished episodes before it and up to its end.
    """

    nbytes: int
    row: int
    next_row: int
    end: int
    next_end: int

    def text(self, crc: bytes = _BLANK) -> bytes:
        """Returns the text in the metadata."""
        numbers = b" ".join(b"%012x" % number for number in self)
        return b"gamut.check:%b %08x %b" % (crc, zlib.crc32(numbers), numbers)


@dataclass(frozen=True)
class Message:
    """A message and its note, None in a journal without notes."""

    raw: bytes
    note: Note | None


def seal(message: memoryview, blank: Note) -> None:
    """Completes the note of a message that was written with the note ``blank``, in place."""
    text = blank.text()
    end = _PREFIX + int.from_bytes(message[4:_PREFIX], "little")
    at = bytes(message[:end]).index(text)
    message[at : at + len(text)] = text = blank._replace(nbytes=len(message)).text()
    begin = at + text.index(_BLANK)
    message[begin : begin + len(_BLANK)] = b"%08x" % zlib.crc32(message)


def has_notes(file: BinaryIO) -> bool:
    """Returns True if the messages of a journal have notes; looks at the first ones."""
    return any(_NOTE.search(chunk) for _, chunk in _chunks(file, 0, 4 * _CHUNK))


def message_at(file: BinaryIO, at: int, size: int, *, noted: bool) -> Message | None:
    """Returns the message that begins at a byte of a journal of ``size`` bytes.

    None if there is none, it is not complete, or its checksum is wrong.
    """
    head, metadata = _head(file, at, size)
    if noted:
        for match, note in _notes(metadata):
            if at + note.nbytes <= size and note.nbytes >= len(head) + len(metadata):
                raw = head + metadata + file.read(note.nbytes - len(head) - len(metadata))
                begin, end = (edge + _PREFIX for edge in match.span("crc"))
                crc = zlib.crc32(raw[end:], zlib.crc32(_BLANK, zlib.crc32(raw[:begin])))
                if len(raw) == note.nbytes and b"%08x" % crc == match["crc"]:
                    return Message(raw, note)
                file.seek(at + _PREFIX + len(metadata))
        return None
    body = _body_length(metadata)
    if body is None or at + _PREFIX + len(metadata) + body > size:
        return None
    return Message(head + metadata + file.read(body), None)


def candidates(file: BinaryIO, at: int, size: int) -> Iterator[int]:
    """Yields the offsets at which messages may begin, from a byte of the journal on."""
    for start, chunk in _chunks(file, at, size - at):
        for match in _BEGIN.finditer(chunk):
            yield start + match.start()


def is_torn(file: BinaryIO, at: int, size: int) -> bool:
    """Returns True if the bytes from ``at`` to the end are the beginning of one message."""
    file.seek(at)
    if not MARK.startswith(file.read(min(4, size - at))):
        return False
    if size - at < _PREFIX:
        return True
    if any(note.nbytes <= size - at for note in notes_in(file, at, size)):
        return False  # it was complete
    file.seek(at + 4)
    length = int.from_bytes(file.read(4), "little", signed=True)
    if length <= 0 or length > size - at - _PREFIX:
        return length > 0
    body = _body_length(_head(file, at, size)[1])
    return body is not None and at + _PREFIX + length + body > size


def notes_in(file: BinaryIO, at: int, size: int) -> list[Note]:
    """Returns the undamaged notes in a part of a journal, of messages that need not be whole."""
    found = (_notes(chunk) for _, chunk in _chunks(file, at, size - at))
    return [note for notes in found for _, note in notes]


def _notes(data: bytes) -> Iterator[tuple[re.Match[bytes], Note]]:
    for match in _NOTE.finditer(data):
        if b"%08x" % zlib.crc32(match["numbers"]) == match["own"]:
            yield match, Note._make(int(number, 16) for number in match["numbers"].split())


def _head(file: BinaryIO, at: int, size: int) -> tuple[bytes, bytes]:
    """The prefix and the metadata of a message, both empty if they are not there."""
    file.seek(at)
    prefix = file.read(_PREFIX)
    length = int.from_bytes(prefix[4:], "little", signed=True)
    if prefix[:4] != MARK or not 0 < length <= size - at - _PREFIX:
        return b"", b""
    return prefix, file.read(length)


def _body_length(metadata: bytes) -> int | None:
    """The field ``bodyLength``, the fourth of Arrow's ``Message``; None without metadata."""
    try:
        (table,) = struct.unpack_from("<I", metadata, 0)
        (back,) = struct.unpack_from("<i", metadata, table)
        if back >= table:
            return None
        width, _, *slots = struct.unpack_from("<6H", metadata, table - back)
        if width < 12 or not slots[3]:
            return 0
        (body,) = struct.unpack_from("<q", metadata, table + slots[3])
        return int(body) if body >= 0 else None
    except struct.error:
        return None


def _chunks(file: BinaryIO, at: int, nbytes: int) -> Iterator[tuple[int, bytes]]:
    """Yields pieces of the file with their offsets; pieces overlap by a note."""
    overlap = 128
    end = at + nbytes
    while at < end:
        file.seek(at)
        chunk = file.read(min(_CHUNK, end - at))
        yield at, chunk
        if len(chunk) < _CHUNK:
            return
        at += len(chunk) - overlap
