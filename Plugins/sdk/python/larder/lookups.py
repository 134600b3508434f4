"""What can be asked of a host beyond one record by its key: by condition, by value, by text, of the log; and batches.

Generators, as in `calls`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .batches import ATOMIC, DRY_RUN, RESULTS, field_number, write_body
from .calls import Call, Calls, ask, one_result
from .entries import WRITTEN_COUNTS, read_frame, read_runs
from .errors import ERROR_NAMES, EncodeError
from .events import Event, entry_name
from .keys import KeyValues
from .kinds import Kind
from .operations import Delete, Move, Operation, encode_operation
from .results import Defined, Found, Match, Refusal, Stored, Written
from .values import LIST, READERS, TEXT, WRITERS

#: The most seqs that one ENTRIES asks for.
ENTRIES_MAX = 1000


class Lookups(Calls):
    """The requests of one session, all of them."""

    def _stored(self, item: Mapping[str, Any]) -> Call:
        kind = yield from self.kind_numbered(item["kind"])
        return Stored(kind, item)

    def _all_stored(self, items: Sequence[Mapping[str, Any]]) -> Call:
        records = []
        for item in items:
            stored = yield from self._stored(item)
            records.append(stored)
        return records

    def _field(self, kind: Optional[str], name: str) -> Call:
        """A kind and the number of one of its fields."""
        if kind is None:
            raise EncodeError("unknown_field", "a field is named, so a kind must be, too", name)
        found = yield from self.kind_named(kind)
        return found, field_number(found, name)

    def page(self, kind: Optional[str], reverse: bool, limit: int, bytes_limit: int, token: bytes, condition: str,
             order: Optional[str]) -> Call:
        if order is None:
            number, field = (yield from self._number(kind)), 0
        else:
            found, field = yield from self._field(kind, order)
            number = found.number
        reply = yield from ask("LIST", {"kind": number, "flags": int(reverse), "limit": limit, "bytes_limit": bytes_limit,
                                        "token": token, "condition": condition, "order": field})
        records = yield from self._all_stored(reply["records"])
        return records, b"" if reply["is_end"] else reply["token"]

    def count(self, kind: Optional[str], condition: str, group: Optional[str]) -> Call:
        if group is not None:
            return (yield from self._groups(kind, condition, group))
        number = yield from self._number(kind)
        reply = yield from ask("COUNT", {"kind": number, "condition": condition})
        counts: Dict[str, int] = {}
        for item in reply["counts"]:
            found = yield from self.kind_numbered(item["kind"])
            counts[found.name] = item["records"]
        return counts

    def _groups(self, kind: Optional[str], condition: str, group: str) -> Call:
        found, field = yield from self._field(kind, group)
        reply = yield from ask("COUNT", {"kind": found.number, "condition": condition, "group": field})
        declared = found.by_number[field]
        read = READERS[TEXT] if declared.type == LIST else declared.reader()
        counts: Dict[Any, int] = {}
        for item in reply["groups"]:
            value = read(item["value"], 0)[0] if item["present"] else None
            # Numbers that are one float are one group here.
            counts[value] = counts.get(value, 0) + item["records"]
        return counts

    def find(self, kind: str, field: str, value: Any, limit: int) -> Call:
        found, number = yield from self._field(kind, field)
        data = bytearray()
        write = WRITERS[TEXT] if found.by_number[number].type == LIST else found.writers[number]
        write(data, value)
        reply = yield from ask("FIND", {"kind": found.number, "field": number, "value": bytes(data), "limit": limit})
        records = yield from self._all_stored(reply["records"])
        return Found(records, bool(reply["is_end"]))

    def matches(self, query: str, kind: Optional[str], limit: int, token: bytes) -> Call:
        number = yield from self._number(kind)
        reply = yield from ask("SEARCH", {"kind": number, "query": query, "limit": limit, "token": token})
        matches = []
        for item in reply["matches"]:
            stored = yield from self._stored(item["record"])
            matches.append(Match(item["rank"], stored))
        return matches, b"" if reply["is_end"] else reply["token"]

    def history(self, kind: str, key: Union[None, bytes, KeyValues], limit: int) -> Call:
        found, data = yield from self._key(kind, key)
        reply = yield from ask("HISTORY", {"kind": found.number, "key": data, "limit": limit})
        return self._events(reply["runs"])

    def entries(self, seqs: Sequence[int]) -> Call:
        """The entries of at most `ENTRIES_MAX` seqs that came in one answer, and the seqs to be asked for again."""
        yield from self._kinds_known()
        reply = yield from ask("ENTRIES", {"seqs": seqs})
        events = self._events(reply["runs"])
        at = 0
        for event in events:
            while at < len(seqs) and seqs[at] != event.seq:
                at += 1
            at += 1
        # Behind the last one that came entries may be gone, or the frame was full: ask again. Nothing came: they are gone.
        return events, list(seqs[at:]) if events else []

    def _kinds_known(self) -> Call:
        if not self.session.kinds:
            yield from ask("KINDS")

    def _events(self, runs: bytes) -> List[Event]:
        epoch = (self.session.welcome or {}).get("epoch", 0)
        events = []
        for run in read_runs(runs, 0):
            frame = read_frame(runs, run.start, run.end, run.first_seq, False)
            events.append(Event(entry_name(frame), frame.seq, run.time, epoch, None, frame, runs, self.session.kinds))
        return events

    def define(self, kind: Union[Kind, Mapping[str, Any]]) -> Call:
        draft = kind if isinstance(kind, Kind) else Kind.from_json(kind)
        reply = yield from ask("DEFINE", {"declaration": draft})
        yield from ask("KINDS")
        return Defined(reply["number"], reply["version"], bool(reply["is_changed"]))

    def write_one(self, operation: Operation, dry_run: bool) -> Call:
        """A batch of one: what it did, or what it was refused with."""
        kind, data = yield from self._encoded(operation)
        body = write_body([data], 0, 0, RESULTS | (DRY_RUN if dry_run else 0))
        return one_result((yield from ask("WRITE", body=body)), kind)

    def write(self, operations: Sequence[Operation], atomic: bool, dry_run: bool, origin: int) -> Call:
        """One batch of operations of any kinds."""
        encoded: List[bytes] = []
        for number, operation in enumerate(operations, start=1):
            try:
                _, data = yield from self._encoded(operation)
            except EncodeError as error:
                raise EncodeError(error.name, f"operation {number}: {error.reason}", error.field) from None
            encoded.append(data)
        if not encoded:
            return Written(0, dict.fromkeys(WRITTEN_COUNTS, 0), [])
        body = write_body(encoded, origin, 0, RESULTS | (ATOMIC if atomic else 0) | (DRY_RUN if dry_run else 0))
        welcome = self.session.welcome or {}
        limit = min(welcome.get("batch_limit", len(body)), welcome.get("frame_limit", len(body)))
        if len(body) > limit:
            raise EncodeError("batch_too_large", f"a batch of {len(body)} bytes, {limit} may be")
        return written_of((yield from ask("WRITE", body=body)))

    def _encoded(self, operation: Operation) -> Call:
        """The kind of an operation, and its bytes."""
        key = b""
        if isinstance(operation, (Delete, Move)):
            given = operation.key if isinstance(operation, Delete) else operation.old_key
            kind, key = yield from self._key(operation.kind, given)
        else:
            kind = yield from self.kind_named(operation.kind)
        return kind, encode_operation(operation, kind, key)


def written_of(reply: Mapping[str, Any]) -> Written:
    """WRITTEN as it is given out."""
    refusals = {item["position"]: Refusal(item["position"], ERROR_NAMES.get(item["error"], f"error_{item['error']}"),
                                          item["field"], item["offset"], item["reason"]) for item in reply["refusals"]}
    return Written.of(reply, refusals)
