"""What to say of events, and when. No clock and no I/O: the time is given."""

from __future__ import annotations

import unicodedata
from typing import List, Optional, Tuple

WINDOW_SECONDS = 1.0
WINDOW_SECONDS_MAX = 8.0
SINGLES_MAX = 3
LABEL_LENGTH_MAX = 80
SAVED, DELETED = "saved", "deleted"


def shown(label: str) -> str:
    """A label for a line of its own: no control characters and none that turn the line around; cut when long."""
    clean = "".join(" " if unicodedata.category(character) in ("Cc", "Zl", "Zp") else character for character in label
                    if character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    clean = " ".join(clean.split()) or "Unknown"
    return clean if len(clean) <= LABEL_LENGTH_MAX else clean[:LABEL_LENGTH_MAX - 1] + "…"


class Tally:
    """What happened: how often, and the first few by name."""

    def __init__(self) -> None:
        self.saved = self.deleted = 0
        self._singles: List[Tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self.saved or self.deleted)

    @property
    def count(self) -> int:
        return self.saved + self.deleted

    def add(self, what: str, label: str) -> None:
        """One event."""
        if what == SAVED:
            self.saved += 1
        else:
            self.deleted += 1
        if len(self._singles) < SINGLES_MAX:
            self._singles.append((what, label))

    def texts(self) -> List[str]:
        """A few events one by one, many in one line."""
        if self.count <= SINGLES_MAX:
            return [f"‘{shown(label)}’ {what}" for what, label in self._singles]
        parts = [f"{count:,} {what}" for count, what in ((self.saved, SAVED), (self.deleted, DELETED)) if count]
        return [", ".join(parts)]


class Window:
    """Collects events for a second. While many come it stays open longer each time, so that a long import is told in a
    few lines; after a quiet window it is short again."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._due: Optional[float] = None
        self._seconds = WINDOW_SECONDS
        self._closed = float("-inf")

    @property
    def due(self) -> Optional[float]:
        """When to take what was collected; None while there is nothing."""
        return self._due

    def add(self, what: str, label: str, now: float) -> None:
        """One event."""
        if self._due is None:
            if now - self._closed > WINDOW_SECONDS:
                self._seconds = WINDOW_SECONDS
            self._due = now + self._seconds
        self._tally.add(what, label)

    def take(self, now: float) -> Optional[Tally]:
        """What was collected, once it is due."""
        if self._due is None or now < self._due:
            return None
        tally, self._tally = self._tally, Tally()
        self._due, self._closed = None, now
        is_many = tally.count > SINGLES_MAX
        self._seconds = min(self._seconds * 2, WINDOW_SECONDS_MAX) if is_many else WINDOW_SECONDS
        return tally

    def rest(self) -> Tally:
        """What was collected, due or not."""
        tally, self._tally, self._due = self._tally, Tally(), None
        return tally
