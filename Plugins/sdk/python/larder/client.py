"""The synchronous client, on a plain socket.

A client belongs to one thread at a time: open one for each thread. Only `stop` may be called from anywhere, also from a
signal handler. While a call waits, what arrives for subscriptions is queued, at most their credit (`Subscription.sync`
says how much more).
"""

from __future__ import annotations

import math
import os
import select
import socket
import time
from itertools import islice
from types import TracebackType
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Type, Union,
                    overload)

from .batches import BATCH_BYTES, WINDOW_BYTES, Many, RecordLike
from .calls import Call, Pipeline, Send, Wait, ask, perform
from .discovery import PathLike, hello_token, inherited_socket, socket_path
from .errors import ConnectionLost, LarderError
from .events import CREDIT, Event, SubscriptionState
from .importing import ImportSession
from .keys import KeyValues
from .kinds import Kind
from .lookups import ENTRIES_MAX, Lookups
from .operations import Delete, Operation, Save
from .results import Accounting, Compacted, Cursor, Defined, Found, Match, Saved, Stored, Written
from .session import STATUS_SECONDS, Session
from .subscription import Subscription

RECEIVE_BYTES = 256 << 10


class Client:
    """A connection to a host. A context manager: `with larder.connect("my-program") as library:`.

    Calls raise a subclass of `LarderError` for what the host refuses, `ConnectionLost` when the connection ends, and
    `TimeoutError` when `timeout` seconds pass without anything coming; after that the client is closed.

    A host that opens a large library is waited for as long as it says so; `recovering` is told the fields of its STATUS_IS
    about once a second meanwhile, whose `reason` says how far it is. What it raises ends the waiting.
    """

    def __init__(self, sock: socket.socket, name: str, version: str = "0", *, token: bytes = b"", deadline: int = 0,
                 timeout: Optional[float] = None, recovering: Optional[Callable[[Dict[str, Any]], None]] = None) -> None:
        self.timeout = timeout
        self.stopping = False
        self.is_closed = False
        self._socket = sock
        sock.setblocking(False)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._session = Session()
        self._calls = Lookups(self._session)
        self._replies: Dict[int, Union[Dict[str, Any], LarderError]] = {}
        #: Requests whose answers nobody waits for any more.
        self._abandoned: Set[int] = set()
        try:
            self.welcome: Dict[str, Any] = self._greet(self._session.hello(name, version, token, deadline), recovering)
        except BaseException:
            self._drop()
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # What moves bytes.

    def _pump(self, wait: bool, stoppable: bool = False, deadline: Optional[float] = None) -> bool:
        """Sends and receives once. With `wait` it blocks until something moves; `stoppable`, or `stop` was called.

        False: the deadline (of `time.monotonic`) passed first. Without one the client's timeout ends it.
        """
        if self.is_closed:
            raise ConnectionLost("the connection is closed")
        out = self._session.outgoing
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if out else 0))
        if stoppable:
            if self.stopping:
                return True
            poll.register(self._wake_read, select.POLLIN)
        seconds = self.timeout if deadline is None else max(deadline - time.monotonic(), 0)
        ready = poll.poll(0 if not wait else None if seconds is None else math.ceil(seconds * 1000))
        if not ready and deadline is not None:
            return False
        if not ready and wait:
            self._drop()
            raise TimeoutError("the host did not answer in time")
        try:
            for number, flags in ready:
                if number != self._socket.fileno():
                    continue
                if flags & ~select.POLLOUT:
                    self._receive()
                if flags & select.POLLOUT:
                    self._push_out()
        except (BlockingIOError, InterruptedError):
            pass
        except (ConnectionLost, LarderError, OSError) as error:
            self._drop()
            if isinstance(error, (ConnectionLost, LarderError)):
                raise
            raise ConnectionLost(str(error)) from error
        return True

    def _push_out(self) -> None:
        out = self._session.outgoing
        while out:
            with memoryview(out) as view:
                sent = self._socket.send(view)
            del out[:sent]

    def _receive(self) -> None:
        data = self._socket.recv(RECEIVE_BYTES)
        if not data:
            said = self._session.goodbye
            raise ConnectionLost(f"the host said goodbye: {said['reason']}" if said else "the host closed the connection")
        for reply in self._session.receive(data):
            if reply.id in self._abandoned:
                self._abandoned.discard(reply.id)
            else:
                self._replies[reply.id] = reply.result

    def _flush(self) -> None:
        if self._session.outgoing and not self.is_closed:
            try:
                self._push_out()
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._drop()
                raise ConnectionLost(str(error)) from error

    def _greet(self, hello_id: int, recovering: Optional[Callable[[Dict[str, Any]], None]]) -> Dict[str, Any]:
        """Waits for WELCOME, asking for the status where it is late."""
        self._flush()
        asked: Optional[int] = None
        given_up_at = self._after(self.timeout)
        pause = STATUS_SECONDS if self.timeout is None else min(STATUS_SECONDS, self.timeout / 2)
        ask_at = self._after(pause)
        while hello_id not in self._replies:
            if asked is not None and asked in self._replies:
                status = self._wait(asked)
                asked, ask_at = None, self._after(pause)
                if status["state"] == "recovering":
                    given_up_at = self._after(self.timeout)
                    if recovering is not None:
                        recovering(status)
            until = min(ask_at, given_up_at) if asked is None else given_up_at
            if self._pump(wait=True, deadline=None if math.isinf(until) else until):
                continue
            if time.monotonic() >= given_up_at:
                raise TimeoutError("the host did not answer in time")
            if asked is None:
                asked = self._session.request("STATUS")
                self._flush()
        if asked is not None and self._replies.pop(asked, None) is None:
            self._abandon(asked)
        return self._wait(hello_id)

    @staticmethod
    def _after(seconds: Optional[float]) -> float:
        """The time of `time.monotonic` in so many seconds."""
        return math.inf if seconds is None else time.monotonic() + seconds

    def _begin(self, call: Call) -> int:
        """Queues the first request of a call; gives its id."""
        command = next(call)
        assert isinstance(command, Send)
        request_id = perform(self._session, command)
        self._flush()
        return request_id

    def _abandon(self, request_id: int) -> None:
        """The answer, when it comes, is dropped."""
        self._abandoned.add(request_id)

    def _wait(self, request_id: int, meanwhile: Callable[[], None] = lambda: None) -> Dict[str, Any]:
        """The reply of a request. `meanwhile` is called each time before it waits."""
        self._flush()
        while request_id not in self._replies:
            meanwhile()
            self._pump(wait=True)
        result = self._replies.pop(request_id)
        if isinstance(result, LarderError):
            raise result
        return result

    def _run(self, call: Call) -> Any:
        """Drives a call to its result."""
        value: Any = None
        failure: Optional[BaseException] = None
        while True:
            try:
                command = call.send(value) if failure is None else call.throw(failure)
            except StopIteration as done:
                return done.value
            value = failure = None
            try:
                if isinstance(command, Wait):
                    value = self._wait(command.id)
                else:
                    value = perform(self._session, command)
                    self._flush()
            except (LarderError, ConnectionLost, TimeoutError) as error:
                failure = error

    # Writing.

    def save(self, kind: str, record: RecordLike, *, mode: str = "merge", personal: bool = False,
             if_seq: Optional[int] = None, unless_exists: Optional[str] = None, unset: Sequence[str] = (),
             dry_run: bool = False) -> Saved:
        """Saves one record. Durable on return. The options are those of `operations.Save`; a `dry_run` changes nothing.

        Raises `AlreadySaved` (insert, `unless_exists`), `Conflict` (`if_seq`), `BadRecord` and its like for a record that is
        refused, `EncodeError` for one that cannot be sent. Of the first two the fact `seq` is the current entry's.
        """
        operation = Save(kind, record, mode, personal, if_seq, unless_exists, unset)
        result: Saved = self._run(self._calls.write_one(operation, dry_run))
        return result

    def save_many(self, kind: str, records: Iterable[RecordLike], *, mode: str = "merge", personal: bool = False,
                  unless_exists: Optional[str] = None, dry_run: bool = False, batch_bytes: int = BATCH_BYTES,
                  window_bytes: int = WINDOW_BYTES) -> Accounting:
        """Saves records in batches, sending on while answers are awaited. All are durable on return.

        A refused record stops nothing: see the accounting's `refusals`. The first batch that fails as a whole raises. With
        `dry_run` nothing is changed and the accounting is what would be; each batch is decided as if the ones before it
        had not been, so a key that comes twice, in two batches, counts as created twice.
        """
        many = Many(mode, personal, unless_exists, dry_run, batch_bytes, window_bytes)
        found = self._run(self._calls.kind_named(kind))
        pipeline = Pipeline(self._session, found, many)
        self._run(pipeline.add_all(records))
        return pipeline.accounting

    def write(self, operations: Iterable[Operation], *, atomic: bool = False, dry_run: bool = False,
              origin: int = 0) -> Written:
        """One batch of `Save`, `Delete`, `Move` and `Restore`, of any kinds, decided in their order. Durable on return.

        Each is refused alone: see the results. An `atomic` batch is done whole or not at all; then it raises what its first
        failing operation came to (`AlreadySaved`, `NotFound`, `Conflict`, `BadRecord`, …), whose `place` is 1 + the
        position. With `dry_run` nothing is changed. `origin` is an import's. It goes in one frame: `EncodeError`
        (`batch_too_large`) if it does not fit.
        """
        result: Written = self._run(self._calls.write(list(operations), atomic, dry_run, origin))
        return result

    def import_session(self, source: str, token: Optional[str] = None) -> ImportSession:
        """An import, as a context manager. With a `token` it can be continued after a lost connection."""
        return ImportSession(self, source, token)

    def delete(self, kind: str, key: Union[None, bytes, KeyValues] = None, *, if_seq: Optional[int] = None,
               dry_run: bool = False) -> Saved:
        """Deletes a record: `delete("title:tmdb/movie/603")` or kind and key values. Raises `NotFound`, `Conflict`."""
        result: Saved = self._run(self._calls.write_one(Delete(kind, key, if_seq), dry_run))
        return result

    def clear(self, kind: Optional[str] = None, progress: Optional[Callable[[int, int], None]] = None) -> int:
        """Deletes everything, or everything of a kind; gives how many. `progress` is told done and total."""
        result: int = self._run(self._calls.clear(kind, progress))
        return result

    def compact(self, *, keep_history: Union[None, int, str] = None, dead_share: int = 0, include_last: bool = True,
                compress: Optional[bool] = None, purge: Sequence[str] = (), wait: float = 30.0,
                bytes_per_second: Optional[int] = None,
                progress: Optional[Callable[[int, int], None]] = None) -> Compacted:
        """Rewrites the log without what is not needed any more, and takes purged keys out of it.

        `keep_history`: what was superseded at or after it is kept, ms since 1970; "all", "none", or None: as the host is
        set. `dead_share`: a segment is rewritten when at least so many percent of it would go; 0: whenever anything would.
        `include_last`: also the segment that is written. `compress`: True: blocks are compressed with zstd, also of segments of
        which nothing would go; False: none is any more; None: as they are. `purge`: keys in text of records that were deleted, at most 1,000;
        subscriptions that have not learned of the delete after `wait` seconds are ended. `bytes_per_second`: None: the
        host's; 0: as fast as it goes. `progress` is told done and total, in segments. Raises `Busy`, `Conflict` (a purged
        key has a record; `place` is 1 + its position), `StoreFull`, `FailedToDelete`.
        """
        result: Compacted = self._run(self._calls.compact(keep_history, dead_share, include_last, compress, purge, wait,
                                                          bytes_per_second, progress))
        return result

    # Reading.

    def get(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Stored:
        """One record: `get("title:tmdb/movie/603")` or kind and key values. Raises `NotFound`."""
        result: Stored = self._run(self._calls.get(kind, key))
        return result

    def list(self, kind: Optional[str] = None, *, condition: str = "", order: Optional[str] = None,
             reverse: bool = False, newest_first: bool = False, page: int = 1000) -> Iterator[Stored]:
        """All records in the order in which they were first saved, or of a field's values; page by page.

        `condition`: which ones, SPEC.md section 17: `release_date >= 1990 and vote_average > 7.5`. `order`: the name of a
        field of the kind; records without a value there come last. `reverse`: backwards (`newest_first` is the same).
        Raises `BadCondition`, `EncodeError` (`unknown_field`).
        """
        token = b""
        while True:
            records, token = self.page(kind, condition=condition, order=order, reverse=reverse or newest_first, limit=page,
                                       token=token)
            yield from records
            if not token:
                return

    def page(self, kind: Optional[str] = None, *, condition: str = "", order: Optional[str] = None, reverse: bool = False,
             newest_first: bool = False, limit: int = 1000, bytes_limit: int = 0,
             token: bytes = b"") -> Tuple[List[Stored], bytes]:
        """One page of at most `limit` (1 to 10,000) records and the token of the next, empty at the end. A token is of the
        same kind, condition, order and direction; else `BadToken`."""
        result: Tuple[List[Stored], bytes] = self._run(self._calls.page(
            kind, reverse or newest_first, limit, bytes_limit, token, condition, order))
        return result

    @overload
    def count(self, kind: Optional[str] = None, *, condition: str = "") -> Dict[str, int]: ...

    @overload
    def count(self, kind: Optional[str] = None, *, condition: str = "", group: str) -> Dict[Any, int]: ...

    def count(self, kind: Optional[str] = None, *, condition: str = "", group: Optional[str] = None) -> Dict[Any, int]:
        """How many records there are, by kind; with `group`, by the values of that field of the kind, most records first,
        None for those without one. A list counts once for each different text. Raises `BadCondition`, `TooManyGroups`."""
        result: Dict[Any, int] = self._run(self._calls.count(kind, condition, group))
        return result

    def find(self, kind: str, field: str, value: Any, *, limit: int = 1000) -> Found:
        """The records of a kind with a value in an indexed field, at most `limit` (1 to 1,000), in the order of saving.

        Text is compared without regard to case, width and normal form. A list field is met by each of its texts.
        """
        result: Found = self._run(self._calls.find(kind, field, value, limit))
        return result

    def search(self, query: str, kind: Optional[str] = None, *, page: int = 100) -> Iterator[Match]:
        """The records that have every word of the query (1 to 256 bytes), the best first; page by page."""
        token = b""
        while True:
            matches, token = self._run(self._calls.matches(query, kind, page, token))
            yield from matches
            if not token:
                return

    def history(self, kind: str, key: Union[None, bytes, KeyValues] = None, *, limit: int = 1000) -> List[Event]:
        """What the log still holds of a key, newest first, at most `limit` (1 to 1,000): created, updated and deleted events.
        The key may be deleted or never have been. Where entries are large the oldest are left out."""
        result: List[Event] = self._run(self._calls.history(kind, key, limit))
        return result

    def entries(self, seqs: Iterable[int]) -> Iterator[Event]:
        """The log's entries of these seqs, in their order; those that the log does not hold are left out."""
        source = iter(seqs)
        asked = list(islice(source, ENTRIES_MAX))
        while asked:
            events, asked = self._run(self._calls.entries(asked))
            yield from events
            asked += islice(source, ENTRIES_MAX - len(asked))

    def define(self, kind: Union[Kind, Mapping[str, Any]]) -> Defined:
        """Declares a kind, or adds to one: a `Kind`, or the form of `Protocol/kinds/*.json`, in which number and version may
        be left out. Durable on return. Raises `KindConflict` where it contradicts what is there."""
        result: Defined = self._run(self._calls.define(kind))
        return result

    def kinds(self) -> Dict[str, Kind]:
        """The library's kinds by name, asked anew."""
        result: Dict[str, Kind] = self._run(self._calls.kinds())
        return result

    def origins(self) -> List[Dict[str, Any]]:
        """Who made changes: number, name, token, time."""
        result: List[Dict[str, Any]] = self._run(self._calls.origins())
        return result

    def status(self) -> Dict[str, Any]:
        """What the host says of itself: STATUS_IS's fields."""
        result: Dict[str, Any] = self._run(ask("STATUS"))
        return result

    def ping(self, data: bytes = b"") -> float:
        """Seconds for a PING and its PONG."""
        begun = time.monotonic()
        self._run(ask("PING", {"bytes": data}))
        return time.monotonic() - begun

    def call(self, message: str, fields: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Any request of `messages` by name, and its reply's fields."""
        result: Dict[str, Any] = self._run(ask(message, fields))
        return result

    def register(self, roles: Sequence[str], *, events: Sequence[str] = (), kinds: Sequence[str] = (),
                 commands: Sequence[str] = (), ready: bool = True) -> Dict[str, Any]:
        """REGISTER with roles (importer, exporter, notifier) and events (downloaded, deleted), then READY."""
        result: Dict[str, Any] = self._run(self._calls.register(roles, events, kinds, commands))
        if ready:
            self._session.notice("READY")
            self._flush()
        return result

    # Following.

    def subscribe(self, after: Union[None, str, Cursor] = None, *, snapshot: bool = False,
                  types: Sequence[str] = ("downloaded", "deleted"), kinds: Sequence[str] = (), except_origin: int = 0,
                  credit: int = CREDIT, verify: Optional[bool] = None, heartbeats: bool = False) -> "Subscription":
        """Follows the library: after a cursor, or with `snapshot` everything first, else from now.

        `types`: downloaded, deleted, kind, origin, imports, recovered. `verify` checks every entry's CRC; by default
        only where a native CRC-32C is installed, for the pure one is slow. Raises `CursorExpired`.
        """
        state: SubscriptionState = self._run(self._calls.subscribe(
            after, snapshot, types, kinds, except_origin, credit, verify, heartbeats))
        return Subscription(self, state)

    def stop(self) -> None:
        """Ends the iteration of events, from any thread or signal handler. Calls that wait for a reply go on."""
        self.stopping = True
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            pass

    @property
    def is_leaving(self) -> bool:
        """Whether the host said GOODBYE."""
        return self._session.goodbye is not None

    def close(self, error: int = 0, reason: str = "") -> None:
        """Says goodbye and closes. What was not answered yet may still be done."""
        if self.is_closed:
            return
        try:
            if not self.is_leaving:  # after the host's there is none of ours
                self._session.notice("GOODBYE", {"error": error, "reason": reason})
            self._flush()
            while self._session.outgoing:
                self._pump(wait=True)
        except (ConnectionLost, LarderError, TimeoutError):
            pass
        self._drop()

    def _drop(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._socket.close()
            os.close(self._wake_read)
            write, self._wake_write = self._wake_write, -1
            os.close(write)


def connect(name: str, version: str = "0", *, path: Optional[PathLike] = None, library: Optional[PathLike] = None,
            deadline: int = 0, timeout: Optional[float] = None,
            recovering: Optional[Callable[[Dict[str, Any]], None]] = None) -> Client:
    """Connects to a host as the program `name`. The options are those of `Client`.

    Without `path` or `library` it takes what a host gave its plugin (`LARDER_FD`, or `LARDER_SOCKET` with
    `LARDER_TOKEN`), else the socket of the user's library.
    """
    sock = inherited_socket() if path is None and library is None else None
    if sock is None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            sock.connect(os.fspath(path) if path is not None else socket_path(library))
        except BaseException:
            sock.close()
            raise
    return Client(sock, name, version, token=hello_token(), deadline=deadline, timeout=timeout, recovering=recovering)
