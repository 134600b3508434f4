"""The asyncio client: the same calls as `Client`, awaited.

One event loop owns a client; its calls may run side by side in several tasks. A subscription belongs to one task.
"""

from __future__ import annotations

import asyncio
import os
import time
from itertools import islice
from types import TracebackType
from typing import (Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple,
                    Type, Union, overload)

from .aio_importing import AsyncImport
from .aio_subscription import AsyncSubscription
from .batches import BATCH_BYTES, WINDOW_BYTES, Many, RecordLike
from .calls import Call, Pipeline, Wait, ask, perform
from .discovery import PathLike, hello_token, inherited_socket, socket_path
from .errors import ConnectionLost, LarderError
from .events import CREDIT, Event, SubscriptionState
from .keys import KeyValues
from .kinds import Kind
from .lookups import ENTRIES_MAX, Lookups
from .operations import Delete, Operation, Save
from .results import Accounting, Compacted, Cursor, Defined, Found, Match, Saved, Stored, Written
from .session import STATUS_SECONDS, Session


class AsyncClient(asyncio.Protocol):
    """A connection to a host: `async with await larder.aio.connect("my-program") as library:`."""

    def __init__(self) -> None:
        self.welcome: Dict[str, Any] = {}
        self.is_closed = False
        self._session = Session()
        self._calls = Lookups(self._session)
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

    async def _greet(self, name: str, version: str, token: bytes, deadline: int,
                     recovering: Optional[Callable[[Dict[str, Any]], None]] = None) -> None:
        hello_id = self._session.hello(name, version, token, deadline)
        self._expect(hello_id)
        self._flush()
        hello = self._replies[hello_id]
        status: "Optional[asyncio.Future[Dict[str, Any]]]" = None
        while not hello.done():
            if status is None:
                await asyncio.wait([hello], timeout=STATUS_SECONDS)
                if not hello.done():
                    status = self._ask_status()
                continue
            await asyncio.wait([hello, status], return_when=asyncio.FIRST_COMPLETED)
            if status.done():
                fields, status = status.result(), None
                if recovering is not None and fields["state"] == "recovering":
                    recovering(fields)
        self.welcome = await self._wait(hello_id)

    def _ask_status(self) -> "asyncio.Future[Dict[str, Any]]":
        """Its answer; also one that nobody waits for any more is taken."""
        request_id = self._session.request("STATUS")
        self._expect(request_id)
        self._flush()
        status = self._replies[request_id]
        status.add_done_callback(lambda _: self._replies.pop(request_id, None))
        return status

    # Writing.

    async def save(self, kind: str, record: RecordLike, *, mode: str = "merge", personal: bool = False,
                   if_seq: Optional[int] = None, unless_exists: Optional[str] = None, unset: Sequence[str] = (),
                   dry_run: bool = False) -> Saved:
        """As `Client.save`."""
        operation = Save(kind, record, mode, personal, if_seq, unless_exists, unset)
        result: Saved = await self._run(self._calls.write_one(operation, dry_run))
        return result

    async def save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], *,
                        mode: str = "merge", personal: bool = False, unless_exists: Optional[str] = None,
                        dry_run: bool = False, batch_bytes: int = BATCH_BYTES,
                        window_bytes: int = WINDOW_BYTES) -> Accounting:
        """As `Client.save_many`; the records may also come from an asynchronous iterable."""
        many = Many(mode, personal, unless_exists, dry_run, batch_bytes, window_bytes)
        return await self._save_many(kind, records, many, None)

    async def write(self, operations: Iterable[Operation], *, atomic: bool = False, dry_run: bool = False,
                    origin: int = 0) -> Written:
        """As `Client.write`."""
        result: Written = await self._run(self._calls.write(list(operations), atomic, dry_run, origin))
        return result

    async def _save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], many: Many,
                         session: Optional[AsyncImport]) -> Accounting:
        found = await self._run(self._calls.kind_named(kind))
        numbers = (session.origin, session.next_batch, session.last_batch) if session else (0, 0, 0)
        pipeline = Pipeline(self._session, found, many, *numbers)
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
                if not many.dry_run:
                    session.accounting.merge(pipeline.accounting)
        return pipeline.accounting

    def import_session(self, source: str, token: Optional[str] = None) -> AsyncImport:
        """As `Client.import_session`, for `async with`."""
        return AsyncImport(self, source, token)

    async def delete(self, kind: str, key: Union[None, bytes, KeyValues] = None, *, if_seq: Optional[int] = None,
                     dry_run: bool = False) -> Saved:
        """As `Client.delete`."""
        result: Saved = await self._run(self._calls.write_one(Delete(kind, key, if_seq), dry_run))
        return result

    async def clear(self, kind: Optional[str] = None, progress: Optional[Callable[[int, int], None]] = None) -> int:
        """As `Client.clear`."""
        result: int = await self._run(self._calls.clear(kind, progress))
        return result

    async def compact(self, *, keep_history: Union[None, int, str] = None, dead_share: int = 0, include_last: bool = True,
                      compress: Optional[bool] = None, purge: Sequence[str] = (), wait: float = 30.0,
                      bytes_per_second: Optional[int] = None,
                      progress: Optional[Callable[[int, int], None]] = None) -> Compacted:
        """As `Client.compact`."""
        result: Compacted = await self._run(self._calls.compact(keep_history, dead_share, include_last, compress, purge, wait,
                                                                bytes_per_second, progress))
        return result

    # Reading.

    async def get(self, kind: str, key: Union[None, bytes, KeyValues] = None) -> Stored:
        """As `Client.get`."""
        result: Stored = await self._run(self._calls.get(kind, key))
        return result

    async def list(self, kind: Optional[str] = None, *, condition: str = "", order: Optional[str] = None,
                   reverse: bool = False, newest_first: bool = False, page: int = 1000) -> AsyncIterator[Stored]:
        """As `Client.list`."""
        token = b""
        while True:
            records, token = await self.page(kind, condition=condition, order=order, reverse=reverse or newest_first,
                                             limit=page, token=token)
            for record in records:
                yield record
            if not token:
                return

    async def page(self, kind: Optional[str] = None, *, condition: str = "", order: Optional[str] = None,
                   reverse: bool = False, newest_first: bool = False, limit: int = 1000, bytes_limit: int = 0,
                   token: bytes = b"") -> Tuple[List[Stored], bytes]:
        """As `Client.page`."""
        result: Tuple[List[Stored], bytes] = await self._run(self._calls.page(
            kind, reverse or newest_first, limit, bytes_limit, token, condition, order))
        return result

    @overload
    async def count(self, kind: Optional[str] = None, *, condition: str = "") -> Dict[str, int]: ...

    @overload
    async def count(self, kind: Optional[str] = None, *, condition: str = "", group: str) -> Dict[Any, int]: ...

    async def count(self, kind: Optional[str] = None, *, condition: str = "",
                    group: Optional[str] = None) -> Dict[Any, int]:
        """As `Client.count`."""
        result: Dict[Any, int] = await self._run(self._calls.count(kind, condition, group))
        return result

    async def find(self, kind: str, field: str, value: Any, *, limit: int = 1000) -> Found:
        """As `Client.find`."""
        result: Found = await self._run(self._calls.find(kind, field, value, limit))
        return result

    async def search(self, query: str, kind: Optional[str] = None, *, page: int = 100) -> AsyncIterator[Match]:
        """As `Client.search`."""
        token = b""
        while True:
            matches, token = await self._run(self._calls.matches(query, kind, page, token))
            for match in matches:
                yield match
            if not token:
                return

    async def history(self, kind: str, key: Union[None, bytes, KeyValues] = None, *, limit: int = 1000) -> List[Event]:
        """As `Client.history`."""
        result: List[Event] = await self._run(self._calls.history(kind, key, limit))
        return result

    async def entries(self, seqs: Iterable[int]) -> AsyncIterator[Event]:
        """As `Client.entries`."""
        source = iter(seqs)
        asked = list(islice(source, ENTRIES_MAX))
        while asked:
            events, asked = await self._run(self._calls.entries(asked))
            for event in events:
                yield event
            asked += islice(source, ENTRIES_MAX - len(asked))

    async def define(self, kind: Union[Kind, Mapping[str, Any]]) -> Defined:
        """As `Client.define`."""
        result: Defined = await self._run(self._calls.define(kind))
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
                        heartbeats: bool = False) -> AsyncSubscription:
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


async def connect(name: str, version: str = "0", *, path: Optional[PathLike] = None,
                  library: Optional[PathLike] = None, deadline: int = 0,
                  recovering: Optional[Callable[[Dict[str, Any]], None]] = None) -> AsyncClient:
    """As `larder.connect`, without a timeout; `asyncio.wait_for` gives one."""
    loop = asyncio.get_running_loop()
    sock = inherited_socket() if path is None and library is None else None
    if sock is not None:
        sock.setblocking(False)
        _, client = await loop.create_unix_connection(AsyncClient, sock=sock)
    else:
        where = os.fspath(path) if path is not None else socket_path(library)
        _, client = await loop.create_unix_connection(AsyncClient, where)
    try:
        await client._greet(name, version, hello_token(), deadline, recovering)
    except BaseException:
        await client.close()
        raise
    return client
