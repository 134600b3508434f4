"""The synchronous client, on a plain socket.

A client belongs to one thread at a time: open one for each thread. Only `stop` may be called from anywhere, also from a
signal handler. While a call waits, what arrives for subscriptions is queued, at most their credit.
"""

from __future__ import annotations

import os
import select
import socket
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .batches import BATCH_BYTES, WINDOW_BYTES, RecordLike
from .calls import Call, Calls, Pipeline, Wait, ask, perform
from .discovery import PathLike, hello_token, inherited_socket, socket_path
from .errors import ConnectionLost, LarderError
from .events import CREDIT, Event, SubscriptionState
from .importing import ImportSession
from .keys import KeyValues
from .kinds import Kind
from .results import Accounting, Cursor, Saved, Stored
from .session import Session

RECEIVE_BYTES = 256 << 10


class Client:
    """A connection to a host. A context manager: `with larder.connect("my-program") as library:`.

    Calls raise a subclass of `LarderError` for what the host refuses, `ConnectionLost` when the connection ends, and
    `TimeoutError` when `timeout` seconds pass without anything coming; after that the client is closed.
    """

    def __init__(self, sock: socket.socket, name: str, version: str = "0", *, token: bytes = b"", deadline: int = 0,
                 timeout: Optional[float] = None) -> None:
        self.timeout = timeout
        self.stopping = False
        self.is_closed = False
        self._socket = sock
        sock.setblocking(False)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._session = Session()
        self._calls = Calls(self._session)
        self._replies: Dict[int, Union[Dict[str, Any], LarderError]] = {}
        try:
            self.welcome: Dict[str, Any] = self._wait(self._session.hello(name, version, token, deadline))
        except BaseException:
            self._drop()
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # What moves bytes.

    def _pump(self, wait: bool, stoppable: bool = False) -> None:
        """Sends and receives once. With `wait` it blocks until something moves; `stoppable`, or `stop` was called."""
        if self.is_closed:
            raise ConnectionLost("the connection is closed")
        out = self._session.outgoing
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if out else 0))
        if stoppable:
            if self.stopping:
                return
            poll.register(self._wake_read, select.POLLIN)
        timeout = None if self.timeout is None else int(self.timeout * 1000)
        ready = poll.poll(timeout if wait else 0)
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

    def _wait(self, request_id: int) -> Dict[str, Any]:
        self._flush()
        while request_id not in self._replies:
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

    def save(self, kind: str, record: RecordLike, *, mode: str = "merge") -> Saved:
        """Saves one record. `mode`: insert, replace, merge or fill. Durable on return.

        Raises `AlreadySaved` (insert), `BadRecord` and its like for a record that is refused, `EncodeError` for one that
        cannot be sent.
        """
        result: Saved = self._run(self._calls.write_one(kind, record, mode, 0))
        return result

    def save_many(self, kind: str, records: Iterable[RecordLike], *, mode: str = "merge", batch_bytes: int = BATCH_BYTES,
                  window_bytes: int = WINDOW_BYTES) -> Accounting:
        """Saves records in batches, sending on while answers are awaited. All are durable on return.

        A refused record stops nothing: see the accounting's `refusals`. The first batch that fails as a whole raises.
        """
        found = self._run(self._calls.kind_named(kind))
        pipeline = Pipeline(self._session, found, mode, batch_bytes, window_bytes)
        self._run(pipeline.add_all(records))
        return pipeline.accounting

    def import_session(self, source: str, token: Optional[str] = None) -> ImportSession:
        """An import, as a context manager. With a `token` it can be continued after a lost connection."""
        return ImportSession(self, source, token)

    def delete(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Saved:
        """Deletes a record: `delete("title:tmdb/movie/603")` or kind and key values. Raises `NotFound`."""
        result: Saved = self._run(self._calls.delete(kind, key, 0))
        return result

    def clear(self, kind: Optional[str] = None, progress: Optional[Callable[[int, int], None]] = None) -> int:
        """Deletes everything, or everything of a kind; gives how many. `progress` is told done and total."""
        result: int = self._run(self._calls.clear(kind, progress))
        return result

    # Reading.

    def get(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Stored:
        """One record: `get("title:tmdb/movie/603")` or kind and key values. Raises `NotFound`."""
        result: Stored = self._run(self._calls.get(kind, key))
        return result

    def list(self, kind: Optional[str] = None, *, newest_first: bool = False, page: int = 1000) -> Iterator[Stored]:
        """All records in the order in which they were first saved, or backwards; page by page."""
        token = b""
        while True:
            records, token = self.page(kind, newest_first=newest_first, limit=page, token=token)
            yield from records
            if not token:
                return

    def page(self, kind: Optional[str] = None, *, newest_first: bool = False, limit: int = 1000, bytes_limit: int = 0,
             token: bytes = b"") -> Tuple[List[Stored], bytes]:
        """One page and the token of the next, empty at the end."""
        result: Tuple[List[Stored], bytes] = self._run(self._calls.page(kind, newest_first, limit, bytes_limit, token))
        return result

    def count(self, kind: Optional[str] = None) -> Dict[str, int]:
        """How many records there are, by kind."""
        result: Dict[str, int] = self._run(self._calls.count(kind))
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


class Subscription:
    """Events of a subscription: iterate over it. It ends when the host says goodbye, at `unsubscribe`, or at `stop`."""

    def __init__(self, client: Client, state: SubscriptionState) -> None:
        self._client = client
        self._state = state
        self._current: Optional[Iterator[Event]] = None

    def __iter__(self) -> Iterator[Event]:
        client, state = self._client, self._state
        while True:
            if self._current is None:
                if client.stopping:
                    return
                if not state.has_frames and not self._more():
                    return
                self._current = state.drain()
            for event in self._current:
                yield event
                if client.stopping:
                    return
            self._current = None
            if not client.is_closed:
                client._session.return_credit(state)
                client._flush()

    def _more(self) -> bool:
        client, state = self._client, self._state
        while not state.has_frames:
            if state.failure is not None:
                raise state.failure
            if state.ended or client.stopping or client.is_leaving:
                return False
            try:
                client._pump(wait=True, stoppable=True)
            except ConnectionLost:
                if not client.is_leaving:
                    raise
        return True

    @property
    def cursor(self) -> Cursor:
        """Everything up to here was given out; `str()` it to keep it."""
        return self._state.cursor

    @property
    def id(self) -> int:
        return self._state.id

    @property
    def floor(self) -> int:
        return self._state.floor

    def sync(self) -> int:
        """Waits until all that was committed before this call has arrived; gives that seq. It is then queued: iterate
        up to it. With less credit than there is to send it would wait for ever: only call it near the end of the log."""
        reply: Dict[str, Any] = self._client._run(ask("SYNC", {"subscription": self.id}))
        return int(reply["through"])

    def unsubscribe(self) -> int:
        """Ends it; what has arrived can still be iterated. Gives the seq up to which everything was sent."""
        reply: Dict[str, Any] = self._client._run(ask("UNSUBSCRIBE", {"subscription": self.id}))
        self._client._session.subscriptions.pop(self.id, None)
        self._state.ended = True
        return int(reply["through"])


def connect(name: str, version: str = "0", *, path: Optional[PathLike] = None, library: Optional[PathLike] = None,
            deadline: int = 0, timeout: Optional[float] = None) -> Client:
    """Connects to a host as the program `name`.

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
    return Client(sock, name, version, token=hello_token(), deadline=deadline, timeout=timeout)
