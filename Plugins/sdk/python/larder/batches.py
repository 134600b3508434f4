"""Cutting records into WRITE batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Union

from .codec import Writer
from .errors import EncodeError
from .keys import encode_key
from .kinds import Kind
from .messages import DELETE, PERSONAL, SAVE, UNLESS_EXISTS
from .records import encode_record
from .results import Accounting
from .varint import put_varint

MODES = {"insert": 1, "replace": 2, "merge": 3, "fill": 4}
#: Flags of a WRITE.
ATOMIC, DRY_RUN, RESULTS = 1, 2, 4
BATCH_BYTES, WINDOW_BYTES = 256 << 10, 4 << 20
RecordLike = Union[Mapping[str, Any], bytes]


@dataclass(frozen=True)
class Many:
    """How `save_many` saves: see there."""

    mode: str = "merge"
    personal: bool = False
    unless_exists: Optional[str] = None
    dry_run: bool = False
    batch_bytes: int = BATCH_BYTES
    window_bytes: int = WINDOW_BYTES


def field_number(kind: Kind, name: str) -> int:
    """The number of a kind's field. Raises `EncodeError` (`unknown_field`)."""
    field = kind.by_name.get(name)
    if field is None:
        raise EncodeError("unknown_field", f"a {kind.name} has no field {name}", name)
    return field.number


class Operations:
    """Makes the bytes of operations of one kind, mode and set of options."""

    def __init__(self, kind: Kind, mode: str, *, personal: bool = False, unless_exists: Optional[str] = None) -> None:
        if mode != "delete" and mode not in MODES:
            raise EncodeError("bad_message", f"{mode!r} is none of {', '.join(MODES)}, delete")
        self.kind = kind
        self.deletes = mode == "delete"
        self.relax = "partial" if mode in ("merge", "fill") else "uuid"
        options = (PERSONAL if personal else 0) | (UNLESS_EXISTS if unless_exists is not None else 0)
        head = bytearray((DELETE, 0, options) if self.deletes else (SAVE, MODES[mode], options))
        put_varint(head, kind.number)
        put_varint(head, 0 if self.deletes else kind.highest)
        if unless_exists is not None:
            put_varint(head, field_number(kind, unless_exists))
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

    def __init__(self, kind: Kind, many: Many, batch_bytes: int, accounting: Accounting) -> None:
        self._operations = Operations(kind, many.mode, personal=many.personal, unless_exists=many.unless_exists)
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
