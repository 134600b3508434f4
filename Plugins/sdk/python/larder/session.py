"""The client's side of a connection, without I/O: requests go in and bytes come out, bytes go in and replies come out."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Union

from .errors import ConnectionLost, DecodeError, LarderError, larder_error
from .events import SubscriptionState
from .frames import PREFACE, FrameDecoder, RawFrame, encode_frame
from .kinds import Kind
from .messages import BY_NAME, BY_NUMBER, REQUEST, check_request_id

MINOR_VERSION = 1
#: After so many seconds without WELCOME the host is asked how it is, and again so long after each answer.
STATUS_SECONDS = 1.0
_EVENTS = BY_NAME["EVENTS"].number


class Reply(NamedTuple):
    """The final reply of a request: its fields, or the error."""

    id: int
    result: Union[Dict[str, Any], LarderError]


class Session:
    """One connection's state. Whoever owns the socket sends what is in `outgoing` and hands over what was received."""

    def __init__(self) -> None:
        self.outgoing = bytearray()
        self.welcome: Optional[Dict[str, Any]] = None
        self.goodbye: Optional[Dict[str, Any]] = None
        #: Errors about the connection that did not end it.
        self.warnings: List[LarderError] = []
        self.kinds: Dict[int, Kind] = {}
        self.subscriptions: Dict[int, SubscriptionState] = {}
        self.progress: Dict[int, Callable[[int, int], None]] = {}
        self._open: Dict[int, str] = {}
        self._decoder = FrameDecoder()
        self._last_id = 0

    @property
    def open_requests(self) -> int:
        """How many requests wait for their final reply."""
        return len(self._open)

    def hello(self, name: str, version: str, token: bytes, deadline: int) -> int:
        """Queues the preface and HELLO; gives the request's id."""
        self.outgoing += PREFACE
        return self.request("HELLO", {"version_min": MINOR_VERSION, "version_max": MINOR_VERSION, "name": name,
                                      "version": version, "deadline": deadline, "token": token})

    def request(self, name: str, fields: Optional[Mapping[str, Any]] = None, body: Optional[bytes] = None) -> int:
        """Queues a request, from its fields or with a body made elsewhere; gives its id."""
        message = BY_NAME[name]
        data = message.encode(fields) if body is None else body
        request_id = self._free_id()
        self.outgoing += encode_frame(message.number, request_id, data)
        self._open[request_id] = name
        return request_id

    def notice(self, name: str, fields: Optional[Mapping[str, Any]] = None, request_id: int = 0) -> None:
        """Queues a notice."""
        message = BY_NAME[name]
        self.outgoing += encode_frame(message.number, request_id, message.encode(fields))

    def add_subscription(self, fields: Mapping[str, Any], make: Callable[[int], SubscriptionState]) -> int:
        """Queues SUBSCRIBE and keeps the state that takes what comes for it."""
        request_id = self.request("SUBSCRIBE", fields)
        self.subscriptions[request_id] = make(request_id)
        return request_id

    def return_credit(self, state: SubscriptionState) -> None:
        """Queues CREDIT when enough of it was used."""
        self._give(state, state.owed())

    def credit_ahead(self, state: SubscriptionState) -> None:
        """Queues CREDIT for what is queued and was not taken yet, when enough of it was used."""
        self._give(state, state.owed_ahead())

    def _give(self, state: SubscriptionState, owed: int) -> None:
        if owed and not state.ended and state.id in self.subscriptions:
            self.notice("CREDIT", {"bytes": owed}, state.id)

    def receive(self, data: bytes) -> List[Reply]:
        """Takes bytes; gives the final replies that are whole now, and hands events to their subscriptions.

        Raises `ConnectionLost` for bytes that are not the protocol, `LarderError` for an error about the connection.
        """
        replies: List[Reply] = []
        try:
            for frame in self._decoder.feed(data):
                self._take(frame, replies)
        except DecodeError as error:
            raise ConnectionLost(f"the host sent what is not the protocol: {error}") from error
        return replies

    def _take(self, frame: RawFrame, replies: List[Reply]) -> None:
        if frame.type == _EVENTS:
            if len(frame.body) < 16:
                raise DecodeError("bad_message", 0, "EVENTS without its span")
            self._subscription(frame.id).push("EVENTS", frame.body, {})
            return
        message = BY_NUMBER.get(frame.type)
        if message is None and self.welcome is not None:
            return  # of a later version
        if message is None or "H" not in message.direction:
            raise DecodeError("unknown_message", 4, f"the message {frame.type:02X}")
        check_request_id(frame.type, frame.id)
        fields = message.decode(frame.body)
        if message.role == REQUEST:
            self.notice("PONG", fields, frame.id)
        elif message.name == "GOODBYE_HOST":
            self.goodbye = fields
        elif message.name == "PROGRESS":
            tell = self.progress.get(frame.id)
            if tell is not None:
                tell(fields["done"], fields["total"])
        elif message.name in ("SNAPSHOT_END", "LOST"):
            self._subscription(frame.id).push(message.name, b"", fields)
        elif message.name == "ERROR":
            self._fail(frame.id, fields, replies)
        else:
            self._finish(frame, message.name, fields, replies)

    def _subscription(self, request_id: int) -> SubscriptionState:
        state = self.subscriptions.get(request_id)
        if state is None:
            raise DecodeError("bad_message", 8, f"events of {request_id}, which is no subscription")
        return state

    def _fail(self, request_id: int, fields: Mapping[str, Any], replies: List[Reply]) -> None:
        error = larder_error(fields["error"], fields["message"], field=fields["field"], place=fields["place"],
                             facts={fact["name"]: fact["value"] for fact in fields["facts"]},
                             fatal=bool(fields["flags"] & 1), may_retry=bool(fields["flags"] & 2))
        if request_id == 0:
            if error.fatal or self.welcome is None:
                raise error
            self.warnings.append(error)
            return
        state = self.subscriptions.pop(request_id, None)
        if state is not None:
            state.ended, state.failure = True, error
        if self._open.pop(request_id, None) is not None:
            self.progress.pop(request_id, None)
            replies.append(Reply(request_id, error))

    def _finish(self, frame: RawFrame, name: str, fields: Dict[str, Any], replies: List[Reply]) -> None:
        asked = self._open.pop(frame.id, None)
        if asked is None or BY_NAME[asked].reply != frame.type:
            raise DecodeError("bad_message", 4, f"{name} answers nothing that was asked")
        self.progress.pop(frame.id, None)
        if name == "WELCOME":
            self.welcome = fields
            self._decoder.limit = fields["frame_limit"]
        elif name == "SUBSCRIBED":
            state = self.subscriptions[frame.id]
            state.begin(fields, state.is_snapshot)
        elif name == "KIND_LIST":
            for kind in fields["kinds"]:
                known = self.kinds.get(kind.number)
                if known is None or known.version < kind.version:
                    self.kinds[kind.number] = kind
        replies.append(Reply(frame.id, fields))

    def _free_id(self) -> int:
        while True:
            self._last_id = self._last_id % 0xFFFFFFFF + 1
            if self._last_id not in self._open and self._last_id not in self.subscriptions:
                return self._last_id
