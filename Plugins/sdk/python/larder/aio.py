"""The asyncio client: the same calls as `Client`, awaited.

One event loop owns a client; its calls may run side by side in several tasks. A subscription belongs to one task.
"""

from __future__ import annotations

import asyncio
import os
import time
from types import TracebackType
from typing import (Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence,
                    Tuple, Type, Union)

from .batches import BATCH_BYTES, WINDOW_BYTES, RecordLike
from .calls import Call, Calls, Pipeline, Wait, ask, perform
from .discovery import PathLike, hello_token, inherited_socket, socket_path
from .errors import ConnectionLost, LarderError
from .events import CREDIT, Event, SubscriptionState
from .keys import KeyValues
from .kinds import Kind
from .results import Accounting, Cursor, Saved, Stored
from .session import Session


class AsyncClient(asyncio.Protocol):
    """A connection to a host: `async with await larder.aio.connect("my-program") as library:`."""

    def __init__(self) -> None:
        self.welcome: Dict[str, Any] = {}
        self.is_closed = False
        self._session = Session()
        self._calls = Calls(self._session)
        self._transport: Optional[asyncio.Transport] = None
        self._replies: Dict[int, "asyncio.Future[Dict[str, Any]]"] = {}
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._failure: Optional[Exception] = None
        self._gone: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for reply in self._session.receive(data):
                future = self._replies.get(reply.id)
                if future is None or future.done():
                    continue
                if isinstance(reply.result, LarderError):
                    future.set_exception(reply.result)
                else:
                    future.set_result(reply.result)
        except (ConnectionLost, LarderError) as error:
            self._end(error)
        self._flush()
        self._wake()

    def connection_lost(self, error: Optional[Exception]) -> None:
        said = self._session.goodbye
        reason = f"the host said goodbye: {said['reason']}" if said else str(error or "the connection was closed")
        self._end(ConnectionLost(reason))
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self, error: Exception) -> None:
        self.is_closed = True
        self._failure = self._failure or error
        for future in self._replies.values():
            if not future.done():
                future.set_exception(self._failure)
        self._writable.set()
        self._wake()
        if self._transport is not None:
            self._transport.close()

    def _wake(self) -> None:
        event, self._arrived = self._arrived, asyncio.Event()
        event.set()

    def _flush(self) -> None:
        if self._session.outgoing and self._transport is not None and not self.is_closed:
            self._transport.write(bytes(self._session.outgoing))
            self._session.outgoing.clear()

    def _perform(self, command: Any) -> int:
        if self._failure is not None:
            raise self._failure
        request_id = perform(self._session, command)
        self._expect(request_id)
        return request_id

    def _expect(self, request_id: int) -> None:
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # never "was not retrieved"
        self._replies[request_id] = future

    async def _wait(self, request_id: int) -> Dict[str, Any]:
        self._flush()
        try:
            return await self._replies[request_id]
        finally:
            self._replies.pop(request_id, None)

    async def _run(self, call: Call) -> Any:
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
                    value = await self._wait(command.id)
                else:
                    await self._writable.wait()
                    value = self._perform(command)
                    self._flush()
            except (LarderError, ConnectionLost) as error:
                failure = error

    async def _greet(self, name: str, version: str, token: bytes, deadline: int) -> None:
        request_id = self._session.hello(name, version, token, deadline)
        self._expect(request_id)
        self.welcome = await self._wait(request_id)

    # Writing.

    async def save(self, kind: str, record: RecordLike, *, mode: str = "merge") -> Saved:
        """As `Client.save`."""
        result: Saved = await self._run(self._calls.write_one(kind, record, mode, 0))
        return result

    async def save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], *,
                        mode: str = "merge", batch_bytes: int = BATCH_BYTES,
                        window_bytes: int = WINDOW_BYTES) -> Accounting:
        """As `Client.save_many`; the records may also come from an asynchronous iterable."""
        return await self._save_many(kind, records, mode, batch_bytes, window_bytes, None)

    async def _save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], mode: str,
                         batch_bytes: int, window_bytes: int, session: Optional["AsyncImport"]) -> Accounting:
        found = await self._run(self._calls.kind_named(kind))
        numbers = (session.origin, session.next_batch, session.last_batch) if session else (0, 0, 0)
        pipeline = Pipeline(self._session, found, mode, batch_bytes, window_bytes, *numbers)
        try:
            if isinstance(records, AsyncIterable):
                async for item in records:
                    await self._run(pipeline.add(item))
                await self._run(pipeline.finish())
            else:
                await self._run(pipeline.add_all(records))
        finally:
            if session:
                session.next_batch = pipeline.next_batch
                session.accounting.merge(pipeline.accounting)
        return pipeline.accounting

    def import_session(self, source: str, token: Optional[str] = None) -> "AsyncImport":
        """As `Client.import_session`, for `async with`."""
        return AsyncImport(self, source, token)

    async def delete(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Saved:
        """As `Client.delete`."""
        result: Saved = await self._run(self._calls.delete(kind, key, 0))
        return result

    async def clear(self, kind: Optional[str] = None, progress: Optional[Callable[[int, int], None]] = None) -> int:
        """As `Client.clear`."""
        result: int = await self._run(self._calls.clear(kind, progress))
        return result

    # Reading.

    async def get(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Stored:
        """As `Client.get`."""
        result: Stored = await self._run(self._calls.get(kind, key))
        return result

    async def list(self, kind: Optional[str] = None, *, newest_first: bool = False,
                   page: int = 1000) -> AsyncIterator[Stored]:
        """As `Client.list`."""
        token = b""
        while True:
            records, token = await self.page(kind, newest_first=newest_first, limit=page, token=token)
            for record in records:
                yield record
            if not token:
                return

    async def page(self, kind: Optional[str] = None, *, newest_first: bool = False, limit: int = 1000,
                   bytes_limit: int = 0, token: bytes = b"") -> Tuple[List[Stored], bytes]:
        """As `Client.page`."""
        result: Tuple[List[Stored], bytes] = await self._run(
            self._calls.page(kind, newest_first, limit, bytes_limit, token))
        return result

    async def count(self, kind: Optional[str] = None) -> Dict[str, int]:
        """As `Client.count`."""
        result: Dict[str, int] = await self._run(self._calls.count(kind))
        return result

    async def kinds(self) -> Dict[str, Kind]:
        """As `Client.kinds`."""
        result: Dict[str, Kind] = await self._run(self._calls.kinds())
        return result

    async def origins(self) -> List[Dict[str, Any]]:
        """As `Client.origins`."""
        result: List[Dict[str, Any]] = await self._run(self._calls.origins())
        return result

    async def status(self) -> Dict[str, Any]:
        """As `Client.status`."""
        return await self.call("STATUS")

    async def ping(self, data: bytes = b"") -> float:
        """As `Client.ping`."""
        begun = time.monotonic()
        await self.call("PING", {"bytes": data})
        return time.monotonic() - begun

    async def call(self, message: str, fields: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """As `Client.call`."""
        result: Dict[str, Any] = await self._run(ask(message, fields))
        return result

    async def register(self, roles: Sequence[str], *, events: Sequence[str] = (), kinds: Sequence[str] = (),
                       commands: Sequence[str] = (), ready: bool = True) -> Dict[str, Any]:
        """As `Client.register`."""
        result: Dict[str, Any] = await self._run(self._calls.register(roles, events, kinds, commands))
        if ready:
            self._session.notice("READY")
            self._flush()
        return result

    # Following.

    async def subscribe(self, after: Union[None, str, Cursor] = None, *, snapshot: bool = False,
                        types: Sequence[str] = ("downloaded", "deleted"), kinds: Sequence[str] = (),
                        except_origin: int = 0, credit: int = CREDIT, verify: Optional[bool] = None,
                        heartbeats: bool = False) -> "AsyncSubscription":
        """As `Client.subscribe`; iterate with `async for`."""
        state: SubscriptionState = await self._run(self._calls.subscribe(
            after, snapshot, types, kinds, except_origin, credit, verify, heartbeats))
        return AsyncSubscription(self, state)

    @property
    def is_leaving(self) -> bool:
        """Whether the host said GOODBYE."""
        return self._session.goodbye is not None

    async def close(self, error: int = 0, reason: str = "") -> None:
        """Says goodbye and closes."""
        if not self.is_closed:
            if not self.is_leaving:  # after the host's there is none of ours
                self._session.notice("GOODBYE", {"error": error, "reason": reason})
            self._flush()
            self._end(ConnectionLost("the client was closed"))
        await asyncio.shield(self._gone)


class AsyncSubscription:
    """Events of a subscription: `async for event in subscription`."""

    def __init__(self, client: AsyncClient, state: SubscriptionState) -> None:
        self._client = client
        self._state = state
        self._current: Optional[Iterator[Event]] = None

    async def __aiter__(self) -> AsyncIterator[Event]:
        client, state = self._client, self._state
        while True:
            if self._current is None:
                while not state.has_frames:
                    if state.failure is not None:
                        raise state.failure
                    if state.ended or client.is_leaving:
                        return
                    if client._failure is not None:
                        raise client._failure
                    await client._arrived.wait()
                self._current = state.drain()
            for event in self._current:
                yield event
            self._current = None
            client._session.return_credit(state)
            client._flush()

    @property
    def cursor(self) -> Cursor:
        """Everything up to here was given out."""
        return self._state.cursor

    @property
    def id(self) -> int:
        return self._state.id

    async def sync(self) -> int:
        """As `Subscription.sync`."""
        return int((await self._client.call("SYNC", {"subscription": self.id}))["through"])

    async def unsubscribe(self) -> int:
        """As `Subscription.unsubscribe`."""
        reply = await self._client.call("UNSUBSCRIBE", {"subscription": self.id})
        self._client._session.subscriptions.pop(self.id, None)
        self._state.ended = True
        self._client._wake()
        return int(reply["through"])


class AsyncImport:
    """As `ImportSession`, for `async with`."""

    def __init__(self, client: AsyncClient, source: str, token: Optional[str]) -> None:
        self._client = client
        self._source = source
        self._token = token
        self.next_batch = 1
        self.accounting = Accounting()
        self.origin = 0
        self.last_batch = 0
        self.is_resumed = False

    async def __aenter__(self) -> "AsyncImport":
        begun = await self._client._run(self._client._calls.begin_import(self._source, self._token))
        self.origin, self.last_batch = begun["origin"], begun["last_batch"]
        self.is_resumed = bool(begun["resumed"])
        return self

    async def save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], *,
                        mode: str = "merge", batch_bytes: int = BATCH_BYTES,
                        window_bytes: int = WINDOW_BYTES) -> Accounting:
        """As `ImportSession.save_many`."""
        return await self._client._save_many(kind, records, mode, batch_bytes, window_bytes, self)

    def skip(self, count: int = 1) -> None:
        """Counts records that the importer left out."""
        self.accounting.skipped += count

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        outcome = "complete" if kind is None else "failed" if issubclass(kind, Exception) else "cancelled"
        try:
            await self._client._run(self._client._calls.end_import(self.origin, outcome, self.accounting))
        except (LarderError, ConnectionLost):
            if kind is None:
                raise


async def connect(name: str, version: str = "0", *, path: Optional[PathLike] = None,
                  library: Optional[PathLike] = None, deadline: int = 0) -> AsyncClient:
    """As `larder.connect`."""
    loop = asyncio.get_running_loop()
    sock = inherited_socket() if path is None and library is None else None
    if sock is not None:
        sock.setblocking(False)
        _, client = await loop.create_unix_connection(AsyncClient, sock=sock)
    else:
        where = os.fspath(path) if path is not None else socket_path(library)
        _, client = await loop.create_unix_connection(AsyncClient, where)
    try:
        await client._greet(name, version, hello_token(), deadline)
    except BaseException:
        await client.close()
        raise
    return client
