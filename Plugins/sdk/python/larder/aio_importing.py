"""An import of the asyncio client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, AsyncIterable, Iterable, Optional, Type, Union

from .batches import BATCH_BYTES, WINDOW_BYTES, Many, RecordLike
from .errors import ConnectionLost, LarderError
from .results import Accounting

if TYPE_CHECKING:
    from .aio import AsyncClient


class AsyncImport:
    """As `ImportSession`, for `async with`."""

    def __init__(self, client: "AsyncClient", source: str, token: Optional[str]) -> None:
        self._client = client
        self._source = source
        self._token = token
        self.next_batch = 1
        self.accounting = Accounting()
        self.origin = 0
        self.last_batch = 0
        self.is_resumed = False

    async def __aenter__(self) -> "AsyncImport":
        begun = await self._client._run(self._client._calls.begin_import(self._source, self._token))
        self.origin, self.last_batch = begun["origin"], begun["last_batch"]
        self.is_resumed = bool(begun["resumed"])
        return self

    async def save_many(self, kind: str, records: Union[Iterable[RecordLike], AsyncIterable[RecordLike]], *,
                        mode: str = "merge", personal: bool = False, unless_exists: Optional[str] = None,
                        dry_run: bool = False, batch_bytes: int = BATCH_BYTES,
                        window_bytes: int = WINDOW_BYTES) -> Accounting:
        """As `ImportSession.save_many`."""
        many = Many(mode, personal, unless_exists, dry_run, batch_bytes, window_bytes)
        return await self._client._save_many(kind, records, many, self)

    def skip(self, count: int = 1) -> None:
        """Counts records that the importer left out."""
        self.accounting.skipped += count

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        outcome = "complete" if kind is None else "failed" if issubclass(kind, Exception) else "cancelled"
        try:
            await self._client._run(self._client._calls.end_import(self.origin, outcome, self.accounting))
        except (LarderError, ConnectionLost):
            if kind is None:
                raise
