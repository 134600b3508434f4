"""Events: what a subscription gives, decoded as late as possible."""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .crc32c import is_native
from .entries import CREATED, ENTRY_NAMES, KIND, Frame, Run, decode_body, read_frame, read_runs
from .errors import DecodeError
from .keys import decode_key, key_of_record, key_text
from .kinds import Kind
from .records import decode_record
from .results import Cursor
from .varint import read_varint

TYPES = {"downloaded": 1, "deleted": 2, "kind": 4, "origin": 8, "imports": 16, "recovered": 32}
SNAPSHOT_END, LOST, HEARTBEAT = "snapshot_end", "lost", "heartbeat"
CREDIT = 1 << 20
EVENT_FRAME_OVERHEAD = 12


class Event:
    """One event.

    `type` is an entry's name (`created`, `updated`, `deleted`, `kind`, `origin`, `import_began`, `import_ended`,
    `token`, `recovered`, or the number of a type that is not known), or `snapshot_end` (`seq` is S1), `lost` (`after`
    to `seq` was damaged) or `heartbeat`. `time` is the commit's, in milliseconds. `cursor` is what to keep once the
    event is dealt with. `record`, `raw`, `key`, `changed` and the others decode when they are asked for, and raise
    `DecodeError` for what does not.
    """

    __slots__ = ("type", "seq", "time", "after", "_frame", "_data", "_kinds", "_epoch", "_s0", "_body")

    def __init__(self, type: Union[str, int], seq: int, time: int, epoch: int, s0: Optional[int],
                 frame: Optional[Frame] = None, data: bytes = b"", kinds: Optional[Mapping[int, Kind]] = None,
                 after: int = 0) -> None:
        self.type = type
        self.seq = seq
        self.time = time
        self.after = after
        self._frame = frame
        self._data = data
        self._kinds = kinds
        self._epoch = epoch
        self._s0 = s0
        self._body: Optional[Dict[str, Any]] = None

    def __repr__(self) -> str:
        return f"<Event {self.type} seq {self.seq}>"

    @property
    def cursor(self) -> Cursor:
        """Where to go on after this event."""
        return Cursor(self._epoch, self.seq, self._s0)

    @property
    def body(self) -> Dict[str, Any]:
        """All fields of the entry (`entries.decode_entry`); empty for what is no entry."""
        if self._body is None:
            self._body = decode_body(self._frame, self._data, self.time) if self._frame else {}
        return self._body

    def _created(self) -> Optional[Tuple[int, int]]:
        """Of a created entry whose body was not decoded: kind number, and where the record begins."""
        frame = self._frame
        if self._body is not None or frame is None or frame.type != CREATED:
            return None
        data, at = self._data, frame.body
        if data[at] < 0x80 and data[at + 1] < 0x80 and at + 2 <= frame.end - 4:
            return data[at], at + 2
        kind, at = read_varint(data, at)
        _, at = read_varint(data, at)
        return (kind, at) if at <= frame.end - 4 else None

    @property
    def kind_number(self) -> int:
        """The number of the record's kind, 0 for an event without one."""
        created = self._created()
        if created is not None:
            return created[0]
        value = self.body.get("kind", 0)
        return value if isinstance(value, int) else value.number

    @property
    def kind(self) -> Kind:
        """The record's kind. Raises `DecodeError` (`unknown_kind`) if nobody declared it."""
        number = self.kind_number
        kind = self._kinds.get(number) if self._kinds else None
        if kind is None:
            raise DecodeError("unknown_kind", 0, f"kind {number} is not declared")
        return kind

    @property
    def origin(self) -> int:
        """Who made the change: an origin's number, 0 for the host."""
        return int(self.body.get("origin", 0))

    @property
    def saved_at(self) -> int:
        """When the record was first saved, in milliseconds."""
        return int(self.body["saved_at"])

    @property
    def first_seq(self) -> int:
        return int(self.body["first_seq"])

    @property
    def raw(self) -> bytes:
        """The record's bytes; of a deleted event the key's."""
        created = self._created()
        if created is not None and self._frame is not None:
            return self._data[created[1]:self._frame.end - 4]
        body = self.body
        value = body.get("record", body.get("key", b""))
        return bytes(value)

    @property
    def record(self) -> Dict[str, Any]:
        """The record's fields; of a deleted event the key's."""
        if self.type == "deleted":
            return decode_key(self.kind, self.raw)
        return decode_record(self.kind, self.raw)

    @property
    def key_text(self) -> str:
        """The record's key: `title:tmdb/movie/603`."""
        raw = self.raw
        return key_text(self.kind, raw if self.type == "deleted" else key_of_record(self.kind, raw))

    @property
    def changed(self) -> List[str]:
        """Names of the fields that were set, changed or removed by an updated event; numbers as text where unknown."""
        known = self.kind.by_number
        return [known[number].name if number in known else str(number) for number in self.body.get("changed", ())]


def type_mask(types: Sequence[str]) -> int:
    """The bits of SUBSCRIBE's `types`. Raises KeyError."""
    mask = 0
    for name in types:
        mask |= TYPES[name]
    return mask


def entry_name(frame: Frame) -> Union[str, int]:
    """An entry's name, or its number where it has none here."""
    return ENTRY_NAMES.get(frame.type, frame.type)


class SubscriptionState:
    """A subscription without its connection: takes frames, gives events, knows the cursor and the credit to return."""

    def __init__(self, request_id: int, kinds: Dict[int, Kind], mask: int, credit: int, verify: Optional[bool],
                 heartbeats: bool, is_snapshot: bool) -> None:
        self.is_snapshot = is_snapshot
        self.id = request_id
        self.kinds = kinds
        self.credit = credit
        self.verify = is_native if verify is None else verify
        self.heartbeats = heartbeats
        self.epoch = 0
        self.seq = 0
        self.floor = 0
        self.s0: Optional[int] = None
        self.ended = False
        self.failure: Optional[Exception] = None
        self._tell_kinds = bool(mask & TYPES["kind"])
        self._frames: Deque[Any] = deque()
        self._owed = 0
        #: Bytes of EVENTS frames that are queued, and how many of them were paid for before they were taken.
        self.queued_bytes = 0
        self._paid_ahead = 0
        #: What of the frame that is being taken will be owed.
        self._in_hand = 0

    def begin(self, subscribed: Mapping[str, Any], snapshot: bool) -> None:
        """Takes the fields of SUBSCRIBED."""
        self.epoch, self.seq, self.floor = subscribed["epoch"], subscribed["after"], subscribed["floor"]
        self.s0 = subscribed["s0"] if snapshot else None

    @property
    def cursor(self) -> Cursor:
        """Everything up to here was given out."""
        return Cursor(self.epoch, self.seq, self.s0)

    def push(self, name: str, body: bytes, fields: Mapping[str, Any]) -> None:
        """Queues a frame: EVENTS (its body), SNAPSHOT_END or LOST (their fields)."""
        self._frames.append((name, body, fields))
        if name == "EVENTS":
            self.queued_bytes += EVENT_FRAME_OVERHEAD + len(body)

    @property
    def has_frames(self) -> bool:
        return bool(self._frames)

    def owed(self) -> int:
        """Credit to send now: what was given out, once it is half of the whole. 0 when it can wait."""
        if self._owed * 2 < self.credit or not self._owed:
            return 0
        owed, self._owed = self._owed, 0
        return owed

    def owed_ahead(self) -> int:
        """Credit to send for what is queued, though nobody took it yet, once it is half of the whole. Else 0.

        Only for who waits for an answer that comes behind the events, and bounds `queued_bytes`.
        """
        unpaid = self.queued_bytes - self._paid_ahead + self._in_hand + self._owed
        if unpaid * 2 < self.credit or not unpaid:
            return 0
        self._paid_ahead = self.queued_bytes
        self._in_hand = self._owed = 0
        return unpaid

    def drain(self) -> Iterator[Event]:
        """The events of the next frame. The credit of a frame is owed once all its events were taken."""
        name, body, fields = self._frames.popleft()
        if name == "EVENTS":
            cost = EVENT_FRAME_OVERHEAD + len(body)
            self.queued_bytes -= cost
            paid = min(self._paid_ahead, cost)
            self._paid_ahead -= paid
            self._in_hand = cost - paid
            yield from self._events(body)
            self._owed += self._in_hand
            self._in_hand = 0
        elif name == "SNAPSHOT_END":
            self.s0 = None
            yield Event(SNAPSHOT_END, fields["s1"], 0, self.epoch, None)
        else:
            self.seq = fields["through"]
            yield Event(LOST, fields["through"], 0, self.epoch, self.s0, after=fields["after"])

    def _events(self, body: bytes) -> Iterator[Event]:
        after, through = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:16], "little")
        if after != self.seq:
            raise DecodeError("bad_message", 0, f"events after {after}, everything up to {self.seq} was here: a gap")
        runs: List[Run] = list(read_runs(body, 16))
        kinds, epoch, s0, verify, names = self.kinds, self.epoch, self.s0, self.verify, ENTRY_NAMES
        for first_seq, time, at, end in runs:
            while at < end:
                frame = read_frame(body, at, end, first_seq, verify)
                at = frame.end
                event = Event(names.get(frame.type, frame.type), frame.seq, time, epoch, s0, frame, body, kinds)
                if frame.type == KIND:
                    self._learn(event)
                    if not self._tell_kinds:
                        continue
                self.seq = frame.seq
                yield event
        self.seq = through
        if not runs and self.heartbeats:
            yield Event(HEARTBEAT, through, 0, epoch, s0, after=after)

    def _learn(self, event: Event) -> None:
        kind = event.body["kind"]
        known = self.kinds.get(kind.number)
        if known is None or known.version < kind.version:
            self.kinds[kind.number] = kind

