"""Programs that take part in a Larder library: plugins, importers, exporters.

`connect` gives a synchronous `Client`, `larder.aio.connect` an asyncio one, `Plugin` a plugin's frame. The codec below
them (`kinds`, `records`, `keys`, `entries`, `blocks`, `frames`, `messages`) needs no connection.
"""

from .client import Client, Subscription, connect
from .dates import PartialDate
from .errors import (AlreadySaved, BadKey, BadRecord, Busy, Cancelled, CapabilityUnsupported, Conflict, ConnectionLost,
                     Corrupt, CursorExpired, DeadlineExceeded, DecodeError, EncodeError, FailedToDelete, FailedToSave,
                     LarderError, NotFound, NotPermitted, ShuttingDown, StoreFull, UnknownKind, UnknownOrigin, Unsupported,
                     VersionUnsupported)
from .events import Event
from .importing import ImportSession
from .kinds import Field, Kind
from .plugin import Plugin
from .records import decode_record, encode_record, record_from_json, record_json_text, record_to_json
from .results import Accounting, Cursor, Refusal, Saved, Stored

__version__ = "0.1.0"

__all__ = [
    "Accounting", "AlreadySaved", "BadKey", "BadRecord", "Busy", "Cancelled", "CapabilityUnsupported", "Client", "Conflict",
    "ConnectionLost", "Corrupt", "Cursor", "CursorExpired", "DeadlineExceeded", "DecodeError", "EncodeError", "Event",
    "FailedToDelete", "FailedToSave", "Field", "ImportSession", "Kind", "LarderError", "NotFound", "NotPermitted",
    "PartialDate", "Plugin", "Refusal", "Saved", "ShuttingDown", "StoreFull", "Stored", "Subscription", "UnknownKind",
    "UnknownOrigin", "Unsupported", "VersionUnsupported", "connect", "decode_record", "encode_record",
    "record_from_json", "record_json_text", "record_to_json",
]
