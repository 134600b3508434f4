"""Frames: the preface and the 12-byte header before every body (SPEC.md sections 1 and 2)."""

from __future__ import annotations

import struct
from typing import Iterator, NamedTuple, Union

from .errors import DecodeError

PREFACE = b"LARDER\x01\n"
HEADER = struct.Struct("<IBBHI")
HEADER_BYTES = 12
BODY_BYTES_MAX = 4 << 20
#: What a body may have before WELCOME.
GREETING_BODY_BYTES_MAX = 65_536


class RawFrame(NamedTuple):
    """A frame as it came: its message type, its request id, its body."""

    type: int
    id: int
    body: bytes


def encode_frame(message: int, request_id: int, body: bytes = b"") -> bytes:
    """A frame's bytes."""
    return HEADER.pack(len(body), message, 0, 0, request_id) + body


def check_header(data: Union[bytes, bytearray], offset: int, limit: int) -> "tuple[int, int, int]":
    """Body length, type and request id of the header at `offset`. Raises `frame_too_large` or `bad_frame`."""
    length, message, flags, zero, request_id = HEADER.unpack_from(data, offset)
    if length > limit:
        raise DecodeError("frame_too_large", offset, f"a body of {length} bytes, {limit} are allowed")
    if flags:
        raise DecodeError("bad_frame", offset + 5, f"flags of {flags}")
    if zero:
        raise DecodeError("bad_frame", offset + 6, f"a zero field of {zero}")
    return length, message, request_id


class FrameDecoder:
    """Cuts frames out of a stream that is fed in any chunks.

    `limit` is the largest body allowed; raise it after WELCOME. A length is checked before its body is awaited. After
    an error the stream has no further frames.
    """

    def __init__(self, limit: int = GREETING_BODY_BYTES_MAX) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._needed = HEADER_BYTES

    @property
    def buffered(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[RawFrame]:
        """Takes a chunk; gives the frames that are whole now. Run the iterator to its end before feeding again."""
        self._buffer += data
        return self._cut()

    def _cut(self) -> Iterator[RawFrame]:
        buffer, at = self._buffer, 0
        try:
            while len(buffer) - at >= self._needed:
                length, message, request_id = check_header(buffer, at, self.limit)
                end = at + HEADER_BYTES + length
                if len(buffer) < end:
                    self._needed = end - at
                    break
                self._needed = HEADER_BYTES
                with memoryview(buffer) as view:
                    body = bytes(view[at + HEADER_BYTES:end])
                at = end
                yield RawFrame(message, request_id, body)
        finally:
            del buffer[:at]
