"""The thread that shows texts, so that events never wait for a program that hangs."""

from __future__ import annotations

import threading
import time
from typing import Callable, Protocol

from .summary import Tally, Window


class Channel(Protocol):
    def show(self, text: str) -> None:
        """Shows one text; may take its time."""


class Worker:
    """Takes events at once, shows them when their window closes. What comes while the channel is busy is added up, so
    that whatever happens there is one tally to show next, and it is the latest."""

    def __init__(self, channel: Channel, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._channel = channel
        self._log = log
        self._clock = clock
        self._window = Window()
        self._changed = threading.Condition()
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def add(self, what: str, label: str) -> None:
        """One event. Never waits for the channel."""
        with self._changed:
            was_empty = self._window.due is None
            self._window.add(what, label, self._clock())
            if was_empty:
                self._changed.notify()

    def end(self, seconds: float = 2.0) -> None:
        """Shows what is left, if that is done in time."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(seconds)

    def _next(self) -> Tally:
        """The next tally; an empty one at the end."""
        with self._changed:
            while True:
                now = self._clock()
                if self._is_ending:
                    return self._window.rest()
                tally = self._window.take(now)
                if tally:
                    return tally
                due = self._window.due
                self._changed.wait(None if due is None else max(due - now, 0.0))

    def _work(self) -> None:
        while True:
            tally = self._next()
            if not tally:
                return
            try:
                for text in tally.texts():
                    self._channel.show(text)
            except Exception as error:  # whatever a channel does, the next one is shown
                self._log(f"not shown: {error}")
