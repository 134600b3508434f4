"""Scripts that both clients are held against: what the host gets and says, and the same records for both."""

from larder.batches import Operations, write_body
from larder.records import encode_record

from .peer import (EPOCH, GOODBYE, TITLE, created, ended, events, frame, greeting, kinds, run, written)

KEY = {"source": "tmdb", "media_type": "movie", "id": 603}
MATRIX = {**KEY, "title": "The Matrix"}
RAW = encode_record(TITLE, MATRIX)
KEY_BYTES = RAW[2:10]
STORED = {"kind": 1, "seq": 7, "first_seq": 7, "saved_at": 1, "changed_at": 2, "origin": 3, "record": RAW}
SUBSCRIBE = {"start": 3, "types": 7, "kinds": [], "except": 0, "credit": 200}
MANY = [{**KEY, "id": number} for number in range(1, 6)]


def operation(record):
    return Operations(TITLE, "merge").encode(record)


def one_write(request_id, record, origin=0, batch=0, flags=0):
    return frame("WRITE", request_id, body=write_body([operation(record)], origin, batch, flags))


def ends():
    return [("expect", GOODBYE)]


def status(request_id, state, reason=""):
    """A STATUS_IS that says little else."""
    fields = {"state": state, "reason": reason, "mode": 1, "pid": 7, "version": "0", "library": "/l", "socket": "/s",
              "epoch": EPOCH, "last_seq": 0, "floor": 0, "started": 0, "segments": 0, "log_bytes": 0, "counts": [],
              "sessions": [], "plugins": [], "reclaimable": 0}
    return ("send", frame("STATUS_IS", request_id, fields))


def recovering(request_id, percent):
    """The host is asked how it is, and opens its library still."""
    return [("expect", frame("STATUS", request_id)), status(request_id, "recovering", f"recovering {percent} %")]


#: A late WELCOME that crosses the third question.
LATE = [
    greeting()[0], *recovering(2, 5), *recovering(3, 60), ("expect", frame("STATUS", 4)), greeting()[1],
    status(4, "serving"), ("expect", frame("PING", 5, {"bytes": b""})), ("send", frame("PONG", 5, {"bytes": b""})), *ends()]
#: A host that says no more once it has said that it recovers.
SILENT = [greeting()[0], *recovering(2, 5), *recovering(3, 6), *recovering(4, 7), ("expect", frame("STATUS", 5)),
          ("outwait", None)]
COMPACTED = {"bytes_before": 900, "bytes_after": 300, "segments": 3, "rewritten": 2, "dropped": 7, "aside_removed": 0,
             "subscriptions_ended": 1, "floor": 12, "history_since": 2**63 - 1}
CALLS = [
    *greeting(), *kinds(2),
    ("expect", one_write(3, MATRIX, flags=4)), written(3, created=1, results=[{"outcome": 0, "seq": 7, "key": b""}]),
    ("expect", frame("GET", 4, {"kind": 1, "key": KEY_BYTES})), ("trickle", frame("RECORD", 4, {"record": STORED})),
    ("expect", frame("GET", 5, {"kind": 1, "key": KEY_BYTES})),
    ("send", frame("ERROR", 5, {"error": 25, "flags": 2, "message": "gone", "facts": [{"name": "a", "value": "b"}]})),
    ("expect", frame("LIST", 6, {"kind": 1, "flags": 1, "limit": 1})),
    ("send", frame("PAGE", 6, {"is_end": 0, "token": b"t", "records": [STORED]})),
    ("expect", frame("LIST", 7, {"kind": 1, "flags": 1, "limit": 1, "token": b"t"})),
    ("send", frame("PAGE", 7, {"is_end": 1, "token": b"", "records": [STORED]})),
    ("expect", frame("COUNT", 8, {"kind": 0})), ("send", frame("COUNTED", 8, {"counts": [{"kind": 1, "records": 5}]})),
    ("expect", frame("CLEAR", 9, {"kind": 1})), ("send", frame("PING", 1, {"bytes": b"?"})),
    ("expect", frame("PONG", 1, {"bytes": b"?"})),
    ("send", frame("PROGRESS", 9, {"done": 1, "total": 2}) + frame("CLEARED", 9, {"deleted": 2, "seq": 12})),
    ("expect", frame("COMPACT", 10, {"history_since": 0, "dead_share": 30, "flags": 0, "wait": 30_000, "rate": 0,
                                     "purged": []})),
    ("send", frame("PROGRESS", 10, {"done": 1, "total": 3}) + frame("COMPACTED", 10, COMPACTED)),
    ("expect", frame("COMPACT", 11, {"history_since": 2**63 - 1, "dead_share": 0, "flags": 1, "wait": 1_500,
                                     "rate": 2**63 - 1, "purged": [{"kind": 1, "key": KEY_BYTES}]})),
    ("send", frame("ERROR", 11, {"error": 26, "place": 1, "message": "it has a record"})),
    *ends(),
]

# Three batches of one operation are two, one and one in flight; the answers come in an order of their own.
PIPELINE = [
    *greeting(), *kinds(2), ("expect", one_write(3, MANY[0])), ("expect", one_write(4, MANY[1])),
    written(4, seq=12, refused=1, refusals=[{"position": 0, "error": 15, "field": 4, "offset": 0, "reason": "why"}]),
    written(3, seq=11, created=1), ("expect", one_write(5, MANY[3])), ("expect", one_write(6, MANY[4])),
    written(5, seq=13, updated=1), written(6, seq=14, unchanged=1), *ends(),
]

IMPORT = [
    *greeting(), ("expect", frame("BEGIN_IMPORT", 2, {"source": "watched.csv", "token": "t"})),
    ("send", frame("IMPORT_BEGUN", 2, {"origin": 4, "last_batch": 1, "resumed": 1})), *kinds(3),
    ("expect", one_write(4, MANY[1], 4, 2)), written(4, created=1),
    ("expect", frame("END_IMPORT", 5, {"origin": 4, "outcome": 1, **ended(read=3, created=1, skipped=2)})),
    ("send", frame("IMPORT_ENDED", 5, {"seq": 20})), *ends(),
]

FAILED_IMPORT = [
    *greeting(), ("expect", frame("BEGIN_IMPORT", 2, {"source": "x", "token": ""})),
    ("send", frame("IMPORT_BEGUN", 2, {"origin": 4, "last_batch": 0, "resumed": 0})),
    ("expect", frame("END_IMPORT", 3, {"origin": 4, "outcome": 2, **ended()})),
    ("send", frame("IMPORT_ENDED", 3, {"seq": 20})), *ends(),
]

FIRST = events(3, 0, 8, run(7, 1_000, created(7, 7, RAW)))
FOLLOW = [
    *greeting(), *kinds(2), ("expect", frame("SUBSCRIBE", 3, SUBSCRIBE)),
    ("send", frame("SUBSCRIBED", 3, {"epoch": EPOCH, "after": 0, "s0": 8, "floor": 1}) + FIRST),
    ("send", frame("SNAPSHOT_END", 3, {"s1": 8})), ("send", events(3, 8, 9)),
    ("send", frame("LOST", 3, {"after": 9, "through": 11})),
    ("send", events(3, 11, 13, run(12, 2_000, created(12, 12, RAW) + created(13, 12, RAW)))),
    ("expect", frame("CREDIT", 3, {"bytes": len(FIRST) + 28})),
    ("expect", frame("CREDIT", 3, {"bytes": 12 + 16 + 20 + 2 * len(created(12, 12, RAW))})),
    ("send", frame("GOODBYE_HOST", 0, {"error": 40, "reason": "stopping"})), ("close", None),
]
SEEN = [("created", 7, f"{EPOCH:016x}-7-8"), ("snapshot_end", 8, f"{EPOCH:016x}-8"), ("heartbeat", 9, f"{EPOCH:016x}-9"),
        ("lost", 11, f"{EPOCH:016x}-11"), ("created", 12, f"{EPOCH:016x}-12"), ("created", 13, f"{EPOCH:016x}-13")]

STILL = [
    *greeting(), *kinds(2), ("expect", frame("SUBSCRIBE", 3, SUBSCRIBE)),
    ("send", frame("SUBSCRIBED", 3, {"epoch": EPOCH, "after": 0, "s0": 8, "floor": 1})), *ends(),
]

GAP = [
    *greeting(), *kinds(2), ("expect", frame("SUBSCRIBE", 3, SUBSCRIBE)),
    ("send", frame("SUBSCRIBED", 3, {"epoch": EPOCH, "after": 0, "s0": 8, "floor": 1}) + events(3, 5, 8)), *ends(),
]

EXPIRED = [
    *greeting(), *kinds(2),
    ("expect", frame("SUBSCRIBE", 3, {**SUBSCRIBE, "start": 1, "epoch": EPOCH, "seq": 5, "credit": 1 << 20})),
    ("send", frame("ERROR", 3, {"error": 31, "flags": 0, "facts": [{"name": "floor", "value": "7"}]})), *ends(),
]

GARBAGE = [*greeting(), ("expect", frame("STATUS", 2)), ("send", b"\0" * 4 + b"\x90\x01" + b"\0" * 6), ("close", None)]
CLOSED = [*greeting(), ("expect", frame("STATUS", 2)), ("close", None)]
