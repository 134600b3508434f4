"""A subscription of the synchronous client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Iterator, Optional

from .calls import ask
from .errors import ConnectionLost, QueueFull
from .events import Event, SubscriptionState
from .results import Cursor

if TYPE_CHECKING:
    from .client import Client

#: Bytes of events that `sync` lets wait for whoever takes them.
QUEUE_BYTES = 64 << 20


class Subscription:
    """Events of a subscription: iterate over it, or `poll`. It ends when the host says goodbye, at `unsubscribe`, or at
    `stop`."""

    def __init__(self, client: "Client", state: SubscriptionState) -> None:
        self._client = client
        self._state = state
        self._current: Optional[Iterator[Event]] = None

    def __iter__(self) -> Iterator[Event]:
        client, state = self._client, self._state
        while True:
            if self._current is None:
                if client.stopping:
                    return
                if not state.has_frames and not self._more(None):
                    return
                self._current = state.drain()
            current = self._current
            for event in current:
                yield event
                if client.stopping:
                    return
            if self._current is current:  # else `poll` has gone on to the next frame
                self._dealt_with()

    def poll(self, timeout: Optional[float] = 0) -> Optional[Event]:
        """The next event, or None where `timeout` seconds bring none, or `is_ended`.

        0 takes only what has come, None waits as iterating does. The cursor moves and credit is given back also where
        what came was for nobody (a heartbeat), so call it again and again rather than rarely. Raises as iterating does.
        """
        deadline = None if timeout is None else time.monotonic() + max(timeout, 0)
        while not self._client.stopping:
            if self._current is None:
                if not self._state.has_frames and not self._more(deadline):
                    return None
                self._current = self._state.drain()
            event = next(self._current, None)
            if event is not None:
                return event
            self._dealt_with()
        return None

    def _dealt_with(self) -> None:
        """All events of a frame were taken."""
        self._current = None
        if not self._client.is_closed:
            self._client._session.return_credit(self._state)
            try:
                self._client._flush()
            except ConnectionLost:
                if not self._client.is_leaving:  # else the host has said all that it had to say
                    raise

    def _more(self, deadline: Optional[float]) -> bool:
        """Waits for a frame. False: at the deadline there is none, or none will come."""
        client, state = self._client, self._state
        while not state.has_frames:
            if state.failure is not None:
                raise state.failure
            if state.ended or client.stopping or client.is_leaving:
                return False
            try:
                if not client._pump(wait=True, stoppable=True, deadline=deadline):
                    return state.has_frames
            except ConnectionLost:
                if not client.is_leaving:
                    raise
        return True

    @property
    def is_ended(self) -> bool:
        """Whether all was taken and nothing will come: after `unsubscribe`, `stop` or the host's goodbye."""
        over = self._state.ended or self._client.stopping or self._client.is_leaving
        return over and self._current is None and not self._state.has_frames

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

    def sync(self, queue_bytes: int = QUEUE_BYTES) -> int:
        """Waits until all that was committed before this call has arrived; gives that seq. It is then queued: iterate or
        `poll` up to it.

        Credit is given for what is queued meanwhile, so it ends also far from the end of the log. Raises `QueueFull` when
        more than `queue_bytes` wait to be taken; the subscription goes on, and may be asked again.
        """
        client, state = self._client, self._state
        request_id = client._begin(ask("SYNC", {"subscription": self.id}))

        def queue() -> None:
            if state.queued_bytes > queue_bytes:
                client._abandon(request_id)
                raise QueueFull(f"{state.queued_bytes} bytes of events wait to be taken, {queue_bytes} may")
            client._session.credit_ahead(state)
            client._flush()

        return int(client._wait(request_id, queue)["through"])

    def unsubscribe(self) -> int:
        """Ends it; what has arrived can still be taken. Gives the seq up to which everything was sent."""
        through = int(self._client.call("UNSUBSCRIBE", {"subscription": self.id})["through"])
        self._client._session.subscriptions.pop(self.id, None)
        self._state.ended = True
        return through
