"""Following a library into a store: snapshot, then changes, committed in groups."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from typing import Callable, Optional

from larder import Cursor, CursorExpired, Event, Plugin

from .lines import head_of, identity_of_key, line_of
from .store import Store

GROUP_SECONDS = 1.0
GROUP_BYTES = 4 << 20
#: A cursor that moved past what was not for us is kept this often; losing it costs nothing.
IDLE_SECONDS = 10.0


class Refused(Exception):
    """The path cannot be a mirror's."""


class Again(Exception):
    """The subscription has to begin anew."""


class Mirror:
    """The mirror at one path, through any number of connections.

    `published` is what readers see. Until a first snapshot is complete, and while one replaces a file whose cursor has
    expired, `building` takes the events.
    """

    def __init__(self, path: str, log: Callable[[str], None]) -> None:
        self.path = os.path.abspath(path)
        self.log = log
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._only_one()
        self.published = Store(self.path, log)
        self.building = Store(self.path + ".building", log)
        if not self.published.open():
            self._refuse_foreign()
        self.is_building = self.building.open()
        if not self.is_building:
            self.building.discard()
        self._mutex = threading.Condition()
        self._cursor: Optional[Cursor] = None
        self._since: Optional[float] = None
        self._moved: Optional[float] = None
        self._failure: Optional[BaseException] = None
        self._is_ending = False

    def _only_one(self) -> None:
        self._lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another mirror keeps {self.path}") from None

    def _refuse_foreign(self) -> None:
        """A file without a cursor is only replaced when it looks like a mirror's."""
        try:
            with open(self.path, "rb") as source:
                start = source.read(65536).lstrip(b" ")
        except FileNotFoundError:
            return
        if start and head_of(start) is None:
            raise Refused(f"{self.path} exists and is not a mirror: move it away, or set another path")

    @property
    def store(self) -> Store:
        """What takes the events."""
        return self.building if self.is_building else self.published

    def follow(self, plugin: Plugin) -> None:
        """Follows until SIGTERM or the host's goodbye; everything is committed on return, and after an exception."""
        flusher = threading.Thread(target=self._flush_in_time, args=(plugin,), daemon=True)
        self._is_ending = False
        flusher.start()
        try:
            while True:
                try:
                    self._follow_once(plugin)
                    return
                except Again:
                    pass
        finally:
            with self._mutex:
                self._is_ending = True
                self._mutex.notify()
            flusher.join()
            if self._failure is not None:
                raise self._failure
            self._commit()

    def _follow_once(self, plugin: Plugin) -> None:
        state = self.store.state
        after = Cursor.parse(state.cursor) if state is not None else None
        if after is None:
            self.log("taking a snapshot")
            self._start_over()
        elif after.s0 is not None:
            self.log(f"going on with the snapshot at {after}, {self.store.records:,} records are here")
        else:
            self.log(f"going on at {after} with {self.store.records:,} records")
        try:
            for event in plugin.follow(after, snapshot=after is None, heartbeats=True):
                with self._mutex:
                    self._take(event)
        except CursorExpired as error:
            self.log(f"{error}: a snapshot is needed")
            self._start_over()
            raise Again from None
        except Again:
            assert plugin.subscription is not None
            plugin.subscription.unsubscribe()
            raise
        if plugin.subscription is not None and self._cursor is not None:
            self._cursor = plugin.subscription.cursor  # past what was not for us, too

    def _start_over(self) -> None:
        """The next subscription takes a snapshot; what is published stays until it is complete."""
        self.building.create()
        self.is_building = True
        self._cursor = self._since = self._moved = None

    def _take(self, event: Event) -> None:
        store = self.store
        if event.type in ("created", "updated"):
            store.put(line_of(event))
        elif event.type == "deleted":
            store.remove(identity_of_key(event.kind, event.raw))
        elif event.type == "snapshot_end":
            self._cursor = event.cursor
            self._publish()
            return
        elif event.type == "lost":
            self.log(f"the library lost what was behind {event.after} up to {event.seq}")
            if not self.is_building:
                self._commit()
                self._start_over()
                raise Again
        self._cursor = event.cursor
        now = time.monotonic()
        if not store.has_changes:
            if self._moved is None:
                self._moved = now
                self._mutex.notify()
        elif self._since is None:
            self._since = now
            self._mutex.notify()
        elif store.pending_bytes >= GROUP_BYTES:
            self._commit()

    def _publish(self) -> None:
        self._commit()
        self.published.publish(self.building)
        self.is_building = False
        self.log(f"the snapshot is complete: {self.published.records:,} records at {self._cursor}")

    def _commit(self) -> None:
        """Makes what was taken durable, and then its cursor."""
        self._since = self._moved = None
        state = self.store.state
        if self._cursor is not None and (self.store.has_changes or state is None or state.cursor != str(self._cursor)):
            self.store.commit(str(self._cursor))

    def _flush_in_time(self, plugin: Plugin) -> None:
        """A thread of its own, since waiting for events has no end."""
        try:
            with self._mutex:
                while not self._is_ending:
                    now = time.monotonic()
                    due = [since + wait for since, wait in ((self._since, GROUP_SECONDS), (self._moved, IDLE_SECONDS))
                           if since is not None]
                    if due and min(due) <= now:
                        self._commit()
                    else:
                        self._mutex.wait(min(due) - now if due else None)
        except BaseException as error:
            self._failure = error
            plugin.client.stop()
