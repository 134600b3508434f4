"""Errors: of bytes that do not decode, of values that do not encode, of what the host answered, of the connection."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Type

#: The errors of SPEC.md section 6, number to name.
ERROR_NAMES: Dict[int, str] = dict(enumerate((
    "bad_preface", "version_unsupported", "capability_unsupported", "bad_frame", "frame_too_large", "unknown_message",
    "wrong_state", "bad_message", "request_in_use", "too_many_requests", "unknown_kind", "bad_record",
    "record_too_large", "batch_too_large", "missing_field", "blank_field", "zero_field", "unknown_field",
    "unknown_choice", "bad_text", "not_canonical", "key_not_normalised", "bad_key", "already_saved", "not_found",
    "conflict", "unknown_origin", "failed_to_save", "failed_to_delete", "store_full", "cursor_expired",
    "unknown_subscription", "bad_token", "bad_condition", "busy", "unsupported", "not_permitted", "cancelled",
    "deadline_exceeded", "shutting_down", "unknown_plugin", "bad_manifest", "kind_conflict", "corrupt", "internal",
    "too_many_groups",
), start=1))

#: The same, name to number.
ERROR_NUMBERS: Dict[str, int] = {name: number for number, name in ERROR_NAMES.items()}


class DecodeError(ValueError):
    """Bytes that are not the encoding of anything.

    `name` is an error's name from SPEC.md section 6; of a primitive or value alone also `truncated`, `trailing` or
    `out_of_range`. `offset` is where the offending primitive or value begins. `field` is the number of the record's
    field, 0 where there is none.
    """

    def __init__(self, name: str, offset: int, reason: str, field: int = 0) -> None:
        super().__init__(name, offset, reason, field)
        self.name = name
        self.offset = offset
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        where = f"field {self.field}, " if self.field else ""
        return f"{self.name} at {where}offset {self.offset}: {self.reason}"


#: Names of what is wrong with a primitive or value alone. What holds it has a name of its own for them.
_ALONE = ("truncated", "trailing", "out_of_range")


def named_in(error: DecodeError, name: str, *more: str) -> DecodeError:
    """The error as the record, key, message, entry or block names it: `name` in place of what has none there."""
    if error.name in _ALONE or error.name in more:
        error.name = name
        error.args = (name, error.offset, error.reason, error.field)
    return error


class EncodeError(ValueError):
    """A value that has no encoding. `name` is the error that the host would give; `field` the field's name or empty."""

    def __init__(self, name: str, reason: str, field: str = "") -> None:
        super().__init__(name, reason, field)
        self.name = name
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        where = f" in {self.field}" if self.field else ""
        return f"{self.name}{where}: {self.reason}"


class ConnectionLost(ConnectionError):
    """The connection ended without a goodbye, or bytes came that are not the protocol. What was open is lost."""


class QueueFull(Exception):
    """Waiting for more would queue more bytes of events than allowed. Take events, then ask again."""


class LarderError(Exception):
    """What the host answered instead of what was asked for.

    `code` and `name` are SPEC.md's number and name, `field` the field it is about or empty, `place` 1 + the position in
    the batch or the offset in the body (0: none), `facts` the details, `fatal` whether the connection ends, `may_retry`
    whether the same request may work later.
    """

    def __init__(self, code: int, message: str = "", *, name: str = "", field: str = "", place: int = 0,
                 facts: Optional[Mapping[str, str]] = None, fatal: bool = False, may_retry: bool = False) -> None:
        super().__init__(code, message)
        self.code = code
        self.name = name or ERROR_NAMES.get(code, f"error_{code}")
        self.message = message
        self.field = field
        self.place = place
        self.facts: Dict[str, str] = dict(facts or {})
        self.fatal = fatal
        self.may_retry = may_retry

    def __str__(self) -> str:
        where = f" ({self.field})" if self.field else ""
        return f"{self.name}{where}: {self.message}" if self.message else self.name + where


class VersionUnsupported(LarderError):
    """No common version; facts `min`, `max`."""


class CapabilityUnsupported(LarderError):
    """The host lacks a required capability."""


class UnknownKind(LarderError):
    """The library declares no such kind."""


class BadRecord(LarderError):
    """The record was refused; `name` and `field` say why."""


class BadKey(LarderError):
    """The key does not parse as the kind's."""


class AlreadySaved(LarderError):
    """An insert of a key that is in the library, a record with a value that another has (`unless_exists`), a move or a
    restore to a key that is taken."""


class NotFound(LarderError):
    """The key is not in the library."""


class Conflict(LarderError):
    """Changed since the seq that was named."""


class UnknownOrigin(LarderError):
    """The import has ended or never began."""


class FailedToSave(LarderError):
    """The write or its sync failed. The batch may have survived: ask again after the host's restart."""


class FailedToDelete(LarderError):
    """Likewise, for deletes, clears and compactions."""


class StoreFull(LarderError):
    """No room on the disk."""


class CursorExpired(LarderError):
    """The library no longer has everything after that cursor; facts `epoch`, `floor`, `last`. Choose another start."""


class BadToken(LarderError):
    """A page's, an import's or a plugin's token that is none."""


class BadCondition(LarderError):
    """A condition that does not parse, or does not suit the kind; `place` is 1 + the offset in its UTF-8 bytes."""


class KindConflict(LarderError):
    """A declaration that contradicts the kind that is there; the message says both sides."""


class TooManyGroups(LarderError):
    """A count by group met over 10,000 values, or 2 MiB of them."""


class Busy(LarderError):
    """A clear or a compaction is running."""


class Unsupported(LarderError):
    """Not in this draft of the protocol."""


class NotPermitted(LarderError):
    """The plugin's grants do not allow it."""


class Cancelled(LarderError):
    """Cancelled by CANCEL."""


class DeadlineExceeded(LarderError):
    """Not answered in time. The work may still be done."""


class ShuttingDown(LarderError):
    """The host is stopping."""


class Corrupt(LarderError):
    """What was asked for is damaged on disk."""


_RECORD_ERRORS = ("bad_record", "record_too_large", "missing_field", "blank_field", "zero_field", "unknown_field",
                  "unknown_choice", "bad_text", "not_canonical", "key_not_normalised")

_CLASSES: Dict[str, Type[LarderError]] = {
    "version_unsupported": VersionUnsupported, "capability_unsupported": CapabilityUnsupported,
    "unknown_kind": UnknownKind, "bad_key": BadKey, "already_saved": AlreadySaved, "not_found": NotFound,
    "conflict": Conflict, "unknown_origin": UnknownOrigin, "failed_to_save": FailedToSave,
    "failed_to_delete": FailedToDelete, "store_full": StoreFull, "cursor_expired": CursorExpired,
    "bad_token": BadToken, "bad_condition": BadCondition, "kind_conflict": KindConflict, "too_many_groups": TooManyGroups, "busy": Busy, "unsupported": Unsupported, "not_permitted": NotPermitted,
    "cancelled": Cancelled, "deadline_exceeded": DeadlineExceeded, "shutting_down": ShuttingDown, "corrupt": Corrupt,
    **{name: BadRecord for name in _RECORD_ERRORS},
}


def larder_error(code: int, message: str = "", *, field: str = "", place: int = 0,
                 facts: Optional[Mapping[str, str]] = None, fatal: bool = False,
                 may_retry: bool = False) -> LarderError:
    """The exception of an error number: the subclass that matters, else `LarderError` itself."""
    kind = _CLASSES.get(ERROR_NAMES.get(code, ""), LarderError)
    return kind(code, message, field=field, place=place, facts=facts, fatal=fatal, may_retry=may_retry)
