"""The variable-length integers of FORMAT.md section 1.

Functions here work on `bytes` and an offset and return the value and the offset behind it; they are the innermost
loop of every decoder, so they build no objects.
"""

from __future__ import annotations

from typing import Tuple

from .errors import DecodeError, EncodeError

U64_MAX = (1 << 64) - 1
I64_MIN = -(1 << 63)
I64_MAX = (1 << 63) - 1


def read_varint(data: bytes, offset: int) -> Tuple[int, int]:
    """Reads a varint that is the shortest of its value. Raises `DecodeError` (`truncated`, `not_canonical`)."""
    at = offset
    try:
        byte = data[at]
        if byte < 0x80:
            return byte, at + 1
        value = byte & 0x7F
        shift = 7
        while True:
            at += 1
            byte = data[at]
            if byte < 0x80:
                break
            if shift == 63:
                raise DecodeError("not_canonical", offset, "a varint of more than 10 bytes")
            value |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise DecodeError("truncated", offset, "a varint goes on behind the end") from None
    if byte == 0:
        raise DecodeError("not_canonical", offset, "a varint that is not the shortest")
    if shift == 63 and byte > 1:
        raise DecodeError("not_canonical", offset, "a varint of more than 64 bits")
    return value | byte << shift, at + 1


def read_svarint(data: bytes, offset: int) -> Tuple[int, int]:
    """Reads a signed 64-bit value in zigzag form."""
    value, offset = read_varint(data, offset)
    return (value >> 1) ^ -(value & 1), offset


def put_varint(out: bytearray, value: int) -> None:
    """Appends an unsigned value below 2^64. Raises `EncodeError` (`bad_record`) for any other."""
    if 0 <= value < 0x80:
        out.append(value)
        return
    if not 0 <= value <= U64_MAX:
        raise EncodeError("bad_record", f"{value} is not in 0 ... 2^64 - 1")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_svarint(out: bytearray, value: int) -> None:
    """Appends a signed 64-bit value. Raises `EncodeError` (`bad_record`) for any other."""
    if not I64_MIN <= value <= I64_MAX:
        raise EncodeError("bad_record", f"{value} is not in -2^63 ... 2^63 - 1")
    put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    """The bytes of one varint."""
    out = bytearray()
    put_varint(out, value)
    return bytes(out)


def svarint(value: int) -> bytes:
    """The bytes of one svarint."""
    out = bytearray()
    put_svarint(out, value)
    return bytes(out)
