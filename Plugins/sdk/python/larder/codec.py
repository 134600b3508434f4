"""`Reader` and `Writer`: the primitives of FORMAT.md section 1 over a buffer, strict, with offsets in errors."""

from __future__ import annotations

from typing import Tuple

from .errors import DecodeError, EncodeError
from .varint import put_svarint, put_varint, read_svarint, read_varint

Octets = bytes  # the classes below have a method of that name


def read_text(data: bytes, offset: int) -> Tuple[str, int]:
    """Reads a text: a varint byte count, then well-formed UTF-8 without U+0000."""
    if offset < len(data) and data[offset] < 0x80:  # the common case, without a call
        count, start = data[offset], offset + 1
    else:
        count, start = read_varint(data, offset)
    end = start + count
    if end > len(data):
        raise DecodeError("truncated", offset, f"a text of {count} bytes, {len(data) - start} are left")
    return decode_utf8(data[start:end], offset), end


def decode_utf8(data: bytes, offset: int) -> str:
    """The text of some bytes. Raises `bad_text` at `offset`, where the text's value begins."""
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("bad_text", offset, f"not UTF-8: {error.reason}") from None
    if "\0" in text:
        raise DecodeError("bad_text", offset, "a text with U+0000")
    return text


def encode_utf8(text: str) -> bytes:
    """The bytes of a text. Raises `EncodeError` (`bad_text`) for lone surrogates and U+0000."""
    if not isinstance(text, str):
        raise EncodeError("bad_record", f"a text is a str, not {type(text).__name__}")
    if "\0" in text:
        raise EncodeError("bad_text", "a text with U+0000")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EncodeError("bad_text", "a text with a lone surrogate") from None


def read_bytes(data: bytes, offset: int) -> Tuple[bytes, int]:
    """Reads bytes: a varint count, then as many."""
    count, start = read_varint(data, offset)
    end = start + count
    if end > len(data):
        raise DecodeError("truncated", offset, f"{count} bytes, {len(data) - start} are left")
    return data[start:end], end


class Reader:
    """Reads primitives from `data`, advancing `offset`. Every method raises `DecodeError` at the primitive's start."""

    __slots__ = ("data", "offset")

    def __init__(self, data: Octets, offset: int = 0) -> None:
        self.data = data
        self.offset = offset

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self.data) - self.offset

    def _fixed(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def u8(self) -> int:
        return self._fixed(1)

    def u16(self) -> int:
        return self._fixed(2)

    def u32(self) -> int:
        return self._fixed(4)

    def u64(self) -> int:
        return self._fixed(8)

    def i64(self) -> int:
        return self._fixed(8, signed=True)

    def varint(self) -> int:
        value, self.offset = read_varint(self.data, self.offset)
        return value

    def svarint(self) -> int:
        value, self.offset = read_svarint(self.data, self.offset)
        return value

    def text(self) -> str:
        value, self.offset = read_text(self.data, self.offset)
        return value

    def bytes(self) -> Octets:
        value, self.offset = read_bytes(self.data, self.offset)
        return value

    def take(self, count: int) -> Octets:
        """Exactly `count` bytes."""
        end = self.offset + count
        if end > len(self.data):
            raise DecodeError("truncated", self.offset, f"{count} bytes are needed, {self.left} are left")
        value = self.data[self.offset:end]
        self.offset = end
        return value

    def rest(self) -> Octets:
        """Everything to the end."""
        return self.take(self.left)

    def count(self) -> int:
        """A count of items of at least one byte each: more items than bytes left are `truncated` at the count."""
        start = self.offset
        value = self.varint()
        if value > self.left:
            raise DecodeError("truncated", start, f"a count of {value}, {self.left} bytes are left")
        return value

    def finish(self, name: str) -> None:
        """Raises `name` at the first byte that was not consumed."""
        if self.left:
            raise DecodeError(name, self.offset, f"{self.left} bytes are left over")


class Writer:
    """Builds bytes from primitives; every method returns the writer. Raises `EncodeError` for what has no encoding."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out = bytearray()

    def _fixed(self, value: int, count: int, signed: bool = False) -> "Writer":
        try:
            self.out += value.to_bytes(count, "little", signed=signed)
        except OverflowError:
            raise EncodeError("bad_message", f"{value} does not fit {count} bytes") from None
        return self

    def u8(self, value: int) -> "Writer":
        return self._fixed(value, 1)

    def u16(self, value: int) -> "Writer":
        return self._fixed(value, 2)

    def u32(self, value: int) -> "Writer":
        return self._fixed(value, 4)

    def u64(self, value: int) -> "Writer":
        return self._fixed(value, 8)

    def i64(self, value: int) -> "Writer":
        return self._fixed(value, 8, signed=True)

    def varint(self, value: int) -> "Writer":
        put_varint(self.out, value)
        return self

    def svarint(self, value: int) -> "Writer":
        put_svarint(self.out, value)
        return self

    def text(self, value: str) -> "Writer":
        return self.bytes(encode_utf8(value))

    def bytes(self, value: Octets) -> "Writer":
        put_varint(self.out, len(value))
        self.out += value
        return self

    def raw(self, value: Octets) -> "Writer":
        """Appends bytes as they are."""
        self.out += value
        return self

    def done(self) -> Octets:
        """What was written."""
        return Octets(self.out)
