"""Operations of a WRITE: what can be asked of one record, and batches of different ones.

`Save`, `Delete`, `Move` and `Restore` say what is wanted, without I/O; `Client.write` sends them as one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Union

from .batches import MODES, RecordLike, field_number
from .codec import Writer
from .errors import EncodeError
from .keys import KeyValues
from .kinds import Kind
from .messages import DELETE, IF_SEQ, MOVE, OPERATION, PERSONAL, RESTORE, SAVE, UNLESS_EXISTS, UNSET
from .records import encode_record


@dataclass(frozen=True)
class Save:
    """Saves a record, a dict or its bytes. `mode`: insert, replace, merge or fill.

    `personal`: its personal fields are written too. `if_seq`: only if the key's current entry has this seq, 0 for "only
    if there is none"; else `Conflict`. `unless_exists`: the name of an indexed field; a record that shares the value makes
    it `already_saved`. `unset`: names of fields that become absent (merge only).
    """

    kind: str
    record: RecordLike
    mode: str = "merge"
    personal: bool = False
    if_seq: Optional[int] = None
    unless_exists: Optional[str] = None
    unset: Sequence[str] = ()


@dataclass(frozen=True)
class Delete:
    """Deletes a record: `Delete("title:tmdb/movie/603")`, or kind and key values or key bytes. `if_seq` as of `Save`."""

    kind: str
    key: Union[None, bytes, KeyValues] = None
    if_seq: Optional[int] = None


@dataclass(frozen=True)
class Move:
    """Gives a record another key: what is at the old one goes, `record` is saved under its own key in its place.

    The old key is `Move("title:tmdb/movie/603", record)`, or kind, record and `old_key`. It is a replace: fields that the
    kind does not know here are kept, and personal ones without `personal`. Saved time and place in the order of saving
    stay. `if_seq` is about the record at the old key.
    """

    kind: str
    record: RecordLike
    old_key: Union[None, bytes, KeyValues] = None
    personal: bool = False
    if_seq: Optional[int] = None
    unless_exists: Optional[str] = None


@dataclass(frozen=True)
class Restore:
    """Brings a record back to its old place in the order of saving: `first_seq` and `saved_at` (ms) are those that it had.

    The record is taken as it is, personal fields too. Its key may not be there (`already_saved`), its `first_seq` may be no
    other record's (`bad_record`).
    """

    kind: str
    record: RecordLike
    first_seq: int
    saved_at: int
    if_seq: Optional[int] = None
    unless_exists: Optional[str] = None


Operation = Union[Save, Delete, Move, Restore]


def _options(operation: Operation, kind: Kind) -> Dict[str, Any]:
    """The fields of the wire that say under which conditions."""
    fields: Dict[str, Any] = {"options": 0}
    if getattr(operation, "personal", False):
        fields["options"] |= PERSONAL
    if operation.if_seq is not None:
        fields["options"] |= IF_SEQ
        fields["if_seq"] = operation.if_seq
    unless_exists: Optional[str] = getattr(operation, "unless_exists", None)
    if unless_exists is not None:
        fields["options"] |= UNLESS_EXISTS
        fields["unless_exists"] = field_number(kind, unless_exists)
    unset: Sequence[str] = getattr(operation, "unset", ())
    if unset:
        fields["options"] |= UNSET
        fields["unset"] = [field_number(kind, name) for name in unset]
    return fields


def operation_fields(operation: Operation, kind: Kind, key: bytes = b"") -> Dict[str, Any]:
    """An operation as `messages.OPERATION` takes it; `key` is a delete's, or a move's old one. Raises `EncodeError`."""
    fields: Dict[str, Any] = {"mode": 0, "kind": kind.number, **_options(operation, kind)}
    if isinstance(operation, Delete):
        return {**fields, "verb": DELETE, "body": key}
    relax = ""
    if isinstance(operation, Save):
        if operation.mode not in MODES:
            raise EncodeError("bad_message", f"{operation.mode!r} is none of {', '.join(MODES)}")
        fields.update(verb=SAVE, mode=MODES[operation.mode], known=kind.highest)
        relax = "partial" if operation.mode in ("merge", "fill") else "uuid"
    elif isinstance(operation, Move):
        fields.update(verb=MOVE, known=kind.highest, old_key=key)
    else:
        fields.update(verb=RESTORE, first_seq=operation.first_seq, saved_at=operation.saved_at)
    record = operation.record
    fields["body"] = record if isinstance(record, bytes) else encode_record(kind, record, relax=relax)
    return fields


def encode_operation(operation: Operation, kind: Kind, key: bytes = b"") -> bytes:
    """An operation's bytes; `key` as for `operation_fields`. Raises `EncodeError`."""
    writer = Writer()
    OPERATION.put(writer, operation_fields(operation, kind, key))
    return writer.done()
