"""The import itself: rows to records to numbered batches, over as many connections as it takes."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from larder import Client, Cursor, CursorExpired, EncodeError, ImportSession, LarderError, Refusal, connect, encode_record
from larder.batches import MODES
from larder.entries import WRITTEN_COUNTS
from larder.errors import ERROR_NAMES
from larder.keys import key_of_record

from .report import COUNTS, Report
from .rows import Choices, Refused, Skipped, record_of
from .sources import Place, Row, digest_of, rows_of

RETRY_SECONDS = 30.0
DRY_RUN, DRY_ROWS = 2, 1000
_ROW_BITS = 40


@dataclass
class Options:
    """What the import was told."""

    mode: str = "merge"
    is_dry: bool = False
    choices: Choices = field(default_factory=Choices)
    source: str = "tmdb"

    def words(self) -> List[str]:
        """All that decides about the records; with the files' content it names the import."""
        choices = self.choices
        return [self.mode, choices.media_type, choices.source, repr(sorted(choices.preset.items()))]


class Incomplete(Exception):
    """A source broke off: what it had was imported, and the import ends as failed."""


class Reader:
    """Reads the rows of all files as records; counts and tells what is left out. The same files always give the same
    records in the same order, so a second reading after a lost connection is told nothing twice."""

    def __init__(self, files: List[str], options: Options, report: Report) -> None:
        self._files = files
        self._options = options
        self._report = report
        self._told = 0
        self.skipped = self.refused = 0
        self.is_incomplete = False
        self._places: "array[int]" = array("Q")

    def records(self) -> Iterator[Dict[str, Any]]:
        """Reads everything from the beginning."""
        self.skipped = self.refused = 0
        self.is_incomplete = False
        self._places = array("Q")
        number = 0
        for file, path in enumerate(self._files):
            for row in rows_of(path, file):
                number += 1
                record = self._record(row, number > self._told)
                self._told = max(self._told, number)
                self._report.progress(number)
                if record is not None:
                    self._places.append(file << _ROW_BITS | number)
                    yield record

    def _record(self, row: Row, is_new: bool) -> Optional[Dict[str, Any]]:
        place = row.place

        def warn(name: str, reason: str) -> None:
            if is_new:
                self._report.warning(place.file, place.at, name, reason)

        try:
            if row.wrong is not None:
                if row.wrong.reason in ("damaged", "unreadable"):
                    self.is_incomplete = True
                raise row.wrong
            return record_of(row.value, self._options.choices, warn, row.hint)
        except Skipped as skipped:
            self.skipped += 1
            if is_new:
                self._report.skipped(place.file, place.at, str(skipped))
        except Refused as refused:
            self.refused += 1
            if is_new:
                self._report.refused(place.file, place.at, place.line, refused.reason, refused.message)
        return None

    def place(self, position: int) -> Place:
        """Where the record with this position among those given is. Reads its file again: for the few refused ones."""
        if not 0 <= position < len(self._places):
            return Place(0, 0, "")
        packed = self._places[position]
        file, number = packed >> _ROW_BITS, packed & (1 << _ROW_BITS) - 1
        before = 0
        for index in range(file):
            before += sum(1 for _ in rows_of(self._files[index], index))
        for row in rows_of(self._files[file], file):
            before += 1
            if before == number:
                return row.place
        return Place(file, 0, "")


class Run:
    """One import, from its first connection to its accounting.

    Numbered batches that were durable when a connection was lost are not sent again; what became of their records is
    read in the library's log, where each batch has left its counts.
    """

    def __init__(self, files: List[str], options: Options, report: Report,
                 open_client: Callable[[], Client] = lambda: connect("tmdb-import", "1.0"),
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._report = report
        self._open = open_client
        self._sleep = sleep
        self._reader = Reader(files, options, report)
        self._token = "tmdb-" + digest_of(files, *options.words())[:40]
        self._counts: Dict[str, int] = {}
        self._began: Optional[Cursor] = None
        self._last_batch = 0
        self._is_saved = False
        self._told: Set[int] = set()

    def run(self) -> None:
        """Imports. Raises `LarderError`, and `ConnectionLost` or `OSError` when no host is there for 30 s."""
        wait, until, connected = 0.1, 0.0, False
        while True:
            before = self._last_batch, self._is_saved
            try:
                with self._open() as client:
                    connected = True
                    if self._options.is_dry:
                        self._dry(client)
                    else:
                        self._once(client)
                return
            except (ConnectionError, FileNotFoundError, LarderError) as error:
                if self._options.is_dry or not connected or isinstance(error, LarderError) and not error.may_retry:
                    raise
                now = time.monotonic()
                if not until or (self._last_batch, self._is_saved) != before:
                    wait, until = 0.1, now + RETRY_SECONDS
                if now + wait > until:
                    raise
                self._report.note(f"{error}; trying again")
                self._sleep(wait)
                wait = min(wait * 2, 2.0)

    @property
    def counts(self) -> Dict[str, int]:
        """The accounting so far: `read` and what became of every row."""
        counts = {name: self._counts.get(name, 0) for name in COUNTS}
        counts["skipped"] = self._reader.skipped
        counts["refused"] += self._reader.refused
        return {"read": sum(counts.values()), **counts}

    @property
    def is_incomplete(self) -> bool:
        """Whether a source broke off."""
        return self._reader.is_incomplete

    def _once(self, client: Client) -> None:
        welcome = client.welcome
        is_first = self._began is None or self._began.epoch != welcome["epoch"]
        if is_first:
            self._began = Cursor(welcome["epoch"], welcome["last_seq"])
        client.register(["importer"], kinds=["title"])
        try:
            with client.import_session(self._options.source, self._token) as session:
                if not self._is_saved:
                    self._save(client, session, is_first)
                session.accounting.counts.update((name, self.counts[name]) for name in COUNTS if name != "skipped")
                session.accounting.skipped = self._reader.skipped
                if self.is_incomplete:
                    raise Incomplete
        except Incomplete:
            pass

    def _save(self, client: Client, session: ImportSession, is_first: bool) -> None:
        self._last_batch = session.last_batch
        before = dict.fromkeys(WRITTEN_COUNTS, 0)
        if session.last_batch:
            self._report.note(f"going on behind batch {session.last_batch}")
            start = Cursor(client.welcome["epoch"], 0) if is_first else self._began
            before = batch_counts(client, start or Cursor(0, 0), session.origin, session.last_batch)
        try:
            session.save_many("title", self._reader.records(), mode=self._options.mode)
            self._is_saved = True
        finally:
            accounting = session.accounting
            # A batch whose counts are gone from the log was written by this import, whatever it did.
            before["duplicate"] += max(0, accounting.already_durable - sum(before.values()))
            self._counts = {name: before[name] + accounting.counts[name] for name in WRITTEN_COUNTS}
            self._tell(client, accounting.refusals)

    def _tell(self, client: Client, refusals: List[Refusal]) -> None:
        if not refusals:
            return
        names = {item.number: item.name for item in client.kinds()["title"].fields} if not client.is_closed else {}
        for refusal in refusals:
            if refusal.position not in self._told:
                self._told.add(refusal.position)
                place = self._reader.place(refusal.position)
                self._report.refused(place.file, place.at, place.line, refusal.error, refusal.reason,
                                     names.get(refusal.field, ""))

    def _dry(self, client: Client) -> None:
        """Asks what would become of the records. Of a key that comes again the first one counts."""
        kind = client.kinds()["title"]
        relax = "partial" if self._options.mode in ("merge", "fill") else ""
        counts = self._counts = dict.fromkeys(WRITTEN_COUNTS, 0)
        seen: Set[bytes] = set()
        batch: List[Dict[str, Any]] = []
        positions: List[int] = []

        def ask() -> None:
            if not batch:
                return
            written = client.call("WRITE", {"flags": DRY_RUN, "operations": batch})
            for name in WRITTEN_COUNTS:
                counts[name] += written[name]
            self._tell(client, [Refusal(positions[item["position"]], ERROR_NAMES.get(item["error"], "refused"),
                                        item["field"], 0, item["reason"]) for item in written["refusals"]])
            batch.clear()
            positions.clear()

        for position, record in enumerate(self._reader.records()):
            try:
                data = encode_record(kind, record, relax=relax)
            except EncodeError as error:
                counts["refused"] += 1
                field_of = kind.by_name.get(error.field)
                self._tell(client, [Refusal(position, error.name, field_of.number if field_of else 0, 0, str(error))])
                continue
            key = key_of_record(kind, data)
            if key in seen:
                counts["duplicate"] += 1
                continue
            seen.add(key)
            batch.append({"verb": 1, "mode": MODES[self._options.mode], "kind": kind.number, "known": kind.highest,
                          "body": data})
            positions.append(position)
            if len(batch) >= DRY_ROWS:
                ask()
        ask()


def batch_counts(client: Client, after: Cursor, origin: int, last_batch: int) -> Dict[str, int]:
    """What the batches of an import up to `last_batch` did, from the log behind a cursor."""
    counts = dict.fromkeys(WRITTEN_COUNTS, 0)
    try:
        subscription = client.subscribe(after, types=["imports"], heartbeats=True)
    except CursorExpired as error:
        floor = int(error.facts.get("floor", "1"))
        subscription = client.subscribe(Cursor(after.epoch, max(floor - 1, 0)), types=["imports"], heartbeats=True)
    through = client.welcome["last_seq"]
    if subscription.cursor.seq < through:
        for event in subscription:
            body = event.body
            if event.type == "token" and body["origin"] == origin and body["batch"] <= last_batch:
                for name in WRITTEN_COUNTS:
                    counts[name] += body["counts"][name]
                if body["batch"] == last_batch:
                    break
            if event.seq >= through:
                break
    subscription.unsubscribe()
    return counts
