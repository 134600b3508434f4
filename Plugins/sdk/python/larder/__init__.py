"""Programs that take part in a Larder library: plugins, importers, exporters.

`connect` gives a synchronous `Client`, `larder.aio.connect` an asyncio one, `Plugin` a plugin's frame. The codec below
them (`kinds`, `records`, `keys`, `entries`, `blocks`, `frames`, `messages`) needs no connection.
"""

from .client import Client, connect
from .dates import PartialDate
from .errors import (AlreadySaved, BadCondition, BadKey, BadRecord, BadToken, Busy, Cancelled, CapabilityUnsupported,
                     Conflict, ConnectionLost, Corrupt, CursorExpired, DeadlineExceeded, DecodeError, EncodeError,
                     FailedToDelete, FailedToSave, KindConflict, LarderError, NotFound, NotPermitted, QueueFull,
                     ShuttingDown, StoreFull, TooManyGroups, UnknownKind, UnknownOrigin, Unsupported, VersionUnsupported)
from .events import Event
from .importing import ImportSession
from .kinds import Field, Kind
from .operations import Delete, Move, Restore, Save
from .plugin import Plugin
from .records import decode_record, encode_record, record_from_json, record_json_text, record_to_json
from .results import Accounting, Compacted, Cursor, Defined, Found, Match, Refusal, Result, Saved, Stored, Written
from .subscription import Subscription

__version__ = "0.1.0"

__all__ = [
    "Accounting", "AlreadySaved", "BadCondition", "BadKey", "BadRecord", "BadToken", "Busy", "Cancelled",
    "CapabilityUnsupported", "Client", "Compacted", "Conflict", "ConnectionLost", "Corrupt", "Cursor", "CursorExpired",
    "DeadlineExceeded", "DecodeError", "Defined", "Delete", "EncodeError", "Event", "FailedToDelete", "FailedToSave",
    "Field", "Found", "ImportSession", "Kind", "KindConflict", "LarderError", "Match", "Move", "NotFound", "NotPermitted",
    "PartialDate", "Plugin", "QueueFull", "Refusal", "Restore", "Result", "Save", "Saved", "ShuttingDown", "StoreFull",
    "Stored", "Subscription", "TooManyGroups", "UnknownKind", "UnknownOrigin", "Unsupported", "VersionUnsupported",
    "Written", "connect", "decode_record", "encode_record", "record_from_json", "record_json_text", "record_to_json",
]
