"""The value types of FORMAT.md section 2: reading, writing and the JSON form of each.

In Python a bool is a `bool`, an int an `int`, a number an `int` or `float` (a `Decimal` when read exactly), a text a
`str`, an identifier an `int` or `str`, bytes `bytes`, a date a `PartialDate`, a time an `int` of milliseconds, a uuid
a `uuid.UUID`, a choice the `str` that names it, a list a `list` of `str`.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from decimal import Decimal
from typing import Any, Callable, Dict, List, Tuple, Union

from .codec import decode_utf8, encode_utf8, read_bytes, read_text
from .dates import TIME_MAX, TIME_MIN, PartialDate, time_of, time_text
from .decimals import exact, number_problem, parts_of, plain
from .errors import DecodeError, EncodeError
from .varint import I64_MAX, put_svarint, put_varint, read_svarint, read_varint

BOOL, INT, NUMBER, TEXT, IDENTIFIER, BYTES, DATE, TIME, UUID, CHOICE, LIST = range(1, 12)

#: Type numbers to names.
TYPE_NAMES: Dict[int, str] = dict(enumerate(
    ("bool", "int", "number", "text", "identifier", "bytes", "date", "time", "uuid", "choice", "list"), start=1))
TYPE_NUMBERS: Dict[str, int] = {name: number for number, name in TYPE_NAMES.items()}

Read = Callable[[bytes, int], Tuple[Any, int]]
Write = Callable[[bytearray, Any], None]


def is_plain_decimal(text: str) -> bool:
    """Whether an identifier's text is a number: `0`, or digits without sign or leading zero up to 2^63 - 1."""
    return (0 < len(text) <= 19 and text.isascii() and text.isdigit() and (text[0] != "0" or text == "0")
            and int(text) <= I64_MAX)


def read_bool(data: bytes, offset: int) -> Tuple[bool, int]:
    if offset >= len(data):
        raise DecodeError("truncated", offset, "a bool is needed")
    if data[offset] > 1:
        raise DecodeError("out_of_range", offset, f"a bool of {data[offset]}")
    return data[offset] == 1, offset + 1


def read_number_parts(data: bytes, offset: int) -> Tuple[int, int, int]:
    """Mantissa, exponent, and the offset behind them."""
    mantissa, end = read_svarint(data, offset)
    exponent, end = read_svarint(data, end)
    wrong = number_problem(mantissa, exponent)
    if wrong:
        raise DecodeError(wrong[0], offset, wrong[1])
    return mantissa, exponent, end


def read_number(data: bytes, offset: int) -> Tuple[Union[int, float], int]:
    mantissa, exponent, end = read_number_parts(data, offset)
    return plain(mantissa, exponent), end


def read_number_exact(data: bytes, offset: int) -> Tuple[Decimal, int]:
    mantissa, exponent, end = read_number_parts(data, offset)
    return exact(mantissa, exponent), end


def read_identifier(data: bytes, offset: int) -> Tuple[Union[int, str], int]:
    head, start = read_varint(data, offset)
    if head & 1 == 0:
        return head >> 1, start
    count = head >> 1
    if count == 0:
        raise DecodeError("not_canonical", offset, "an identifier that is an empty text")
    end = start + count
    if end > len(data):
        raise DecodeError("truncated", offset, f"an identifier of {count} bytes, {len(data) - start} are left")
    text = decode_utf8(data[start:end], offset)
    if is_plain_decimal(text):
        raise DecodeError("not_canonical", offset, f"the identifier {text} is a number")
    return text, end


def read_date(data: bytes, offset: int) -> Tuple[PartialDate, int]:
    packed, end = read_svarint(data, offset)
    try:
        return PartialDate.unpack(packed), end
    except EncodeError as error:
        raise DecodeError("out_of_range", offset, error.reason) from None


def read_time(data: bytes, offset: int) -> Tuple[int, int]:
    value, end = read_svarint(data, offset)
    if not TIME_MIN <= value <= TIME_MAX:
        raise DecodeError("out_of_range", offset, f"the time {value} is not in the years -9999 ... 9999")
    return value, end


def read_uuid(data: bytes, offset: int) -> Tuple[uuid.UUID, int]:
    end = offset + 16
    if end > len(data):
        raise DecodeError("truncated", offset, f"a uuid has 16 bytes, {len(data) - offset} are left")
    return uuid.UUID(bytes=data[offset:end]), end


def read_list(data: bytes, offset: int) -> Tuple[List[str], int]:
    count, at = read_varint(data, offset)
    if count > len(data) - at:
        raise DecodeError("truncated", offset, f"a list of {count}, {len(data) - at} bytes are left")
    items = []
    for _ in range(count):
        item, at = read_text(data, at)
        items.append(item)
    return items, at


def choice_reader(values: Dict[int, str]) -> Read:
    """Reads a choice among named values."""

    def read_choice(data: bytes, offset: int) -> Tuple[str, int]:
        number, end = read_varint(data, offset)
        name = values.get(number)
        if name is None:
            raise DecodeError("unknown_choice", offset, f"{number} is none of {sorted(values)}")
        return name, end

    return read_choice


READERS: Dict[int, Read] = {
    BOOL: read_bool, INT: read_svarint, NUMBER: read_number, TEXT: read_text, IDENTIFIER: read_identifier,
    BYTES: read_bytes, DATE: read_date, TIME: read_time, UUID: read_uuid, LIST: read_list,
}


def put_bool(out: bytearray, value: Any) -> None:
    if not isinstance(value, bool):
        raise EncodeError("bad_record", f"a bool is True or False, not {value!r}")
    out.append(value)


def put_int(out: bytearray, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError("bad_record", f"an int is an int, not {type(value).__name__}")
    put_svarint(out, value)


def put_number(out: bytearray, value: Any) -> None:
    mantissa, exponent = parts_of(value)
    put_svarint(out, mantissa)
    put_svarint(out, exponent)


def put_text(out: bytearray, value: Any) -> None:
    encoded = encode_utf8(value)
    put_varint(out, len(encoded))
    out += encoded


def put_identifier(out: bytearray, value: Any) -> None:
    if isinstance(value, str) and is_plain_decimal(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= I64_MAX:
            raise EncodeError("bad_record", f"the identifier {value} is not in 0 ... 2^63 - 1")
        put_varint(out, value << 1)
        return
    if value == "":
        raise EncodeError("not_canonical", "an identifier that is an empty text")
    encoded = encode_utf8(value)
    put_varint(out, len(encoded) << 1 | 1)
    out += encoded


def put_bytes(out: bytearray, value: Any) -> None:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise EncodeError("bad_record", f"bytes are bytes, not {type(value).__name__}")
    put_varint(out, len(value))
    out += value


def put_date(out: bytearray, value: Any) -> None:
    put_svarint(out, PartialDate.of(value).packed)


def put_time(out: bytearray, value: Any) -> None:
    put_svarint(out, time_of(value))


def put_uuid(out: bytearray, value: Any) -> None:
    out += uuid_of(value).bytes


def uuid_of(value: Any) -> uuid.UUID:
    """A uuid from itself or from its text."""
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise EncodeError("bad_record", f"{value!r} is not a uuid") from None


def put_list(out: bytearray, value: Any) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise EncodeError("bad_record", f"a list is a list of str, not {type(value).__name__}")
    items = list(value)
    put_varint(out, len(items))
    for item in items:
        put_text(out, item)


def choice_writer(values: Dict[int, str]) -> Write:
    """Writes a choice by its name."""
    numbers = {name: number for number, name in values.items()}

    def put_choice(out: bytearray, value: Any) -> None:
        number = numbers.get(value) if isinstance(value, str) else None
        if number is None:
            raise EncodeError("unknown_choice", f"{value!r} is none of {', '.join(numbers)}")
        put_varint(out, number)

    return put_choice


WRITERS: Dict[int, Write] = {
    BOOL: put_bool, INT: put_int, NUMBER: put_number, TEXT: put_text, IDENTIFIER: put_identifier, BYTES: put_bytes,
    DATE: put_date, TIME: put_time, UUID: put_uuid, LIST: put_list,
}


def to_json(type_number: int, value: Any) -> Any:
    """The JSON form of a value, as `json.dumps` takes it. A `Decimal` becomes an int or the nearest float."""
    if type_number == NUMBER:
        return plain(*parts_of(value))
    if type_number == BYTES:
        return base64.b64encode(value).decode("ascii")
    if type_number == DATE:
        return str(PartialDate.of(value))
    if type_number == TIME:
        return time_text(time_of(value))
    if type_number == UUID:
        return str(uuid_of(value))
    return value


def from_json(type_number: int, value: Any) -> Any:
    """The value of a JSON form. What it does not check the writer does."""
    if type_number == BYTES and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise EncodeError("bad_record", "not base64") from None
    if type_number == DATE:
        return PartialDate.of(value)
    if type_number == TIME:
        return time_of(value)
    if type_number == UUID:
        return uuid_of(value)
    if type_number == NUMBER and isinstance(value, str):
        raise EncodeError("bad_record", "a number is a JSON number")
    return value
