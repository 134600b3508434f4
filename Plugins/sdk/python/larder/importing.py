"""An import: numbered batches between BEGIN_IMPORT and END_IMPORT."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Iterable, Optional, Type

from .batches import BATCH_BYTES, WINDOW_BYTES, Many, RecordLike
from .calls import Pipeline
from .errors import ConnectionLost, LarderError
from .results import Accounting

if TYPE_CHECKING:
    from .client import Client


class ImportSession:
    """An import: BEGIN_IMPORT on entering, END_IMPORT with the counts on leaving; `failed` after an exception,
    `cancelled` after KeyboardInterrupt or GeneratorExit.

    Its batches are numbered. Continued with the same token and the same records, batches that were durable are not sent
    again; their records are in `accounting.already_durable`.
    """

    def __init__(self, client: Client, source: str, token: Optional[str]) -> None:
        self._client = client
        self._source = source
        self._token = token
        self._next_batch = 1
        self.accounting = Accounting()
        self.origin = 0
        self.last_batch = 0
        self.is_resumed = False

    def __enter__(self) -> "ImportSession":
        begun = self._client._run(self._client._calls.begin_import(self._source, self._token))
        self.origin, self.last_batch = begun["origin"], begun["last_batch"]
        self.is_resumed = bool(begun["resumed"])
        return self

    def save_many(self, kind: str, records: Iterable[RecordLike], *, mode: str = "merge", personal: bool = False,
                  unless_exists: Optional[str] = None, dry_run: bool = False, batch_bytes: int = BATCH_BYTES,
                  window_bytes: int = WINDOW_BYTES) -> Accounting:
        """As the client's, in this import. Its own accounting is given, and added to the import's.

        A dry run takes no batch numbers, and is not added to the import's accounting.
        """
        client = self._client
        many = Many(mode, personal, unless_exists, dry_run, batch_bytes, window_bytes)
        found = client._run(client._calls.kind_named(kind))
        pipeline = Pipeline(client._session, found, many, self.origin, self._next_batch, self.last_batch)
        try:
            client._run(pipeline.add_all(records))
        finally:
            self._next_batch = pipeline.next_batch
            if not dry_run:
                self.accounting.merge(pipeline.accounting)
        return pipeline.accounting

    def skip(self, count: int = 1) -> None:
        """Counts records that the importer left out."""
        self.accounting.skipped += count

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        outcome = "complete" if kind is None else "failed" if issubclass(kind, Exception) else "cancelled"
        try:
            self._client._run(self._client._calls.end_import(self.origin, outcome, self.accounting))
        except (LarderError, ConnectionLost, TimeoutError):
            if kind is None:
                raise
