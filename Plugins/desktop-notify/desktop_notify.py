#!/usr/bin/env python3
"""desktop-notify: "‘X’ saved", "‘X’ deleted", "12 saved, 2 deleted". See README.md."""

from __future__ import annotations

import os
import sys
import time
from typing import Optional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import larder  # noqa: F401
except ImportError:
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "sdk", "python"))

from larder import ConnectionLost, Cursor, CursorExpired, LarderError, Plugin  # noqa: E402

from notify.channel import Lines, Program, command_of, describe  # noqa: E402
from notify.labels import LABELS_MAX, Labels  # noqa: E402
from notify.summary import DELETED, SAVED  # noqa: E402
from notify.worker import Worker  # noqa: E402

VERSION = "1.0"
BACK_OFF_SECONDS = 60.0


def log(text: str) -> None:
    """A line on stderr, which the host keeps."""
    print(f"desktop-notify: {text}", file=sys.stderr, flush=True)


class Notifier:
    """Follows a library from now on, over any number of connections."""

    def __init__(self) -> None:
        self.labels = Labels()
        self.worker: Optional[Worker] = None
        self._cursor: Optional[Cursor] = None

    def follow(self, plugin: Plugin) -> None:
        """Until SIGTERM or the host's goodbye. Raises ValueError for a setting that cannot be used."""
        if self.worker is None:
            command = command_of(plugin.settings.get("command"))
            self.worker = Worker(Program(command, log) if command else Lines(), log)
            log(f"what happens is told on {describe(command)}")
        try:
            events = plugin.client.subscribe(self._cursor)
        except CursorExpired as error:
            log(f"something was missed: {error}")
            events = plugin.client.subscribe()
        plugin.subscription = events
        self._cursor = events.cursor
        self._remember(plugin)
        for event in events:
            if event.type in ("created", "updated"):
                self.worker.add(SAVED, self.labels.saved(event))
            elif event.type == "deleted":
                self.worker.add(DELETED, self.labels.deleted(event))
            elif event.type == "lost":
                log(f"what was behind {event.after} up to {event.seq} is lost")
            self._cursor = event.cursor

    def _remember(self, plugin: Plugin) -> None:
        """The newest records' labels, for when they are deleted. The subscription began before, so none is missed."""
        setting = plugin.settings.get("remember", 1000)
        count = min(setting, LABELS_MAX) if isinstance(setting, int) else 0
        if count > 0 and not len(self.labels):
            records, _ = plugin.client.page(newest_first=True, limit=count, bytes_limit=1 << 20)
            for stored in reversed(records):
                self.labels.remember(stored)

    def end(self) -> None:
        """Shows what is left."""
        if self.worker is not None:
            self.worker.end()


def run() -> int:
    """The plugin, until SIGTERM. A host that started it starts it again; else it connects again by itself."""
    is_child = "LARDER_FD" in os.environ or "LARDER_TOKEN" in os.environ
    notifier, wait = Notifier(), 1.0
    while True:
        try:
            with Plugin("desktop-notify", VERSION, roles=["notifier"]) as plugin:
                wait = 1.0
                notifier.follow(plugin)
                if is_child or plugin.client.stopping:
                    notifier.end()
                    return 0
            log("the host said goodbye")
        except (LarderError, ValueError) as error:
            log(str(error))
            return 1
        except (ConnectionLost, OSError) as error:
            if is_child:
                notifier.end()
                log(f"ended: {error}")
                return 1
            log(f"no host ({error}), trying again in {wait:.0f} s")
        time.sleep(wait)
        wait = min(wait * 2, BACK_OFF_SECONDS)


if __name__ == "__main__":
    sys.exit(run())
