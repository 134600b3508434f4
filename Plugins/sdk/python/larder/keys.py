"""Keys: the values of a kind's key fields, in bytes and in text (`title:tmdb/movie/603`)."""

from __future__ import annotations

import json
import re
import uuid
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple, Union

from .decimals import number_text, parts_of
from .errors import DecodeError, EncodeError, named_in
from .kinds import Field, Kind
from .records import field_check, put_field, read_bitmap
from .values import BOOL, INT, NUMBER, UUID, from_json, read_number_exact, to_json

KeyValues = Union[Mapping[str, Any], Sequence[Any]]
_INT = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?\Z")
_ESCAPE = re.compile(r"%(..?)?", re.DOTALL)


def encode_key(kind: Kind, values: KeyValues) -> bytes:
    """Key bytes from a dict with the key fields, or from their values in order. Raises `EncodeError`."""
    if isinstance(values, Mapping):
        items = [values.get(item.name) for item in kind.key_fields]
    else:
        items = list(values)
        if isinstance(values, str) or len(items) != kind.key_count:
            raise EncodeError("bad_key", f"a {kind.name} has {kind.key_count} key fields")
    out = bytearray()
    for item, value in zip(kind.key_fields, items):
        if value is None:
            raise EncodeError("missing_field", f"{item.name} is a key field", item.name)
        put_field(out, kind, item, value)
    return bytes(out)


def read_key(kind: Kind, data: bytes, offset: int, exact: bool = False) -> Tuple[Dict[str, Any], int]:
    """The key's values at an offset, and the offset behind them. Raises `DecodeError`."""
    values: Dict[str, Any] = {}
    for item in kind.key_fields:
        start = offset
        read = read_number_exact if exact and item.type == NUMBER else item.reader()
        check = field_check(item, True)
        try:
            value, offset = read(data, offset)
        except DecodeError as error:
            error.field = item.number
            raise
        wrong = check(value) if check else None
        if wrong:
            raise DecodeError(wrong[0], start, wrong[1], item.number)
        values[item.name] = value
    return values, offset


def decode_key(kind: Kind, data: bytes, *, exact: bool = False) -> Dict[str, Any]:
    """The key's values by field name. Raises `DecodeError`; bytes left over are `bad_key`."""
    try:
        values, end = read_key(kind, data, 0, exact)
    except DecodeError as error:
        raise named_in(error, "bad_key")
    if end != len(data):
        raise DecodeError("bad_key", end, f"{len(data) - end} bytes are left over")
    return values


def key_of_record(kind: Kind, record: bytes) -> bytes:
    """The key bytes of a record's bytes: those right behind the bitmap."""
    try:
        _, start = read_bitmap(record, 0)
        _, end = read_key(kind, record, start)
    except DecodeError as error:
        raise named_in(error, "bad_record")
    return record[start:end]


def key_text(kind: Kind, key: Union[bytes, KeyValues]) -> str:
    """A key in text: `title:tmdb/movie/603`; `%` and `/` inside a value are `%25` and `%2F`."""
    data = key if isinstance(key, bytes) else encode_key(kind, key)
    values = decode_key(kind, data, exact=True)
    parts = []
    for item in kind.key_fields:
        parts.append(_value_text(item, values[item.name]).replace("%", "%25").replace("/", "%2F"))
    return f"{kind.name}:{'/'.join(parts)}"


def _value_text(item: Field, value: Any) -> str:
    if item.type == NUMBER:
        return number_text(*parts_of(value))
    form = to_json(item.type, value)
    return form if isinstance(form, str) else json.dumps(form)


def parse_key_text(text: str, kind_named: Callable[[str], Kind]) -> Tuple[Kind, bytes]:
    """Kind and key bytes of a key in text. `kind_named` finds a kind. Raises `EncodeError` (`bad_key`)."""
    name, colon, rest = text.partition(":")
    if not colon:
        raise EncodeError("bad_key", f"{text!r} is not a key: write kind:value/value")
    kind = kind_named(name)
    parts = rest.split("/")
    if len(parts) != kind.key_count:
        raise EncodeError("bad_key", f"{len(parts)} values, a {kind.name} has {kind.key_count} key fields")
    values = [_parse_value(item, _unescape(part)) for item, part in zip(kind.key_fields, parts)]
    return kind, encode_key(kind, values)


def _unescape(part: str) -> str:
    def one(match: "re.Match[str]") -> str:
        code = (match[1] or "").upper()
        if code not in ("25", "2F"):
            raise EncodeError("bad_key", "a % that is neither %25 nor %2F")
        return chr(int(code, 16))

    return _ESCAPE.sub(one, part)


def _parse_value(item: Field, text: str) -> Any:
    if item.type == BOOL:
        if text not in ("true", "false"):
            raise EncodeError("bad_key", f"{text!r} is not true or false", item.name)
        return text == "true"
    if item.type == INT:
        if not _INT.match(text):
            raise EncodeError("bad_key", f"{text!r} is not an integer", item.name)
        return int(text)
    if item.type == NUMBER:
        if not _NUMBER.match(text):
            raise EncodeError("bad_key", f"{text!r} is not a number", item.name)
        try:
            return Decimal(text)
        except InvalidOperation:
            raise EncodeError("bad_key", f"{text!r} is not a number", item.name) from None
    if item.type == UUID:
        try:
            if text != str(uuid.UUID(text)):
                raise ValueError
        except ValueError:
            raise EncodeError("bad_key", f"{text!r} is not a uuid in lower case", item.name) from None
    return from_json(item.type, text)
