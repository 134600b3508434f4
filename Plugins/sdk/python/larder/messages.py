"""Every message of SPEC.md section 5: its number and the fields of its body."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

from .codec import Reader, Writer
from .entries import COMPACTED_COUNTS, ENDED_COUNTS, WRITTEN_COUNTS, read_runs
from .errors import DecodeError, EncodeError, named_in
from .kinds import is_blank
from .layouts import (BYTES, EMPTY_BYTES, EMPTY_TEXT, I64, SVARINT, TEXT, U32, U64, U8, VARINT, ZERO, Checked,
                      Declaration, Draft, Judged, ListOf, Rest, Struct, When, among, counts, flags, sized, within)
from .varint import U64_MAX, read_varint

REQUEST, NOTICE, REPLY = "request", "notice", "reply"

SAVE, DELETE, MOVE, RESTORE = 1, 2, 3, 4
PERSONAL, IF_SEQ, UNLESS_EXISTS, UNSET = 1, 2, 4, 8


class Message:
    """One message: `number`, `name`, the `direction` that may send it (C client, H host, both), what it is, and its body.

    A request has the number of its reply in `reply`; a notice that carries an id has `has_id`. Names are those of
    `messages.json`, but that the host's GOODBYE is GOODBYE_HOST here.
    """

    def __init__(self, number: int, name: str, direction: str, role: str, body: Struct, reply: int = 0,
                 has_id: bool = False) -> None:
        self.number = number
        self.name = name
        self.direction = direction
        self.role = role
        self.body = body
        self.reply = reply
        self.has_id = has_id or role in (REQUEST, REPLY)

    def __repr__(self) -> str:
        return f"<Message {self.number:02X} {self.name}>"

    def encode(self, fields: Optional[Mapping[str, Any]] = None) -> bytes:
        """The body's bytes. A field that is left out has its default. Raises `EncodeError`."""
        writer = Writer()
        self.body.put(writer, fields or {})
        return writer.done()

    def decode(self, data: bytes) -> Dict[str, Any]:
        """The body's fields, consumed to its last byte. Raises `DecodeError`."""
        reader = Reader(data)
        try:
            fields = self.body.get(reader)
        except DecodeError as error:
            raise named_in(error, "bad_message")
        reader.finish("bad_message")
        return fields


def _check_runs(data: bytes, offset: int) -> None:
    for _ in read_runs(data, offset):
        pass


def _check_single_entries(data: bytes, offset: int) -> None:
    """Runs of exactly one entry each."""
    for run in read_runs(data, offset):
        try:
            length, body = read_varint(data, run.start)
        except DecodeError:
            length, body = 0, run.end
        if length == 0 or body + length != run.end:
            raise DecodeError("bad_message", run.start, "a run that is not one entry")


STORED = Struct(("kind", VARINT), ("seq", VARINT), ("first_seq", VARINT), ("saved_at", SVARINT),
                ("changed_at", SVARINT), ("origin", VARINT), ("record", BYTES))


def _operation_problem(value: Mapping[str, Any]) -> str:
    verb, mode, options = value["verb"], value["mode"], value.get("options", 0)
    if not (1 <= mode <= 4 if verb == SAVE else mode == 0):
        return f"the mode {mode} is none of the operation's"
    if options & UNSET and not (verb == SAVE and mode == 3):
        return "only a merge unsets fields"
    if options & UNLESS_EXISTS and verb == DELETE:
        return "a delete has no values that others could have"
    return ""


def _known_problem(value: Mapping[str, Any]) -> str:
    return "of a delete or a restore it is 0" if value["verb"] in (DELETE, RESTORE) and value["known"] else ""


def _with(bit: int) -> Callable[[Mapping[str, Any]], bool]:
    return lambda value: bool(value.get("options", 0) & bit)


OPERATION = Struct(
    ("verb", among(U8, SAVE, DELETE, MOVE, RESTORE)), ("mode", within(U8, 0, 4)), ("options", flags(U8, 15)),
    ("kind", VARINT), ("known", Judged(ZERO, _known_problem)), ("if_seq", When(VARINT, _with(IF_SEQ))),
    ("unless_exists", When(VARINT, _with(UNLESS_EXISTS))), ("unset", When(ListOf(VARINT), _with(UNSET))),
    ("old_key", When(BYTES, lambda value: value["verb"] == MOVE)),
    ("first_seq", When(within(VARINT, 1, U64_MAX), lambda value: value["verb"] == RESTORE)),
    ("saved_at", When(SVARINT, lambda value: value["verb"] == RESTORE)), ("body", BYTES), rule=_operation_problem)

_REFUSAL = Struct(("position", VARINT), ("error", VARINT), ("field", VARINT), ("offset", VARINT), ("reason", TEXT))
_RESULT = Struct(("outcome", within(U8, 0, 7)), ("seq", U64), ("key", BYTES))
_KIND_COUNT = Struct(("kind", VARINT), ("records", VARINT))
_GROUP_COUNT = Struct(("present", among(U8, 0, 1)), ("value", Judged(
    BYTES, lambda value: "records without a value have none here" if value["value"] and not value["present"] else "")),
                      ("records", VARINT))
_MATCH = Struct(("rank", VARINT), ("record", STORED))
# 2: blocks are compressed, 4: they are not; not both.
_COMPACT_FLAGS = Checked(U8, lambda value: value < 6, "flags within 7, 2 without 4", default=0)
_PURGED_KEY = Struct(("kind", VARINT), ("key", BYTES))
_FACT = Struct(("name", TEXT), ("value", TEXT))
_SESSION = Struct(("id", VARINT), ("name", TEXT), ("version", TEXT), ("roles", VARINT), ("events", VARINT),
                  ("pid", VARINT), ("subscriptions", VARINT), ("lag", VARINT))
_PLUGIN = Struct(("name", TEXT), ("state", TEXT), ("pid", VARINT), ("restarts", VARINT), ("last_error", TEXT))


def _with_cursor(value: Mapping[str, Any]) -> bool:
    return value["start"] in (1, 4)


_MESSAGES = (
    Message(0x01, "HELLO", "C", REQUEST, Struct(
        ("version_min", VARINT), ("version_max", VARINT), ("name", sized(TEXT, 1, 64)), ("version", TEXT),
        ("required", ListOf(TEXT)), ("optional", ListOf(TEXT)), ("deadline", ZERO), ("token", EMPTY_BYTES)), 0x81),
    Message(0x81, "WELCOME", "H", REPLY, Struct(
        ("version", VARINT), ("host", TEXT), ("host_version", TEXT), ("capabilities", ListOf(TEXT)), ("epoch", U64),
        ("last_seq", U64), ("floor", U64), ("record_limit", VARINT), ("batch_limit", VARINT), ("frame_limit", VARINT),
        ("open_requests_limit", VARINT), ("credit_limit", VARINT))),
    Message(0x02, "REGISTER", "C", REQUEST, Struct(
        ("roles", flags(VARINT, 7)), ("events", flags(VARINT, 3)), ("kinds", ListOf(TEXT)), ("condition", EMPTY_TEXT),
        ("commands", ListOf(TEXT))), 0x82),
    Message(0x82, "REGISTERED", "H", REPLY, Struct(
        ("name", TEXT), ("settings", ListOf(Struct(("name", TEXT), ("value", TEXT)))))),
    Message(0x03, "READY", "C", NOTICE, Struct()),
    Message(0x16, "BEGIN_IMPORT", "C", REQUEST, Struct(("source", TEXT), ("token", sized(TEXT, 0, 64, ""))), 0x96),
    Message(0x96, "IMPORT_BEGUN", "H", REPLY, Struct(
        ("origin", VARINT), ("last_batch", VARINT), ("resumed", among(U8, 0, 1)))),
    Message(0x17, "END_IMPORT", "C", REQUEST, Struct(
        ("origin", VARINT), ("outcome", among(U8, 1, 2, 3)), *counts(ENDED_COUNTS)), 0x97),
    Message(0x97, "IMPORT_ENDED", "H", REPLY, Struct(("seq", U64))),
    Message(0x04, "WRITE", "C", REQUEST, Struct(
        ("flags", flags(U8, 7)), ("origin", ZERO), ("batch", ZERO), ("operations", ListOf(OPERATION, 1))), 0x84),
    Message(0x84, "WRITTEN", "H", REPLY, Struct(
        ("flags", flags(U8, 1)), ("seq", U64), *counts(WRITTEN_COUNTS), ("refusals", ListOf(_REFUSAL)),
        ("results", When(ListOf(_RESULT), lambda value: bool(value.get("flags", 0) & 1))))),
    Message(0x05, "GET", "C", REQUEST, Struct(("kind", VARINT), ("key", BYTES)), 0x85),
    Message(0x85, "RECORD", "H", REPLY, Struct(("record", STORED))),
    Message(0x06, "LIST", "C", REQUEST, Struct(
        ("kind", ZERO), ("flags", flags(U8, 1)), ("limit", within(VARINT, 1, 10_000)), ("bytes_limit", ZERO),
        ("token", EMPTY_BYTES), ("condition", EMPTY_TEXT), ("order", ZERO)), 0x86),
    Message(0x86, "PAGE", "H", REPLY, Struct(("is_end", among(U8, 0, 1)), ("token", BYTES), ("records", ListOf(STORED)))),
    Message(0x07, "COUNT", "C", REQUEST, Struct(("kind", ZERO), ("condition", EMPTY_TEXT), ("group", ZERO)), 0x87),
    Message(0x87, "COUNTED", "H", REPLY, Struct(("counts", ListOf(_KIND_COUNT)), ("groups", ListOf(_GROUP_COUNT)))),
    Message(0x1B, "FIND", "C", REQUEST, Struct(
        ("kind", VARINT), ("field", VARINT), ("value", BYTES), ("limit", within(VARINT, 1, 1_000))), 0x9B),
    Message(0x9B, "FOUND", "H", REPLY, Struct(("is_end", among(U8, 0, 1)), ("records", ListOf(STORED)))),
    Message(0x1C, "SEARCH", "C", REQUEST, Struct(
        ("kind", ZERO), ("query", Checked(sized(TEXT, 1, 256), lambda query: not is_blank(query), "not blank")),
        ("limit", within(VARINT, 1, 1_000)), ("token", EMPTY_BYTES)), 0x9C),
    Message(0x9C, "MATCHES", "H", REPLY, Struct(
        ("is_end", among(U8, 0, 1)), ("token", BYTES), ("matches", ListOf(_MATCH)))),
    Message(0x1D, "HISTORY", "C", REQUEST, Struct(
        ("kind", VARINT), ("key", BYTES), ("limit", within(VARINT, 1, 1_000))), 0x9D),
    Message(0x9D, "HISTORY_IS", "H", REPLY, Struct(("runs", Rest(_check_single_entries)))),
    Message(0x20, "ENTRIES", "C", REQUEST, Struct(("seqs", ListOf(VARINT, 1, 1_000))), 0xA0),
    Message(0xA0, "ENTRIES_ARE", "H", REPLY, Struct(("runs", Rest(_check_single_entries)))),
    Message(0x13, "DEFINE", "C", REQUEST, Struct(("declaration", Draft())), 0x93),
    Message(0x93, "DEFINED", "H", REPLY, Struct(
        ("number", VARINT), ("version", VARINT), ("is_changed", among(U8, 0, 1)))),
    Message(0x08, "CLEAR", "C", REQUEST, Struct(("kind", ZERO)), 0x88),
    Message(0x9E, "PROGRESS", "H", NOTICE, Struct(("done", VARINT), ("total", VARINT)), has_id=True),
    Message(0x88, "CLEARED", "H", REPLY, Struct(("deleted", VARINT), ("seq", U64))),
    Message(0x21, "COMPACT", "C", REQUEST, Struct(
        ("history_since", I64), ("dead_share", within(U8, 0, 100)), ("flags", _COMPACT_FLAGS), ("wait", ZERO),
        ("rate", ZERO), ("purged", ListOf(_PURGED_KEY, 0, 1_000))), 0xA1),
    Message(0xA1, "COMPACTED", "H", REPLY, Struct(
        *counts(COMPACTED_COUNTS), ("floor", U64), ("history_since", I64))),
    Message(0x09, "KINDS", "C", REQUEST, Struct(), 0x89),
    Message(0x89, "KIND_LIST", "H", REPLY, Struct(("kinds", ListOf(Declaration())))),
    Message(0x12, "ORIGINS", "C", REQUEST, Struct(("after", ZERO), ("limit", within(VARINT, 1, 10_000))), 0x92),
    Message(0x92, "ORIGIN_LIST", "H", REPLY, Struct(("origins", ListOf(Struct(
        ("number", VARINT), ("name", TEXT), ("token", TEXT), ("time", SVARINT)))))),
    Message(0x0A, "SUBSCRIBE", "C", REQUEST, Struct(
        ("start", among(U8, 1, 2, 3, 4)), ("epoch", When(U64, _with_cursor)), ("seq", When(U64, _with_cursor)),
        ("s0", When(U64, lambda value: value["start"] == 4)), ("types", flags(VARINT, 63)), ("kinds", ListOf(VARINT)),
        ("except", ZERO), ("flags", flags(U8, 1)), ("condition", EMPTY_TEXT), ("credit", VARINT)), 0x8A),
    Message(0x8A, "SUBSCRIBED", "H", REPLY, Struct(("epoch", U64), ("after", U64), ("s0", U64), ("floor", U64))),
    Message(0x8B, "EVENTS", "H", NOTICE, Struct(("after", U64), ("through", U64), ("runs", Rest(_check_runs))),
            has_id=True),
    Message(0x98, "SNAPSHOT_END", "H", NOTICE, Struct(("s1", U64)), has_id=True),
    Message(0x99, "LOST", "H", NOTICE, Struct(("after", U64), ("through", U64)), has_id=True),
    Message(0x0B, "CREDIT", "C", NOTICE, Struct(("bytes", VARINT)), has_id=True),
    Message(0x0C, "SYNC", "C", REQUEST, Struct(("subscription", U32)), 0x8C),
    Message(0x8C, "SYNCED", "H", REPLY, Struct(("through", U64))),
    Message(0x0D, "UNSUBSCRIBE", "C", REQUEST, Struct(("subscription", U32)), 0x8D),
    Message(0x8D, "UNSUBSCRIBED", "H", REPLY, Struct(("through", U64))),
    Message(0x0E, "PING", "CH", REQUEST, Struct(("bytes", sized(BYTES, 0, 64, b""))), 0x8E),
    Message(0x8E, "PONG", "CH", REPLY, Struct(("bytes", sized(BYTES, 0, 64, b"")))),
    Message(0x0F, "CANCEL", "C", NOTICE, Struct(), has_id=True),
    Message(0x10, "STATUS", "C", REQUEST, Struct(), 0x90),
    Message(0x90, "STATUS_IS", "H", REPLY, Struct(
        ("state", TEXT), ("reason", TEXT), ("mode", among(U8, 1, 2)), ("pid", VARINT), ("version", TEXT),
        ("library", TEXT), ("socket", TEXT), ("epoch", U64), ("last_seq", U64), ("floor", U64), ("started", SVARINT),
        ("segments", VARINT), ("log_bytes", VARINT),
        ("counts", ListOf(_KIND_COUNT)), ("sessions", ListOf(_SESSION)),
        ("plugins", ListOf(_PLUGIN)), ("reclaimable", VARINT))),
    Message(0x14, "PLUGIN", "C", REQUEST, Struct(("name", TEXT), ("action", among(U8, 1, 2, 3, 4))), 0x94),
    Message(0x94, "PLUGIN_DONE", "H", REPLY, Struct(("state", TEXT))),
    Message(0x15, "GIVE_WAY", "C", REQUEST, Struct(), 0x95),
    Message(0x95, "GIVING_WAY", "H", REPLY, Struct()),
    Message(0x11, "GOODBYE", "C", NOTICE, Struct(("error", ZERO), ("reason", EMPTY_TEXT))),
    Message(0x91, "GOODBYE_HOST", "H", NOTICE, Struct(("error", ZERO), ("reason", EMPTY_TEXT))),
    Message(0x9F, "ERROR", "H", REPLY, Struct(
        ("error", VARINT), ("flags", flags(U8, 3)), ("place", ZERO), ("field", EMPTY_TEXT), ("message", EMPTY_TEXT),
        ("facts", ListOf(_FACT)))),
)

#: All messages by number, and by name. The host's GOODBYE (91) goes by GOODBYE_HOST.
BY_NUMBER: Dict[int, Message] = {message.number: message for message in _MESSAGES}
BY_NAME: Dict[str, Message] = {message.name: message for message in _MESSAGES}


def check_request_id(number: int, request_id: int) -> None:
    """Raises `bad_frame` at the header's id when a request has the id 0."""
    message = BY_NUMBER.get(number)
    if request_id == 0 and message is not None and message.role == REQUEST:
        raise DecodeError("bad_frame", 8, f"{message.name} with the request id 0")


def message_named(name: str) -> Message:
    """The message of a name."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise EncodeError("unknown_message", f"there is no message {name}") from None
