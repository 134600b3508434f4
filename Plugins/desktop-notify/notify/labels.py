"""What records are called, remembered: a deleted event has only the key."""

from __future__ import annotations

from collections import OrderedDict
from typing import Optional, Tuple

from larder import Event, Kind, Stored
from larder.errors import DecodeError
from larder.keys import key_of_record, key_text
from larder.records import decode_record

LABELS_MAX = 5000
LABEL_BYTES = 200


class Labels:
    """The labels of the records that were seen last, at most `LABELS_MAX`."""

    def __init__(self, limit: int = LABELS_MAX) -> None:
        self._limit = limit
        self._labels: "OrderedDict[Tuple[int, bytes], str]" = OrderedDict()

    def __len__(self) -> int:
        return len(self._labels)

    def _keep(self, kind: Kind, key: bytes, label: str) -> None:
        place = (kind.number, key)
        self._labels[place] = label[:LABEL_BYTES]
        self._labels.move_to_end(place)
        while len(self._labels) > self._limit:
            self._labels.popitem(last=False)

    def remember(self, stored: Stored) -> None:
        """A record that was saved before."""
        try:
            self._keep(stored.kind, key_of_record(stored.kind, stored.raw), stored.label)
        except DecodeError:
            pass  # of a later version of its kind

    def saved(self, event: Event) -> str:
        """The label of a record that is saved; "Unknown" where it has none."""
        kind, raw = event.kind, event.raw
        try:
            label = kind.label_of(decode_record(kind, raw)) or "Unknown"
        except DecodeError:
            return key_text(kind, key_of_record(kind, raw))
        self._keep(kind, key_of_record(kind, raw), label)
        return label

    def deleted(self, event: Event) -> str:
        """What the record that is gone was called; its key where nobody knows."""
        label: Optional[str] = self._labels.pop((event.kind.number, event.raw), None)
        return label or key_text(event.kind, event.raw)

