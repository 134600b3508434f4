"""Entries of the log, and the runs of them that EVENTS frames carry (FORMAT.md section 8, SPEC.md section 5)."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from .codec import Reader, Writer
from .crc32c import crc32c
from .errors import DecodeError, named_in
from .kinds import NUMBER_MAX, Kind
from .records import bitmap_of, read_bitmap
from .varint import I64_MAX, I64_MIN, U64_MAX, read_varint

CREATED, UPDATED, DELETED, KIND, ORIGIN, IMPORT_BEGAN, IMPORT_ENDED, TOKEN, RECOVERED = 1, 2, 3, 16, 17, 18, 19, 20, 21

#: Entry types to names. A type that is not here is skipped by readers and kept by writers.
ENTRY_NAMES: Dict[int, str] = {
    CREATED: "created", UPDATED: "updated", DELETED: "deleted", KIND: "kind", ORIGIN: "origin",
    IMPORT_BEGAN: "import_began", IMPORT_ENDED: "import_ended", TOKEN: "token", RECOVERED: "recovered",
}
ENTRY_BYTES_MAX = (1 << 20) + (64 << 10)
ENDED_COUNTS = ("read", "created", "updated", "unchanged", "duplicate", "already_saved", "skipped", "refused")
WRITTEN_COUNTS = ("created", "updated", "unchanged", "duplicate", "already_saved", "not_found", "deleted", "refused")
COMPACTED_COUNTS = ("bytes_before", "bytes_after", "segments", "rewritten", "dropped", "aside_removed",
                    "subscriptions_ended")


class Frame(NamedTuple):
    """Where an entry lies: `data[start:end]` with its length and CRC; the body is `data[body:end - 4]`."""

    type: int
    seq: int
    start: int
    body: int
    end: int


def read_frame(data: bytes, offset: int, limit: int, first_seq: int, verify: bool = True) -> Frame:
    """Framing of the entry at `offset`, which may take the bytes up to `limit`.

    With `verify` its CRC is checked. Raises `DecodeError` (`corrupt`, `not_canonical`), at the entry's start but for the
    seq difference.
    """
    try:
        if offset >= limit:
            raise DecodeError("truncated", offset, "an entry is needed")
        length, at = read_varint(data, offset)
        end = at + length
        if length < 6 or length > ENTRY_BYTES_MAX:
            raise DecodeError("corrupt", offset, f"an entry of {length} bytes")
        if end > limit:
            raise DecodeError("truncated", offset, f"an entry of {length} bytes, {limit - at} are left")
        kind = data[at]
        difference = data[at + 1]
        body = at + 2
        if difference >= 0x80:
            difference, body = read_varint(data[:end - 4], at + 1)
        seq = first_seq + difference
        if not 1 <= seq <= U64_MAX:
            raise DecodeError("corrupt", offset, f"a seq of {seq}")
        if verify:
            stored = int.from_bytes(data[end - 4:end], "little")
            if entry_crc(seq, data[offset:end - 4]) != stored:
                raise DecodeError("corrupt", offset, "the entry's CRC does not match")
        return Frame(kind, seq, offset, body, end)
    except DecodeError as error:
        raise named_in(error, "corrupt")


def entry_crc(seq: int, data: bytes) -> int:
    """The CRC of an entry: of its seq as u64, then of its bytes before the CRC."""
    return crc32c(data, crc32c(seq.to_bytes(8, "little")))


def frame_entry(kind: int, seq: int, first_seq: int, body: bytes) -> bytes:
    """An entry's bytes around its body."""
    inner = Writer().u8(kind).varint(seq - first_seq).raw(body).done()
    framed = Writer().varint(len(inner) + 4).raw(inner).done()
    return framed + entry_crc(seq, framed).to_bytes(4, "little")


def read_changes(data: bytes, offset: int) -> Tuple[List[int], int]:
    """The numbers of an updated entry's changed fields."""
    return read_bitmap(data, offset)


def decode_entry(data: bytes, first_seq: int, time: int = 0, verify: bool = True) -> Dict[str, Any]:
    """One whole entry as a dict: `type` (a name, or the number when unknown), `seq`, and its body's fields.

    Records and keys stay bytes. `time` is its commit's, from which an updated entry's first saved time is told.
    """
    frame = read_frame(data, 0, len(data), first_seq, verify)
    if frame.end != len(data):
        raise DecodeError("corrupt", frame.end, f"{len(data) - frame.end} bytes are left over")
    return decode_body(frame, data, time)


def decode_body(frame: Frame, data: bytes, time: int = 0) -> Dict[str, Any]:
    """The fields of a framed entry. Raises `DecodeError` (`corrupt`, `not_canonical`, `bad_text`)."""
    try:
        return _read_body(frame, data, time)
    except DecodeError as error:
        raise named_in(error, "corrupt", "bad_message")


def _read_body(frame: Frame, data: bytes, time: int) -> Dict[str, Any]:
    reader = Reader(data[:frame.end - 4], frame.body)
    entry: Dict[str, Any] = {"type": ENTRY_NAMES.get(frame.type, frame.type), "seq": frame.seq}
    seq = frame.seq
    if frame.type == CREATED:
        entry.update(kind=_kind(reader), origin=reader.varint(), first_seq=seq, saved_at=time, record=reader.rest())
    elif frame.type == UPDATED:
        entry.update(flags=_flags(reader, 1), kind=_kind(reader), origin=reader.varint(),
                     first_seq=seq - _difference(reader, seq), saved_at=_saved_at(reader, time))
        entry["previous_seq"] = _previous(reader, seq)
        entry["changed"], reader.offset = read_changes(reader.data, reader.offset)
        entry["record"] = reader.rest()
    elif frame.type == DELETED:
        entry.update(flags=_flags(reader, 0), kind=_kind(reader), origin=reader.varint(),
                     first_seq=seq - _difference(reader, seq))
        entry.update(previous_seq=_previous(reader, seq), key=reader.rest())
    elif frame.type == KIND:
        entry["kind"] = Kind.read(reader)
    elif frame.type == ORIGIN:
        entry.update(number=reader.varint(), name=reader.text(), token=reader.text())
    elif frame.type == IMPORT_BEGAN:
        entry.update(origin=reader.varint(), source=reader.text())
    elif frame.type == IMPORT_ENDED:
        entry["origin"] = reader.varint()
        at = reader.offset
        entry["outcome"] = reader.u8()
        if not 1 <= entry["outcome"] <= 3:
            raise DecodeError("corrupt", at, f"an outcome of {entry['outcome']}")
        entry["counts"] = {name: reader.varint() for name in ENDED_COUNTS}
    elif frame.type == TOKEN:
        entry.update(origin=reader.varint(), batch=reader.varint(),
                     counts={name: reader.varint() for name in WRITTEN_COUNTS})
    elif frame.type == RECOVERED:
        entry["from"] = reader.varint()
        entry["to"] = reader.varint()
    else:
        entry["body"] = reader.rest()
    reader.finish("corrupt")
    return entry


def _flags(reader: Reader, mask: int) -> int:
    at = reader.offset
    flags = reader.varint()
    if flags & ~mask:
        raise DecodeError("corrupt", at, f"flags of {flags}")
    return flags


def _kind(reader: Reader) -> int:
    at = reader.offset
    number = reader.varint()
    if not 1 <= number <= NUMBER_MAX:
        raise DecodeError("corrupt", at, f"the kind {number}")
    return number


def _saved_at(reader: Reader, time: int) -> int:
    at = reader.offset
    saved_at = time + reader.svarint()
    if not I64_MIN <= saved_at <= I64_MAX:
        raise DecodeError("corrupt", at, "a first saved time beyond 64 bits")
    return saved_at


def _difference(reader: Reader, seq: int) -> int:
    at = reader.offset
    difference = reader.varint()
    if difference >= seq:
        raise DecodeError("corrupt", at, "a difference that leads below seq 1")
    return difference


def _previous(reader: Reader, seq: int) -> int:
    difference = _difference(reader, seq)
    return seq - difference if difference else 0


def encode_entry(entry: Dict[str, Any], first_seq: int, time: int = 0) -> bytes:
    """An entry from the dict form of `decode_entry`."""
    name, seq = entry["type"], entry["seq"]
    out = Writer()
    number = next((key for key, value in ENTRY_NAMES.items() if value == name), name)
    if name == "created":
        out.varint(entry["kind"]).varint(entry["origin"]).raw(entry["record"])
    elif name == "updated":
        previous = entry["previous_seq"]
        out.varint(entry["flags"]).varint(entry["kind"]).varint(entry["origin"]).varint(seq - entry["first_seq"])
        out.svarint(entry["saved_at"] - time).varint(seq - previous if previous else 0)
        out.raw(bitmap_of(entry["changed"])).raw(entry["record"])
    elif name == "deleted":
        previous = entry["previous_seq"]
        out.varint(entry["flags"]).varint(entry["kind"]).varint(entry["origin"]).varint(seq - entry["first_seq"])
        out.varint(seq - previous if previous else 0).raw(entry["key"])
    elif name == "kind":
        out.raw(entry["kind"].encode())
    elif name == "origin":
        out.varint(entry["number"]).text(entry["name"]).text(entry["token"])
    elif name == "import_began":
        out.varint(entry["origin"]).text(entry["source"])
    elif name == "import_ended":
        out.varint(entry["origin"]).u8(entry["outcome"])
        for count in ENDED_COUNTS:
            out.varint(entry["counts"][count])
    elif name == "token":
        out.varint(entry["origin"]).varint(entry["batch"])
        for count in WRITTEN_COUNTS:
            out.varint(entry["counts"][count])
    elif name == "recovered":
        out.varint(entry["from"]).varint(entry["to"])
    else:
        out.raw(entry["body"])
    return frame_entry(number, seq, first_seq, out.done())


class Run(NamedTuple):
    """Entries of one commit inside `data[start:end]`."""

    first_seq: int
    time: int
    start: int
    end: int


def read_runs(data: bytes, offset: int) -> Iterator[Run]:
    """The runs of an EVENTS body from `offset` to its end. Raises `DecodeError` (`bad_message`)."""
    reader = Reader(data, offset)
    while reader.left:
        start = reader.offset
        try:
            first_seq, time, count = reader.u64(), reader.i64(), reader.u32()
        except DecodeError as error:
            raise named_in(error, "bad_message")
        if not 0 < count <= reader.left:
            raise DecodeError("bad_message", start + 16, f"a run of {count} bytes, {reader.left} are left")
        yield Run(first_seq, time, reader.offset, reader.offset + count)
        reader.offset += count

