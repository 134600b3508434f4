"""Records: a dict of a kind's fields to its one encoding and back (FORMAT.md section 4)."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .decimals import number_text, parts_of
from .errors import DecodeError, EncodeError, named_in
from .kinds import Field, Kind, is_blank
from .values import IDENTIFIER, NUMBER, TEXT, UUID, Read, from_json, read_number_exact, to_json

RECORD_BYTES_MAX = 1 << 20
_PLANS_MAX = 4096
_json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Check = Optional[Callable[[Any], Optional[Tuple[str, str]]]]


class _Plan:
    """How to read the records that have one bitmap."""

    __slots__ = ("steps",)

    def __init__(self, steps: List[Tuple[str, Read, Check]]) -> None:
        self.steps = steps


def field_check(item: Field, in_key: bool) -> Check:
    """The check of a present value beyond its type: gives error name and reason, or None when it holds. None if none."""
    blank, zero = item.not_blank, item.not_zero
    normal = in_key and item.type in (TEXT, IDENTIFIER)
    if not (blank or zero or normal):
        return None

    def check(value: Any) -> Optional[Tuple[str, str]]:
        if zero and value == 0:
            return "zero_field", "it must not be zero"
        if isinstance(value, str):
            if blank and is_blank(value):
                return "blank_field", "it must not be blank"
            if normal and not value.isascii() and not unicodedata.is_normalized("NFC", value):
                return "key_not_normalised", "text in a key is in NFC"
        return None

    return check


def makes_uuid(kind: Kind) -> bool:
    """Whether the host gives the kind's records a key when they have none: a key of one uuid."""
    return kind.key_count == 1 and kind.fields[0].type == UUID


def fields_of_bitmap(bitmap: bytes) -> List[int]:
    """The numbers of the fields whose bits are set, ascending."""
    return [position * 8 + bit + 1 for position, byte in enumerate(bitmap) for bit in range(8) if byte >> bit & 1]


def bitmap_of(numbers: List[int]) -> bytes:
    """Bitmap with its byte count before it, of ascending field numbers."""
    out = bytearray(1 + (numbers[-1] + 7) // 8 if numbers else 1)
    out[0] = len(out) - 1
    for number in numbers:
        out[1 + (number - 1) // 8] |= 1 << (number - 1) % 8
    return bytes(out)


def read_bitmap(data: bytes, offset: int) -> Tuple[List[int], int]:
    """The field numbers of a bitmap and the offset behind it; its errors are at its byte count."""
    if offset >= len(data):
        raise DecodeError("truncated", offset, "a bitmap is needed")
    count = data[offset]
    if count > 32:
        raise DecodeError("out_of_range", offset, f"a bitmap of {count} bytes, 32 are allowed")
    end = offset + 1 + count
    if end > len(data):
        raise DecodeError("truncated", offset, f"a bitmap of {count} bytes, {len(data) - offset - 1} are left")
    if count and data[end - 1] == 0:
        raise DecodeError("not_canonical", offset, "a bitmap whose last byte is 0")
    return fields_of_bitmap(data[offset + 1:end]), end


def _make_plan(kind: Kind, numbers: List[int], exact: bool, relax: str) -> _Plan:
    for number in numbers:
        if number not in kind.by_number:
            raise DecodeError("unknown_field", 0, f"{kind.name} has no field {number}", number)
    present = set(numbers)
    for item in kind.fields:
        if not item.required or item.number in present:
            continue
        if item.number <= kind.key_count and makes_uuid(kind) and relax:
            continue
        if item.number > kind.key_count and relax == "partial":
            continue
        raise DecodeError("missing_field", 0, f"{item.name} is required", item.number)
    steps: List[Tuple[str, Read, Check]] = []
    for number in numbers:
        item = kind.by_number[number]
        read = read_number_exact if exact and item.type == NUMBER else item.reader()
        steps.append((item.name, read, field_check(item, number <= kind.key_count)))
    return _Plan(steps)


def _plan(kind: Kind, head: bytes, exact: bool, relax: str) -> _Plan:
    plan: Optional[_Plan] = kind.plans.get((head, exact, relax))
    if plan is None:
        numbers, _ = read_bitmap(head, 0)
        plan = _make_plan(kind, numbers, exact, relax)
        if len(kind.plans) >= _PLANS_MAX:
            kind.plans.clear()
        kind.plans[(head, exact, relax)] = plan
    return plan


def decode_record(kind: Kind, data: bytes, *, exact: bool = False, relax: str = "") -> Dict[str, Any]:
    """Reads a record strictly: one encoding, all constraints, to the last byte.

    `exact` gives numbers as `Decimal`. `relax` is for what a save may leave out: `"uuid"` lets a key of one uuid be
    absent, `"partial"` also required fields outside the key (a merge or a fill of a record that exists).
    Raises `DecodeError`.
    """
    if len(data) > RECORD_BYTES_MAX:
        raise DecodeError("record_too_large", 0, f"{len(data)} bytes, {RECORD_BYTES_MAX} are allowed")
    head = data[:1 + data[0]] if data else b""
    try:
        plan = _plan(kind, head, exact, relax)
    except DecodeError as error:
        raise named_in(error, "bad_record")
    at = len(head)
    record: Dict[str, Any] = {}
    start = at
    try:
        for name, read, check in plan.steps:
            start = at
            value, at = read(data, at)
            if check is not None:
                wrong = check(value)
                if wrong is not None:
                    raise DecodeError(wrong[0], start, wrong[1])
            record[name] = value
    except DecodeError as error:
        error.field = kind.by_name[plan.steps[len(record)][0]].number
        raise named_in(error, "bad_record")
    if at != len(data):
        raise DecodeError("bad_record", at, f"{len(data) - at} bytes are left over")
    return record


def put_field(out: bytearray, kind: Kind, item: Field, value: Any) -> None:
    """Appends one value after all checks. Key text is brought into NFC. Raises `EncodeError` with the field's name."""
    in_key = item.number <= kind.key_count
    if in_key and isinstance(value, str):
        value = unicodedata.normalize("NFC", value)
    try:
        start = len(out)
        kind.writers[item.number](out, value)
        if item.not_blank and is_blank(value):
            raise EncodeError("blank_field", "it must not be blank")
        if item.not_zero and out[start:] == b"\0":
            raise EncodeError("zero_field", "it must not be zero")
    except EncodeError as error:
        error.field = item.name
        raise


def encode_record(kind: Kind, record: Mapping[str, Any], *, relax: str = "") -> bytes:
    """The record's bytes. A field that is missing or None is absent. `relax` is that of `decode_record`.

    Raises `EncodeError` with the error that the host would give: an unknown or missing field, a blank or zero one, a
    value that its type does not hold, a record above 1 MiB.
    """
    known = kind.by_name
    numbers = []
    for name, value in record.items():
        if value is None:
            continue
        item = known.get(name)
        if item is None:
            raise EncodeError("unknown_field", f"{kind.name} has no field {name}", name)
        numbers.append(item.number)
    numbers.sort()
    head = bitmap_of(numbers)
    try:
        _plan(kind, head, False, relax)
    except DecodeError as error:
        raise EncodeError(error.name, error.reason, kind.by_number[error.field].name) from None
    out = bytearray(head)
    for number in numbers:
        item = kind.by_number[number]
        put_field(out, kind, item, record[item.name])
    if len(out) > RECORD_BYTES_MAX:
        raise EncodeError("record_too_large", f"{len(out)} bytes, {RECORD_BYTES_MAX} are allowed")
    return bytes(out)


def record_to_json(kind: Kind, record: Mapping[str, Any]) -> Dict[str, Any]:
    """The record in the JSON form of SPEC.md section 4."""
    return {name: to_json(kind.by_name[name].type, value) for name, value in record.items() if value is not None}


def record_json_text(kind: Kind, record: Mapping[str, Any]) -> str:
    """The record as one line of JSON, byte for byte as Larder prints it: fields by number, numbers exactly."""
    parts = []
    for item in kind.fields:
        value = record.get(item.name)
        if value is None:
            continue
        text = number_text(*parts_of(value)) if item.type == NUMBER else _json_text(to_json(item.type, value))
        parts.append(f'"{item.name}":{text}')
    return "{" + ",".join(parts) + "}"


def record_from_json(kind: Kind, form: Mapping[str, Any]) -> Dict[str, Any]:
    """A record from its JSON form. Raises `EncodeError`; null is absent."""
    record = {}
    for name, value in form.items():
        item = kind.by_name.get(name)
        if item is None:
            raise EncodeError("unknown_field", f"{kind.name} has no field {name}", name)
        if value is not None:
            record[name] = from_json(item.type, value)
    return record
