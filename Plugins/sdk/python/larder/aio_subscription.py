"""A subscription of the asyncio client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, AsyncIterator, Iterator, Optional

from .calls import Send
from .errors import QueueFull
from .events import Event, SubscriptionState
from .results import Cursor
from .subscription import QUEUE_BYTES

if TYPE_CHECKING:
    from .aio import AsyncClient


class AsyncSubscription:
    """Events of a subscription: `async for event in subscription`, or `await subscription.poll(seconds)`."""

    def __init__(self, client: "AsyncClient", state: SubscriptionState) -> None:
        self._client = client
        self._state = state
        self._current: Optional[Iterator[Event]] = None

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            if self._current is None:
                if not await self._more():
                    return
                self._current = self._state.drain()
            current = self._current
            for event in current:
                yield event
            if self._current is current:  # else `poll` has gone on to the next frame
                self._dealt_with()

    async def poll(self, timeout: Optional[float] = 0) -> Optional[Event]:
        """As `Subscription.poll`."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + max(timeout, 0)
        if deadline is not None and not self._state.has_frames:
            await asyncio.sleep(0)  # what has come is read by the loop
        while True:
            if self._current is None:
                if not self._state.has_frames:
                    left = None if deadline is None else max(deadline - loop.time(), 0)
                    try:
                        if not await asyncio.wait_for(self._more(), left):
                            return None
                    except asyncio.TimeoutError:
                        if not self._state.has_frames:
                            return None
                self._current = self._state.drain()
            event = next(self._current, None)
            if event is not None:
                return event
            self._dealt_with()

    def _dealt_with(self) -> None:
        """All events of a frame were taken."""
        self._current = None
        self._client._session.return_credit(self._state)
        self._client._flush()

    async def _more(self) -> bool:
        """Waits for a frame. False: none will come."""
        client, state = self._client, self._state
        while not state.has_frames:
            if state.failure is not None:
                raise state.failure
            if state.ended or client.is_leaving:
                return False
            if client._failure is not None:
                raise client._failure
            await client._arrived.wait()
        return True

    @property
    def is_ended(self) -> bool:
        """As `Subscription.is_ended`."""
        over = self._state.ended or self._client.is_leaving
        return over and self._current is None and not self._state.has_frames

    @property
    def cursor(self) -> Cursor:
        """Everything up to here was given out."""
        return self._state.cursor

    @property
    def id(self) -> int:
        return self._state.id

    async def sync(self, queue_bytes: int = QUEUE_BYTES) -> int:
        """As `Subscription.sync`."""
        client, state = self._client, self._state
        request_id = client._perform(Send("SYNC", {"subscription": self.id}))
        client._flush()
        try:
            while not client._replies[request_id].done():
                if state.queued_bytes > queue_bytes:
                    raise QueueFull(f"{state.queued_bytes} bytes of events wait to be taken, {queue_bytes} may")
                client._session.credit_ahead(state)
                client._flush()
                await client._arrived.wait()
            return int((await client._wait(request_id))["through"])
        finally:
            client._replies.pop(request_id, None)

    async def unsubscribe(self) -> int:
        """As `Subscription.unsubscribe`."""
        reply = await self._client.call("UNSUBSCRIBE", {"subscription": self.id})
        self._client._session.subscriptions.pop(self.id, None)
        self._state.ended = True
        self._client._wake()
        return int(reply["through"])
