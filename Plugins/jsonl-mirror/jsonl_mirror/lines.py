"""The mirror's lines: made from events, and recognised again in the file.

A line is what `larder list --json` prints: kind, key, seq, saved_seq, saved_at, changed_at, origin, record.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Mapping, NamedTuple, Optional

from larder.decimals import number_text, parts_of
from larder.errors import DecodeError
from larder.events import Event
from larder.keys import key_of_record, key_text
from larder.kinds import Kind
from larder.records import decode_record, record_json_text
from larder.values import NUMBER, TIME, to_json

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


def _identity_of_record(kind: Kind, record: Mapping[str, Any]) -> bytes:
    """The same, from a record's values, which are at hand for its line."""
    parts = []
    for item in kind.key_fields:
        value = record[item.name]
        form = number_text(*parts_of(value)) if item.type == NUMBER else to_json(item.type, value)
        text = form if isinstance(form, str) else json.dumps(form)
        parts.append(text.replace("%", "%25").replace("/", "%2F"))
    return json.dumps(f"{kind.name}:{'/'.join(parts)}", ensure_ascii=False).encode()


@lru_cache(maxsize=1024)
def _time_text(milliseconds: int) -> str:
    """A commit's records share their times."""
    return str(to_json(TIME, milliseconds))


class Line(NamedTuple):
    """A line with its newline, and its head."""

    identity: bytes
    saved_seq: int
    data: bytes


def line_of(event: Event) -> Line:
    """The line of a created or updated event."""
    kind, raw = event.kind, event.raw
    try:
        record = decode_record(kind, raw, exact=True)
    except DecodeError as error:
        if error.name != "unknown_field":
            raise
        identity = identity_of_key(kind, key_of_record(kind, raw))
        form = f'"opaque":"{raw.hex()}"'
    else:
        identity = _identity_of_record(kind, record)
        form = '"record":' + record_json_text(kind, record)
    saved_at, changed_at = _time_text(event.saved_at), _time_text(event.time)
    data = (f'{{"kind":"{kind.name}","key":{identity.decode()},"seq":{event.seq},"saved_seq":{event.first_seq},'
            f'"saved_at":"{saved_at}","changed_at":"{changed_at}","origin":{event.origin},{form}}}\n')
    return Line(identity, event.first_seq, data.encode())
