"""What calls give back: records with their places, pages, what a write did, cursors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from .entries import WRITTEN_COUNTS
from .errors import ERROR_NAMES, EncodeError
from .keys import key_of_record, key_text
from .kinds import Kind
from .records import decode_record
from .varint import I64_MAX


@dataclass(frozen=True)
class Cursor:
    """"I have everything of that history up to and including `seq`." Text: `9b1f00c2a4d3e5f6-1234`.

    While a snapshot is under way it also has the snapshot's `s0`, and its text a third part, `-` and s0 in decimal.
    """

    epoch: int
    seq: int
    s0: Optional[int] = None

    def __str__(self) -> str:
        text = f"{self.epoch:016x}-{self.seq}"
        return text if self.s0 is None else f"{text}-{self.s0}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """From its text. Raises `EncodeError`."""
        parts = text.split("-")
        try:
            if len(parts) not in (2, 3) or len(parts[0]) != 16 or not all(
                    part.isascii() and part.isdigit() for part in parts[1:]):
                raise ValueError
            return cls(int(parts[0], 16), int(parts[1]), int(parts[2]) if len(parts) == 3 else None)
        except ValueError:
            raise EncodeError("bad_message", f"{text!r} is not a cursor") from None


@dataclass(frozen=True)
class Compacted:
    """What a compaction came to. `bytes_before` and `bytes_after` are the log's; `dropped` entries are gone.

    `history_since`: ms since 1970, or None where no history was kept. `aside_removed`: files put aside with damage that
    held what was purged. `subscriptions_ended`: those that lagged behind a purge for too long.
    """

    bytes_before: int
    bytes_after: int
    segments: int
    rewritten: int
    dropped: int
    aside_removed: int
    subscriptions_ended: int
    floor: int
    history_since: Optional[int]

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> "Compacted":
        since = reply["history_since"]
        return cls(**{**reply, "history_since": None if since == I64_MAX else since})


class Stored:
    """A record as the library has it. `saved_at` and `changed_at` are milliseconds; `raw` is its bytes."""

    __slots__ = ("kind", "seq", "first_seq", "saved_at", "changed_at", "origin", "raw", "_record")

    def __init__(self, kind: Kind, fields: Mapping[str, Any]) -> None:
        self.kind = kind
        self.seq: int = fields["seq"]
        self.first_seq: int = fields["first_seq"]
        self.saved_at: int = fields["saved_at"]
        self.changed_at: int = fields["changed_at"]
        self.origin: int = fields["origin"]
        self.raw: bytes = fields["record"]
        self._record: Optional[Dict[str, Any]] = None

    @property
    def record(self) -> Dict[str, Any]:
        """Its fields, decoded when first asked for."""
        if self._record is None:
            self._record = decode_record(self.kind, self.raw)
        return self._record

    @property
    def key_text(self) -> str:
        """Its key: `title:tmdb/movie/603`."""
        return key_text(self.kind, key_of_record(self.kind, self.raw))

    @property
    def label(self) -> str:
        """What to call it."""
        return self.kind.label_of(self.record) or "Unknown"

    def __repr__(self) -> str:
        return f"<Stored {self.key_text} seq {self.seq}>"


@dataclass(frozen=True)
class Saved:
    """What one save or delete did: `outcome` is one of `WRITTEN_COUNTS`; `key` the key bytes if the host made them."""

    outcome: str
    seq: int
    key: bytes = b""


@dataclass(frozen=True)
class Refusal:
    """Why one record was refused. `position` counts from 0 over everything that was given to the call.

    `local` ones were not sent: they have no encoding.
    """

    position: int
    error: str
    field: int = 0
    offset: int = 0
    reason: str = ""
    local: bool = False


@dataclass(frozen=True)
class Result:
    """What became of one operation of a batch.

    `outcome` is one of `WRITTEN_COUNTS`. `seq` is that of the entry written, else of the current one (already_saved,
    unchanged, a conflict), else 0. `key` is the key bytes if the host made them, `refusal` why it was refused.
    """

    outcome: str
    seq: int
    key: bytes = b""
    refusal: Optional[Refusal] = None


@dataclass(frozen=True)
class Written:
    """What a batch did: the seq that it depends on, the counts by outcome, and the operations' results in their order."""

    seq: int
    counts: Dict[str, int]
    results: List[Result]

    @property
    def refusals(self) -> List[Refusal]:
        """Why operations were refused, in the order of their positions."""
        return [result.refusal for result in self.results if result.refusal is not None]

    @classmethod
    def of(cls, reply: Mapping[str, Any], refusals: Mapping[int, Refusal]) -> "Written":
        """From the fields of WRITTEN, and its refusals by position."""
        results = [Result(WRITTEN_COUNTS[item["outcome"]], item["seq"], item["key"], refusals.get(position))
                   for position, item in enumerate(reply.get("results", ()))]
        return cls(reply["seq"], {name: reply[name] for name in WRITTEN_COUNTS}, results)


class Match(NamedTuple):
    """A record that a search found. `rank` 0: its label is the query, 1: begins with it, 2: a word of it does, 3: contains
    it, 4: has all its words, 5: some are in other fields."""

    rank: int
    stored: Stored


class Found(List[Stored]):
    """The records that `find` found, in the order of saving; `is_all` unless there are more than were asked for."""

    def __init__(self, records: Iterable[Stored], is_all: bool) -> None:
        super().__init__(records)
        self.is_all = is_all


class Defined(NamedTuple):
    """What became of a declaration: the kind's number, its version now, and whether anything was new."""

    number: int
    version: int
    is_changed: bool


@dataclass
class Accounting:
    """What became of the records of a call or an import. `read` is the sum of the counts."""

    counts: Dict[str, int] = field(default_factory=lambda: dict.fromkeys(WRITTEN_COUNTS, 0))
    skipped: int = 0
    refusals: List[Refusal] = field(default_factory=list)
    #: Records of batches that were durable before this connection, and were not sent again; not in `read`.
    already_durable: int = 0
    #: The seq that everything here depends on.
    seq: int = 0

    @property
    def read(self) -> int:
        return sum(self.counts.values()) + self.skipped

    created = property(lambda self: self.counts["created"])
    updated = property(lambda self: self.counts["updated"])
    unchanged = property(lambda self: self.counts["unchanged"])
    duplicate = property(lambda self: self.counts["duplicate"])
    already_saved = property(lambda self: self.counts["already_saved"])
    not_found = property(lambda self: self.counts["not_found"])
    deleted = property(lambda self: self.counts["deleted"])
    refused = property(lambda self: self.counts["refused"])

    def refuse(self, position: int, error: EncodeError, number: int) -> None:
        """Counts a record that has no encoding."""
        self.counts["refused"] += 1
        self.refusals.append(Refusal(position, error.name, number, 0, str(error), local=True))

    def add(self, written: Mapping[str, Any], positions: Sequence[int]) -> None:
        """Counts one batch's answer; `positions` says where its operations stood."""
        for name in WRITTEN_COUNTS:
            self.counts[name] += written[name]
        self.seq = max(self.seq, written["seq"])
        for item in written["refusals"]:
            at = item["position"]
            self.refusals.append(Refusal(positions[at] if at < len(positions) else -1,
                                         ERROR_NAMES.get(item["error"], f"error_{item['error']}"), item["field"],
                                         item["offset"], item["reason"]))

    def merge(self, other: "Accounting") -> None:
        """Adds another call's; its refusals keep the positions of their own call."""
        for name, count in other.counts.items():
            self.counts[name] += count
        self.skipped += other.skipped
        self.already_durable += other.already_durable
        self.refusals += other.refusals
        self.seq = max(self.seq, other.seq)
