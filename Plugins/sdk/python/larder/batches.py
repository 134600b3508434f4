"""Cutting records into WRITE batches."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Union

from .codec import Writer
from .errors import EncodeError
from .keys import encode_key
from .kinds import Kind
from .records import encode_record
from .results import Accounting
from .varint import put_varint

MODES = {"insert": 1, "replace": 2, "merge": 3, "fill": 4}
RESULTS = 4
BATCH_BYTES, WINDOW_BYTES = 256 << 10, 4 << 20
RecordLike = Union[Mapping[str, Any], bytes]


class Operations:
    """Makes the bytes of operations of one kind and mode."""

    def __init__(self, kind: Kind, mode: str) -> None:
        if mode != "delete" and mode not in MODES:
            raise EncodeError("bad_message", f"{mode!r} is none of {', '.join(MODES)}, delete")
        self.kind = kind
        self.deletes = mode == "delete"
        self.relax = "partial" if mode in ("merge", "fill") else "uuid"
        head = bytearray((2, 0, 0) if self.deletes else (1, MODES[mode], 0))
        put_varint(head, kind.number)
        put_varint(head, 0 if self.deletes else kind.highest)
        self._head = bytes(head)

    def encode(self, item: Any) -> bytes:
        """One operation. A record is a dict or its bytes; a key a dict, its values in order, or bytes."""
        if isinstance(item, bytes):
            data = item
        elif self.deletes:
            data = encode_key(self.kind, item)
        else:
            data = encode_record(self.kind, item, relax=self.relax)
        out = bytearray(self._head)
        put_varint(out, len(data))
        out += data
        return bytes(out)


def write_body(operations: List[bytes], origin: int = 0, batch: int = 0, flags: int = 0) -> bytes:
    """The body of a WRITE."""
    head = Writer().u8(flags).varint(origin).varint(batch).varint(len(operations)).done()
    return head + b"".join(operations)


class Batch:
    """Operations to be sent together, and where each stood in the whole."""

    __slots__ = ("operations", "positions", "bytes")

    def __init__(self) -> None:
        self.operations: List[bytes] = []
        self.positions: List[int] = []
        self.bytes = 0


class Cutter:
    """Fills batches up to `batch_bytes`. The same records always make the same batches, so that numbered ones can be
    continued."""

    def __init__(self, kind: Kind, mode: str, batch_bytes: int, accounting: Accounting) -> None:
        self._operations = Operations(kind, mode)
        self._batch_bytes = max(1, batch_bytes)
        self._accounting = accounting
        self._batch = Batch()
        self._position = 0

    def add(self, item: Any) -> Optional[Batch]:
        """Takes a record; gives the batch that was full before it. What has no encoding is counted as refused."""
        position = self._position
        self._position += 1
        try:
            operation = self._operations.encode(item)
        except EncodeError as error:
            kind_field = self._operations.kind.by_name.get(error.field)
            self._accounting.refuse(position, error, kind_field.number if kind_field else 0)
            return None
        full: Optional[Batch] = None
        if self._batch.operations and self._batch.bytes + len(operation) > self._batch_bytes:
            full, self._batch = self._batch, Batch()
        self._batch.operations.append(operation)
        self._batch.positions.append(position)
        self._batch.bytes += len(operation)
        return full

    def finish(self) -> Iterator[Batch]:
        """The last batch, if it has anything."""
        if self._batch.operations:
            yield self._batch
            self._batch = Batch()
