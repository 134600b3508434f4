"""A plugin's frame: connect, register, be ready, follow, leave when asked."""

from __future__ import annotations

import json
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Dict, Iterator, Optional, Sequence, Type, Union

from .client import Client, connect
from .discovery import PathLike
from .events import Event
from .results import Cursor
from .subscription import Subscription


class Plugin:
    """A connected, registered plugin: `with Plugin("mirror", roles=["exporter"], events=["downloaded"]) as plugin:`.

    `client` is its connection, `name` what the library calls it, `settings` its settings with their JSON values read.
    SIGTERM and the host's GOODBYE end `follow`; leaving the block says goodbye. What is written to stderr is its log.
    """

    def __init__(self, name: str, version: str = "0", *, roles: Sequence[str] = ("notifier",),
                 events: Sequence[str] = ("downloaded", "deleted"), kinds: Sequence[str] = (),
                 commands: Sequence[str] = (), path: Optional[PathLike] = None) -> None:
        self.client: Client = connect(name, version, path=path)
        self.subscription: Optional[Subscription] = None
        self._kinds = kinds
        self._events = events
        try:
            registered = self.client.register(roles, events=events, kinds=kinds, commands=commands, ready=True)
        except BaseException:
            self.client.close()
            raise
        self.name: str = registered["name"]
        self.settings: Dict[str, Any] = {item["name"]: json.loads(item["value"]) for item in registered["settings"]}
        self._former: Any = None
        if threading.current_thread() is threading.main_thread():
            self._former = signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, number: int, frame: Optional[FrameType]) -> None:
        self.client.stop()

    def follow(self, after: Union[None, str, Cursor] = None, *, snapshot: bool = False, **more: Any) -> Iterator[Event]:
        """The registered events of the registered kinds, until SIGTERM or the host's goodbye. `more` is `subscribe`'s."""
        more.setdefault("types", self._events)
        more.setdefault("kinds", self._kinds)
        self.subscription = self.client.subscribe(after, snapshot=snapshot, **more)
        yield from self.subscription

    def log(self, *words: object) -> None:
        """A line on stderr, which the host keeps."""
        print(f"{self.name}:", *words, file=sys.stderr, flush=True)

    def close(self, error: int = 0, reason: str = "") -> None:
        """Says goodbye."""
        self.client.close(error, reason)
        if self._former is not None:
            signal.signal(signal.SIGTERM, self._former)
            self._former = None

    def __enter__(self) -> "Plugin":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
