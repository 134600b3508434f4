"""The mirror's lines: made from events, and recognised again in the file.

A line is what `larder list --json` prints: kind, key, seq, saved_seq, saved_at, changed_at, origin, record.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple, Optional

from larder.errors import DecodeError
from larder.events import Event
from larder.keys import key_of_record, key_text
from larder.kinds import Kind
from larder.records import decode_record, record_json_text
from larder.values import TIME, to_json

_HEAD = re.compile(rb'\{"kind":"[^"\\]+","key":("(?:[^"\\]|\\.)*"),"seq":[0-9]+,"saved_seq":([0-9]+),')


class Head(NamedTuple):
    """What the mirror needs of a line: its key, as the JSON string that it is there, and its place in saved order."""

    identity: bytes
    saved_seq: int


def head_of(line: bytes) -> Optional[Head]:
    """The head of a line; None if it is none of the mirror's."""
    match = _HEAD.match(line)
    return Head(match[1], int(match[2])) if match else None


def head_bytes(identity: bytes) -> bytes:
    """How the line with this identity begins; no other line begins so."""
    kind = identity[1:identity.index(b":")]
    return b'{"kind":"' + kind + b'","key":' + identity + b","


def identity_of_key(kind: Kind, key: bytes) -> bytes:
    """The identity of a key's bytes."""
    return json.dumps(key_text(kind, key), ensure_ascii=False).encode()


class Line(NamedTuple):
    """A line with its newline, and its head."""

    identity: bytes
    saved_seq: int
    data: bytes


def line_of(event: Event) -> Line:
    """The line of a created or updated event."""
    kind, raw = event.kind, event.raw
    identity = identity_of_key(kind, key_of_record(kind, raw))
    try:
        form = '"record":' + record_json_text(kind, decode_record(kind, raw, exact=True))
    except DecodeError as error:
        if error.name != "unknown_field":
            raise
        form = f'"opaque":"{raw.hex()}"'
    saved_at, changed_at = to_json(TIME, event.saved_at), to_json(TIME, event.time)
    data = (f'{{"kind":"{kind.name}","key":{identity.decode()},"seq":{event.seq},"saved_seq":{event.first_seq},'
            f'"saved_at":"{saved_at}","changed_at":"{changed_at}","origin":{event.origin},{form}}}\n')
    return Line(identity, event.first_seq, data.encode())
