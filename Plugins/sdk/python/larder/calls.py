"""What can be asked of a host, once for both clients: generators that yield `Send` and `Wait` and return the result.

`Send` queues a request and gives its id; `Wait` gives its reply's fields or raises its error. The synchronous client and
the asyncio one differ only in how they drive these.
"""

from __future__ import annotations

from collections import deque
from typing import (Any, Callable, Deque, Dict, Generator, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from .batches import DRY_RUN, Batch, Cutter, Many, write_body
from .entries import ENDED_COUNTS, WRITTEN_COUNTS
from .errors import ERROR_NUMBERS, UnknownKind, larder_error
from .events import SubscriptionState, type_mask
from .keys import KeyValues, encode_key, parse_key_text
from .kinds import Kind
from .results import Accounting, Compacted, Cursor, Saved, Stored
from .session import Session
from .varint import I64_MAX, I64_MIN

OUTCOMES = {"complete": 1, "failed": 2, "cancelled": 3}
ROLES = {"importer": 1, "exporter": 2, "notifier": 4}


class Send(NamedTuple):
    name: str
    fields: Optional[Mapping[str, Any]] = None
    body: Optional[bytes] = None
    progress: Optional[Callable[[int, int], None]] = None


class Wait(NamedTuple):
    id: int


class Subscribe(NamedTuple):
    fields: Mapping[str, Any]
    make: Callable[[int], SubscriptionState]


Call = Generator[Union[Send, Wait, Subscribe], Any, Any]


def ask(name: str, fields: Optional[Mapping[str, Any]] = None, body: Optional[bytes] = None) -> Call:
    """A request and its reply."""
    request_id = yield Send(name, fields, body)
    return (yield Wait(request_id))


def perform(session: Session, command: Union[Send, Subscribe]) -> int:
    """Queues what a command says; gives the request's id."""
    if isinstance(command, Subscribe):
        return session.add_subscription(command.fields, command.make)
    request_id = session.request(command.name, command.fields, command.body)
    if command.progress is not None:
        session.progress[request_id] = command.progress
    return request_id


class Calls:
    """The requests of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def kind_named(self, name: str) -> Call:
        """A kind by name; asks for the kinds when it is not known yet."""
        for _ in range(2):
            for kind in self.session.kinds.values():
                if kind.name == name:
                    return kind
            yield from ask("KINDS")
        raise UnknownKind(ERROR_NUMBERS["unknown_kind"], f"the library has no kind {name}")

    def kind_numbered(self, number: int) -> Call:
        if number not in self.session.kinds:
            yield from ask("KINDS")
        kind = self.session.kinds.get(number)
        if kind is None:
            raise UnknownKind(ERROR_NUMBERS["unknown_kind"], f"the library has no kind {number}")
        return kind

    def _number(self, kind: Optional[str]) -> Call:
        if kind is None:
            return 0
        found = yield from self.kind_named(kind)
        return found.number

    def _key(self, kind: str, key: Union[None, bytes, KeyValues]) -> Call:
        if key is None:
            yield from self.kind_named(kind.partition(":")[0])
            by_name = {item.name: item for item in self.session.kinds.values()}
            return parse_key_text(kind, by_name.__getitem__)
        found = yield from self.kind_named(kind)
        return found, key if isinstance(key, bytes) else encode_key(found, key)

    def kinds(self) -> Call:
        reply = yield from ask("KINDS")
        return {kind.name: kind for kind in reply["kinds"]}

    def origins(self) -> Call:
        found: List[Dict[str, Any]] = []
        while True:
            reply = yield from ask("ORIGINS", {"after": found[-1]["number"] if found else 0, "limit": 1000})
            found += reply["origins"]
            if len(reply["origins"]) < 1000:
                return found

    def get(self, kind: str, key: Union[None, bytes, KeyValues]) -> Call:
        found, data = yield from self._key(kind, key)
        reply = yield from ask("GET", {"kind": found.number, "key": data})
        return Stored(found, reply["record"])

    def clear(self, kind: Optional[str], progress: Optional[Callable[[int, int], None]]) -> Call:
        number = yield from self._number(kind)
        request_id = yield Send("CLEAR", {"kind": number}, None, progress)
        reply = yield Wait(request_id)
        return reply["deleted"]

    def compact(self, keep_history: Union[None, int, str], dead_share: int, include_last: bool,
                compress: Optional[bool], purge: Sequence[str], wait: float,
                bytes_per_second: Optional[int], progress: Optional[Callable[[int, int], None]]) -> Call:
        keys = []
        for text in purge:
            kind, key = yield from self._key(text, None)
            keys.append({"kind": kind.number, "key": key})
        # On the wire 0 leaves it to the host.
        since = {None: 0, "all": I64_MIN, "none": I64_MAX, 0: 1}.get(keep_history, keep_history)
        rate = 0 if bytes_per_second is None else bytes_per_second or I64_MAX
        request_id = yield Send("COMPACT", {
            "history_since": since, "dead_share": dead_share, "flags": (1 if include_last else 0) | {None: 0, True: 2, False: 4}[compress],
            "wait": int(wait * 1000), "rate": rate, "purged": keys}, None, progress)
        reply = yield Wait(request_id)
        return Compacted.of(reply)

    def subscribe(self, after: Union[None, str, Cursor], snapshot: bool, types: Sequence[str], kinds: Sequence[str],
                  except_origin: int, credit: int, verify: Optional[bool], heartbeats: bool) -> Call:
        yield from ask("KINDS")
        numbers = []
        for name in kinds:
            number = yield from self._number(name)
            numbers.append(number)
        credit = min(credit, (self.session.welcome or {}).get("credit_limit") or credit)
        cursor = Cursor.parse(after) if isinstance(after, str) else after
        mask = type_mask(types)
        # Declarations are always asked for: the events behind them need them.
        fields: Dict[str, Any] = {"start": 2, "types": mask | 4, "kinds": numbers, "except": except_origin,
                                  "credit": credit}
        if cursor is not None:
            fields.update(start=1 if cursor.s0 is None else 4, epoch=cursor.epoch, seq=cursor.seq)
            if cursor.s0 is not None:
                fields["s0"] = cursor.s0
        elif snapshot:
            fields["start"] = 3

        def make(request_id: int) -> SubscriptionState:
            return SubscriptionState(request_id, self.session.kinds, mask, credit, verify, heartbeats,
                                     fields["start"] in (3, 4))

        request_id = yield Subscribe(fields, make)
        yield Wait(request_id)
        return self.session.subscriptions.get(request_id)

    def begin_import(self, source: str, token: Optional[str]) -> Call:
        return (yield from ask("BEGIN_IMPORT", {"source": source, "token": token or ""}))

    def end_import(self, origin: int, outcome: str, accounting: Accounting) -> Call:
        counts = {name: accounting.counts.get(name, 0) for name in ENDED_COUNTS}
        # Deletes have no place of their own in END_IMPORT; they are left out of what was read.
        counts["skipped"] = accounting.skipped
        counts["read"] = sum(counts.values())
        reply = yield from ask("END_IMPORT", {"origin": origin, "outcome": OUTCOMES[outcome], **counts})
        return reply["seq"]

    def register(self, roles: Sequence[str], events: Sequence[str], kinds: Sequence[str],
                 commands: Sequence[str]) -> Call:
        return (yield from ask("REGISTER", {
            "roles": sum(ROLES[name] for name in set(roles)), "events": type_mask(sorted(set(events))),
            "kinds": list(kinds), "commands": list(commands)}))


def one_result(written: Mapping[str, Any], kind: Kind) -> Saved:
    """What became of a batch of one. Raises what it was refused with; the fact `seq` is that of the current entry."""
    result = written["results"][0] if written.get("results") else {"outcome": 0, "seq": written["seq"], "key": b""}
    facts = {"seq": str(result["seq"])} if result["seq"] else {}
    if written["refusals"]:
        item = written["refusals"][0]
        field = kind.by_number.get(item["field"])
        raise larder_error(item["error"], item["reason"], field=field.name if field else "", place=1, facts=facts)
    outcome = WRITTEN_COUNTS[result["outcome"]]
    if outcome in ("already_saved", "not_found"):
        raise larder_error(ERROR_NUMBERS[outcome], facts=facts)
    return Saved(outcome, result["seq"], result["key"])


class Pipeline:
    """Batches on their way: as many unanswered as fit the window, their answers added up."""

    def __init__(self, session: Session, kind: Kind, many: Many, origin: int = 0, next_batch: int = 0,
                 durable_batch: int = 0) -> None:
        welcome = session.welcome or {}
        batch_bytes = many.batch_bytes
        # A frame also has the counts before the operations.
        limit = min(welcome.get("batch_limit") or batch_bytes, (welcome.get("frame_limit") or batch_bytes + 64) - 64)
        self.accounting = Accounting()
        self.cutter = Cutter(kind, many, min(batch_bytes, limit), self.accounting)
        self._flags = DRY_RUN if many.dry_run else 0
        # What changes nothing has no place in an import's row of batches.
        self._is_numbered = next_batch > 0 and not many.dry_run
        self.next_batch = next_batch
        self._origin = origin
        self._durable_batch = durable_batch
        self._window = many.window_bytes
        self._requests_max = max(1, (welcome.get("open_requests_limit") or 64) - 1)
        self._session = session
        self._waiting: Deque[Tuple[int, Batch]] = deque()
        self._bytes = 0

    def add(self, item: Any) -> Call:
        """Takes a record, and sends a batch when one is full."""
        batch = self.cutter.add(item)
        if batch is not None:
            yield from self._send(batch)

    def add_all(self, items: Iterable[Any]) -> Call:
        """Everything, to the last answer."""
        for item in items:
            batch = self.cutter.add(item)
            if batch is not None:
                yield from self._send(batch)
        yield from self.finish()

    def finish(self) -> Call:
        """Sends the rest and waits for all answers."""
        for batch in self.cutter.finish():
            yield from self._send(batch)
        while self._waiting:
            yield from self._settle()
        return self.accounting

    def _send(self, batch: Batch) -> Call:
        number = self.next_batch if self._is_numbered else 0
        if number:
            self.next_batch += 1
            if number <= self._durable_batch:
                self.accounting.already_durable += len(batch.operations)
                return
        while self._waiting and (self._bytes + batch.bytes > self._window
                                 or self._session.open_requests >= self._requests_max):
            yield from self._settle()
        request_id = yield Send("WRITE", None, write_body(batch.operations, self._origin, number, self._flags))
        batch.operations = []
        self._waiting.append((request_id, batch))
        self._bytes += batch.bytes

    def _settle(self) -> Call:
        request_id, batch = self._waiting.popleft()
        self._bytes -= batch.bytes
        written = yield Wait(request_id)
        self.accounting.add(written, batch.positions)
