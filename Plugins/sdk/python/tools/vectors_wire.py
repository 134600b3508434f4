"""The vectors of frames and message bodies."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from vectorio import encode_message
from vectors_log import EPOCH, TIME, _created
from vectors_values import MATRIX_HEX, SAMPLE, Vector, bad, ok, shipped

from larder.entries import ENDED_COUNTS, WRITTEN_COUNTS
from larder.errors import DecodeError
from larder.frames import encode_frame
from larder.messages import BY_NAME

KEY_HEX = MATRIX_HEX[6:22]


def frame_vectors() -> Dict[str, Any]:
    def frame(name: str, hexes: str, *found: Tuple[int, int, str], limit: int = 65_536) -> Vector:
        return ok(name, hexes, [{"type": kind, "id": number, "body": body} for kind, number, body in found],
                  type="frame", limit=limit)

    ping, ready = "03000000 0e 00 0000 01000000 02abcd", "00000000 03 00 0000 00000000"
    valid = [
        ok("the preface", "4c41524445 52010a", "LARDER 1", type="preface"),
        frame("a request", ping, (0x0E, 1, "02abcd")), frame("a notice without a body", ready, (3, 0, "")),
        frame("the largest id", "00000000 10 00 0000 ffffffff", (0x10, 2**32 - 1, "")),
        frame("three joined", ping + ready + ping, (0x0E, 1, "02abcd"), (3, 0, ""), (0x0E, 1, "02abcd")),
        frame("a type that is not known", "01000000 7f 00 0000 05000000 00", (0x7F, 5, "00")),
        frame("an error about the connection", "07000000 9f 00 0000 00000000 04010000000000", (0x9F, 0, "04010000000000")),
        frame("as long as the limit", "04000000 0e 00 0000 01000000 03abcdef", (0x0E, 1, "03abcdef"), limit=4),
        frame("nothing", ""),
    ]

    def err(name: str, hexes: str, error: str, offset: int, kind: str = "frame", limit: int = 65_536) -> Vector:
        return bad(name, hexes, error, offset, type=kind, **({"limit": limit} if kind == "frame" else {}))

    invalid = [
        err("a preface of another major version", "4c41524445 52020a", "bad_preface", 0, "preface"),
        err("a preface of a web browser", b"GET / HT".hex(), "bad_preface", 0, "preface"),
        err("above the limit", "05000000 0e 00 0000 01000000 04abcdef00", "frame_too_large", 0, limit=4),
        err("one byte above 4 MiB", "01004000 0e 00 0000 01000000", "frame_too_large", 0, limit=4 << 20),
        err("the largest length", "ffffffff 0e 00 0000 01000000", "frame_too_large", 0, limit=4 << 20),
        err("a flag", "03000000 0e 01 0000 01000000 02abcd", "bad_frame", 5),
        err("every flag", "03000000 0e ff 0000 01000000 02abcd", "bad_frame", 5),
        err("a zero field that is not", "03000000 0e 00 0001 01000000 02abcd", "bad_frame", 6),
        err("a request with the id 0", "03000000 0e 00 0000 00000000 02abcd", "bad_frame", 8),
        err("a second frame with a flag", ready + "00000000 03 80 0000 00000000", "bad_frame", 17),
        err("a cut header, more is needed", "03000000 0e 00 0000 010000", "truncated", 0),
        err("a cut body, more is needed", "03000000 0e 00 0000 01000000 02ab", "truncated", 0),
        err("a cut second frame, more is needed", ready + "0300", "truncated", 12),
    ]
    return {"about": "Frames, SPEC.md sections 1 and 2: bytes as they come, under the `limit` in force. `truncated` means "
                     "that a decoder waits for more.", "valid": valid, "invalid": invalid}


STORED = {"kind": 1, "seq": 300, "first_seq": 7, "saved_at": TIME, "changed_at": TIME + 1000, "origin": 2,
          "record": MATRIX_HEX}
WRITTEN = {name: 200 * number for number, name in enumerate(WRITTEN_COUNTS)}
ENDED = {name: number for number, name in enumerate(ENDED_COUNTS, start=1)}
SAVE = {"verb": 1, "mode": 3, "options": 0, "kind": 1, "known": 33, "body": MATRIX_HEX}


def _valid() -> List[Tuple[str, str, Dict[str, Any]]]:
    hello = {"version_min": 1, "version_max": 1, "name": "csv-import", "version": "1.0", "required": [], "optional": [],
             "deadline": 0, "token": ""}
    subscribe = {"start": 2, "types": 3, "kinds": [], "except": 0, "flags": 0, "condition": "", "credit": 1 << 20}
    run = {"first_seq": 7, "time": TIME, "entries": (_created(7, 7) + _created(9, 7)).hex()}
    return [
        ("HELLO", "", hello),
        ("HELLO", "with capabilities, deadline and token", {
            **hello, "version_max": 3, "required": ["a"], "optional": ["b", "c"], "deadline": 30_000,
            "token": "00ff10"}),
        ("WELCOME", "", {"version": 1, "host": "larder", "host_version": "0.1.0", "capabilities": [], "epoch": EPOCH,
                         "last_seq": 1234, "floor": 1, "record_limit": 1 << 20, "batch_limit": 4 << 20,
                         "frame_limit": 4 << 20, "open_requests_limit": 64, "credit_limit": 16 << 20}),
        ("REGISTER", "", {"roles": 6, "events": 3, "kinds": [], "condition": "", "commands": []}),
        ("REGISTER", "an importer", {"roles": 1, "events": 0, "kinds": ["title", "book"], "condition": "",
                                     "commands": ["import"]}),
        ("REGISTERED", "", {"name": "mirror", "settings": [{"name": "path", "value": "\"out.jsonl\""},
                                                           {"name": "every", "value": "5"}]}),
        ("READY", "", {}),
        ("BEGIN_IMPORT", "", {"source": "watched.csv", "token": "2024-01"}),
        ("BEGIN_IMPORT", "without token", {"source": "trending", "token": ""}),
        ("IMPORT_BEGUN", "", {"origin": 2, "last_batch": 0, "resumed": 0}),
        ("IMPORT_BEGUN", "resumed", {"origin": 300, "last_batch": 17, "resumed": 1}),
        ("END_IMPORT", "", {"origin": 2, "outcome": 1, **ENDED}),
        ("IMPORT_ENDED", "", {"seq": 1234}),
        ("WRITE", "", {"flags": 0, "origin": 2, "batch": 1, "operations": [SAVE]}),
        ("WRITE", "every operation and option", {"flags": 7, "origin": 0, "batch": 0, "operations": [
            {**SAVE, "mode": 1, "options": 4, "unless_exists": 14}, {**SAVE, "mode": 2, "options": 3, "if_seq": 300},
            {**SAVE, "options": 15, "if_seq": 0, "unless_exists": 14, "unset": [5, 300]},
            {**SAVE, "mode": 4}, {"verb": 2, "mode": 0, "options": 0, "kind": 1, "known": 0, "body": KEY_HEX}]}),
        ("WRITE", "moves and restores", {"flags": 5, "origin": 0, "batch": 0, "operations": [
            {"verb": 3, "mode": 0, "options": 0, "kind": 1, "known": 33, "old_key": KEY_HEX, "body": MATRIX_HEX},
            {"verb": 3, "mode": 0, "options": 7, "kind": 1, "known": 33, "if_seq": 300, "unless_exists": 14,
             "old_key": "", "body": MATRIX_HEX},
            {"verb": 4, "mode": 0, "options": 0, "kind": 1, "known": 0, "first_seq": 7, "saved_at": TIME,
             "body": MATRIX_HEX},
            {"verb": 4, "mode": 0, "options": 7, "kind": 1, "known": 0, "if_seq": 0, "unless_exists": 14,
             "first_seq": 2**64 - 1, "saved_at": -1, "body": ""}]}),
        ("WRITE", "a delete bound to a seq", {"flags": 2, "origin": 0, "batch": 0, "operations": [
            {"verb": 2, "mode": 0, "options": 3, "kind": 1, "known": 0, "if_seq": 300, "body": KEY_HEX}]}),
        ("WRITTEN", "", {"flags": 0, "seq": 1234, **WRITTEN, "refusals": []}),
        ("WRITTEN", "with refusals and results", {
            "flags": 1, "seq": 1234, **dict.fromkeys(WRITTEN_COUNTS, 0), "created": 1, "refused": 1,
            "refusals": [{"position": 1, "error": 16, "field": 1, "offset": 2, "reason": "blank"}],
            "results": [{"outcome": 0, "seq": 1234, "key": "00112233445566778899aabbccddeeff"},
                        {"outcome": 7, "seq": 0, "key": ""}]}),
        ("GET", "", {"kind": 1, "key": KEY_HEX}), ("RECORD", "", {"record": STORED}),
        ("LIST", "", {"kind": 0, "flags": 0, "limit": 100, "bytes_limit": 0, "token": "", "condition": "", "order": 0}),
        ("LIST", "reverse, a later page", {"kind": 1, "flags": 1, "limit": 10_000, "bytes_limit": 65_536,
                                           "token": "0102", "condition": "", "order": 0}),
        ("LIST", "by condition, in the order of a field", {
            "kind": 300, "flags": 0, "limit": 1, "bytes_limit": 0, "token": "", "condition": "title contains \"매\"",
            "order": 256}),
        ("PAGE", "", {"is_end": 0, "token": "0102", "records": [STORED, {**STORED, "saved_at": -1}]}),
        ("PAGE", "empty", {"is_end": 1, "token": "", "records": []}),
        ("COUNT", "", {"kind": 1, "condition": "", "group": 0}),
        ("COUNT", "by condition and group", {"kind": 1, "condition": "watched exists", "group": 130}),
        ("COUNTED", "", {"counts": [{"kind": 1, "records": 1000}, {"kind": 2, "records": 0}], "groups": []}),
        ("COUNTED", "with groups", {"counts": [{"kind": 1, "records": 1000}], "groups": [
            {"present": 1, "value": "02", "records": 700}, {"present": 0, "value": "", "records": 200},
            {"present": 1, "value": "", "records": 100}]}),
        ("FIND", "", {"kind": 1, "field": 14, "value": "09" + b"tt0133093".hex(), "limit": 1000}),
        ("FOUND", "", {"is_end": 1, "records": [STORED]}), ("FOUND", "nothing", {"is_end": 1, "records": []}),
        ("FOUND", "more than asked for", {"is_end": 0, "records": [STORED, {**STORED, "kind": 300}]}),
        ("SEARCH", "", {"kind": 0, "query": "the 매트릭스", "limit": 1000, "token": ""}),
        ("SEARCH", "a query of 256 bytes, a later page", {"kind": 1, "query": "a" * 256, "limit": 1, "token": "0900"}),
        ("MATCHES", "", {"is_end": 0, "token": "0900", "matches": [{"rank": 0, "record": STORED},
                                                                   {"rank": 300, "record": STORED}]}),
        ("MATCHES", "nothing", {"is_end": 1, "token": "", "matches": []}),
        ("HISTORY", "", {"kind": 1, "key": KEY_HEX, "limit": 1000}),
        ("HISTORY_IS", "", {"runs": [{"first_seq": 6, "time": TIME + 5, "entries": _created(9, 6).hex()},
                                     {"first_seq": 7, "time": TIME, "entries": _created(7, 7).hex()}]}),
        ("HISTORY_IS", "nothing", {"runs": []}),
        ("ENTRIES", "", {"seqs": [7]}), ("ENTRIES", "in any order", {"seqs": [300, 7, 2**64 - 1, 7]}),
        ("ENTRIES", "of 1000 seqs", {"seqs": list(range(1, 1001))}),
        ("ENTRIES_ARE", "", {"runs": [{"first_seq": 7, "time": TIME, "entries": _created(7, 7).hex()},
                                      {"first_seq": 6, "time": -1, "entries": _created(9, 6).hex()}]}),
        ("ENTRIES_ARE", "nothing", {"runs": []}),
        ("DEFINE", "", {"declaration": {**SAMPLE, "number": 0, "version": 0}}),
        ("DEFINE", "a version of a kind", {"declaration": {**shipped()[2], "version": 2}}),
        ("DEFINE", "a version that the library gives", {"declaration": {**shipped()[2], "version": 0}}),
        ("DEFINED", "", {"number": 64, "version": 1, "is_changed": 1}),
        ("DEFINED", "unchanged", {"number": 2**31 - 1, "version": 2**31 - 1, "is_changed": 0}),
        ("CLEAR", "", {"kind": 0}), ("PROGRESS", "", {"done": 1000, "total": 10_000}),
        ("CLEARED", "", {"deleted": 10_000, "seq": 20_000}),
        ("COMPACT", "", {"history_since": 0, "dead_share": 0, "flags": 1, "wait": 0, "rate": 0, "purged": []}),
        ("COMPACT", "that compresses", {"history_since": 0, "dead_share": 10, "flags": 3, "wait": 0, "rate": 0, "purged": []}),
        ("COMPACT", "that unpacks", {"history_since": 0, "dead_share": 10, "flags": 4, "wait": 0, "rate": 0, "purged": []}),
        ("COMPACT", "a purge", {"history_since": 2**63 - 1, "dead_share": 100, "flags": 0, "wait": 60_000,
                                "rate": 2**63 - 1, "purged": [{"kind": 1, "key": KEY_HEX}, {"kind": 300, "key": ""}]}),
        ("COMPACT", "with history since before 1970", {"history_since": -1, "dead_share": 30, "flags": 0, "wait": 0,
                                                       "rate": 32 << 20, "purged": []}),
        ("COMPACTED", "", {"bytes_before": 432_013_312, "bytes_after": 101_711_872, "segments": 7, "rewritten": 6,
                           "dropped": 1_204_332, "aside_removed": 0, "subscriptions_ended": 1, "floor": 1_300_000,
                           "history_since": TIME}),
        ("KINDS", "", {}), ("KIND_LIST", "", {"kinds": [*shipped(), SAMPLE]}), ("KIND_LIST", "empty", {"kinds": []}),
        ("ORIGINS", "", {"after": 0, "limit": 1000}),
        ("ORIGIN_LIST", "", {"origins": [{"number": 1, "name": "csv-import", "token": "", "time": TIME},
                                         {"number": 2, "name": "csv-import", "token": "2024-01", "time": TIME}]}),
        ("SUBSCRIBE", "from now", subscribe),
        ("SUBSCRIBE", "after a cursor", {**subscribe, "start": 1, "epoch": EPOCH, "seq": 1234, "types": 63,
                                         "kinds": [1, 64], "except": 2}),
        ("SUBSCRIBE", "snapshot then follow", {**subscribe, "start": 3, "credit": 0}),
        ("SUBSCRIBE", "a snapshot resumed", {**subscribe, "start": 4, "epoch": EPOCH, "seq": 7, "s0": 1234,
                                             "flags": 1, "condition": "rating > 8"}),
        ("SUBSCRIBED", "", {"epoch": EPOCH, "after": 1234, "s0": 0, "floor": 1}),
        ("EVENTS", "", {"after": 6, "through": 20, "runs": [run]}),
        ("EVENTS", "two runs", {"after": 6, "through": 20, "runs": [run, {
            "first_seq": 20, "time": TIME - 5, "entries": _created(20, 20).hex()}]}),
        ("EVENTS", "the heartbeat", {"after": 20, "through": 21, "runs": []}),
        ("SNAPSHOT_END", "", {"s1": 1234}), ("LOST", "", {"after": 20, "through": 30}),
        ("CREDIT", "", {"bytes": 524_288}), ("SYNC", "", {"subscription": 5}), ("SYNCED", "", {"through": 1234}),
        ("UNSUBSCRIBE", "", {"subscription": 5}), ("UNSUBSCRIBED", "", {"through": 1234}),
        ("PING", "", {"bytes": "abcd"}), ("PING", "of 64 bytes", {"bytes": "55" * 64}), ("PONG", "", {"bytes": ""}),
        ("CANCEL", "", {}), ("STATUS", "", {}),
        ("STATUS_IS", "", {
            "state": "serving", "reason": "", "mode": 1, "pid": 4321, "version": "0.1.0", "library": "/srv/library",
            "socket": "/run/larder.sock", "epoch": EPOCH, "last_seq": 1234, "floor": 1, "started": TIME,
            "segments": 2, "log_bytes": 70_000_000, "counts": [{"kind": 1, "records": 1000}],
            "sessions": [{"id": 1, "name": "mirror", "version": "1.0", "roles": 2, "events": 3, "pid": 99,
                          "subscriptions": 1, "lag": 300}],
            "plugins": [{"name": "mirror", "state": "ready", "pid": 99, "restarts": 0, "last_error": ""}],
            "reclaimable": 30_000_000}),
        ("STATUS_IS", "of a host that opens its library", {
            "state": "recovering", "reason": "recovering 37 %", "mode": 2, "pid": 4321, "version": "0.1.0",
            "library": "/srv/library", "socket": "/run/larder.sock", "epoch": EPOCH, "last_seq": 0, "floor": 0,
            "started": TIME, "segments": 0, "log_bytes": 0, "counts": [], "sessions": [], "plugins": [], "reclaimable": 0}),
        ("PLUGIN", "", {"name": "mirror", "action": 2}), ("PLUGIN_DONE", "", {"state": "stopped"}),
        ("GIVE_WAY", "", {}), ("GIVING_WAY", "", {}),
        ("GOODBYE", "", {"error": 0, "reason": ""}), ("GOODBYE_HOST", "", {"error": 40, "reason": "stopping"}),
        ("ERROR", "", {"error": 31, "flags": 0, "place": 0, "field": "", "message": "the cursor is too old",
                       "facts": [{"name": "epoch", "value": "9b1f00c2a4d3e5f6"}, {"name": "floor", "value": "7"},
                                 {"name": "last", "value": "1234"}]}),
        ("ERROR", "about a field", {"error": 16, "flags": 2, "place": 4, "field": "source", "message": "", "facts": []}),
    ]


#: Hand-made invalid bodies: message, name, hex, error, offset.
_INVALID = [
    ("HELLO", "without a name", "01 01 00 0131 00 00 00 00", "bad_message", 2),
    ("HELLO", "a name of 65 bytes", "01 01 41" + "61" * 65 + "0131 00 00 00 00", "bad_message", 2),
    ("HELLO", "a list of a lying count", "01 01 0161 0131 ff7f 00 00 00", "bad_message", 6),
    ("HELLO", "a version that is not the shortest", "8100 01 0161 0131 00 00 00 00", "not_canonical", 0),
    ("HELLO", "a name that is not UTF-8", "01 01 01ff 0131 00 00 00 00", "bad_text", 2),
    ("REGISTER", "an unknown role", "08 00 00 00 00", "bad_message", 0),
    ("REGISTER", "an unknown event", "01 04 00 00 00", "bad_message", 1),
    ("BEGIN_IMPORT", "a token of 65 bytes", "0161 41" + "61" * 65, "bad_message", 2),
    ("IMPORT_BEGUN", "resumed by 2", "02 00 02", "bad_message", 2),
    ("END_IMPORT", "the outcome 0", "02 00" + "00" * 8, "bad_message", 1),
    ("END_IMPORT", "the outcome 4", "02 04" + "00" * 8, "bad_message", 1),
    ("WRITE", "no operation", "00 00 00 00", "bad_message", 3),
    ("WRITE", "an unknown flag", "08 00 00 01 01 03 00 01 21 00", "bad_message", 0),
    ("WRITE", "an operation 0", "00 00 00 01 00 00 00 01 00 00", "bad_message", 4),
    ("WRITE", "an unknown operation", "00 00 00 01 05 00 00 01 00 00", "bad_message", 4),
    ("WRITE", "a move with a mode", "00 00 00 01 03 02 00 01 21 00 00", "bad_message", 4),
    ("WRITE", "a restore with a mode", "00 00 00 01 04 03 00 01 00 07 00 00", "bad_message", 4),
    ("WRITE", "unset in a move", "00 00 00 01 03 00 08 01 21 0104 00 00", "bad_message", 4),
    ("WRITE", "unset in a restore", "00 00 00 01 04 00 08 01 00 0104 07 00 00", "bad_message", 4),
    ("WRITE", "unless_exists in a delete", "00 00 00 01 02 00 04 01 00 0e 00", "bad_message", 4),
    ("WRITE", "known in a delete", "00 00 00 01 02 00 00 01 21 00", "bad_message", 8),
    ("WRITE", "known in a restore", "00 00 00 01 04 00 00 01 21 07 00 00", "bad_message", 8),
    ("WRITE", "a restore to the first seq 0", "00 00 00 01 04 00 00 01 00 00 00 00", "bad_message", 9),
    ("WRITE", "an old key that is cut", "00 00 00 01 03 00 00 01 21 05 0107", "bad_message", 9),
    ("WRITE", "a move without a record", "00 00 00 01 03 00 00 01 21 01 07", "bad_message", 11),
    ("WRITE", "a saved time that is not the shortest", "00 00 00 01 04 00 00 01 00 07 8000 00", "not_canonical", 10),
    ("WRITE", "a save without a mode", "00 00 00 01 01 00 00 01 21 00", "bad_message", 4),
    ("WRITE", "a mode 5", "00 00 00 01 01 05 00 01 21 00", "bad_message", 5),
    ("WRITE", "a delete with a mode", "00 00 00 01 02 01 00 01 00 00", "bad_message", 4),
    ("WRITE", "an unknown option", "00 00 00 01 01 03 10 01 21 00", "bad_message", 6),
    ("WRITE", "unset in a replace", "00 00 00 01 01 02 08 01 21 0104 00", "bad_message", 4),
    ("WRITE", "an operation count that lies", "00 00 00 7f 01 03 00 01 21 00", "bad_message", 3),
    ("WRITE", "a record that is cut", "00 00 00 01 01 03 00 01 21 05 0107", "bad_message", 9),
    ("WRITTEN", "an unknown flag", "02" + "00" * 16 + "00", "bad_message", 0),
    ("WRITTEN", "an outcome 8", "01" + "00" * 16 + "00" + "01 08" + "00" * 9, "bad_message", 19),
    ("LIST", "a limit of 0", "00 00 00 00 00 00 00", "bad_message", 2),
    ("LIST", "a limit of 10001", "00 00 914e 00 00 00 00", "bad_message", 2),
    ("LIST", "an unknown flag", "00 02 01 00 00 00 00", "bad_message", 1),
    ("LIST", "a condition that is not UTF-8", "00 00 01 00 00 01ff 00", "bad_text", 5),
    ("LIST", "a condition with U+0000", "00 00 01 00 00 0100 00", "bad_text", 5),
    ("LIST", "without condition and order", "00 00 01 00 00", "bad_message", 5),
    ("COUNT", "without condition and group", "01", "bad_message", 1),
    ("COUNTED", "a group that is and is not there", "00 01 02 00 01", "bad_message", 2),
    ("COUNTED", "an absent value that has bytes", "00 01 00 0102 01", "bad_message", 3),
    ("COUNTED", "a count of groups that lies", "00 7f 00 00 01", "bad_message", 1),
    ("FIND", "a limit of 0", "01 0e 00 00", "bad_message", 3),
    ("FIND", "a limit of 1001", "01 0e 00 e907", "bad_message", 3),
    ("FOUND", "an end of 2", "02 00", "bad_message", 0),
    ("SEARCH", "an empty query", "00 00 01 00", "bad_message", 1),
    ("SEARCH", "a query of white space", "00 04 20e38080 01 00", "bad_message", 1),
    ("SEARCH", "a query of 257 bytes", "00 8102" + "61" * 257 + "01 00", "bad_message", 1),
    ("SEARCH", "a query that is not UTF-8", "00 01ff 01 00", "bad_text", 1),
    ("SEARCH", "a limit of 0", "00 0161 00 00", "bad_message", 3),
    ("SEARCH", "a limit of 1001", "00 0161 e907 00", "bad_message", 3),
    ("MATCHES", "an end of 2", "02 00 00", "bad_message", 0),
    ("HISTORY", "a limit of 0", "01 00 00", "bad_message", 2),
    ("HISTORY", "a limit of 1001", "01 00 e907", "bad_message", 2),
    ("HISTORY_IS", "a run of two entries", "07" + "00" * 15 + "04000000" + "01000100", "bad_message", 20),
    ("HISTORY_IS", "a run longer than the body", "07" + "00" * 15 + "05000000" + "03010203", "bad_message", 16),
    ("ENTRIES", "no seq", "00", "bad_message", 0),
    ("ENTRIES", "1001 seqs", "e907" + "01" * 1001, "bad_message", 0),
    ("ENTRIES", "a count that lies", "7f 01", "bad_message", 0),
    ("ENTRIES_ARE", "an entry longer than its run", "07" + "00" * 15 + "03000000" + "030102", "bad_message", 20),
    ("ENTRIES_ARE", "a run of nothing", "07" + "00" * 15 + "00000000", "bad_message", 16),
    ("DEFINE", "a number above 2^31 - 1", "8080808008 016b 01 01 01 01 0161 05 01 00", "bad_message", 0),
    ("DEFINE", "a kind without a key", "00 016b 00 00 01 01 0161 05 01 00", "bad_message", 4),
    ("DEFINE", "a key that is not required", "00 016b 00 01 01 01 0161 05 00 00", "bad_message", 6),
    ("DEFINED", "changed by 2", "40 01 02", "bad_message", 2),
    ("COMPACT", "a dead share of 101", "00" * 8 + "65 00 00 00 00", "bad_message", 8),
    ("COMPACT", "an unknown flag", "00" * 8 + "00 08 00 00 00", "bad_message", 9),
    ("COMPACT", "compressed and not", "00" * 8 + "00 06 00 00 00", "bad_message", 9),
    ("COMPACT", "a count of keys that lies", "00" * 8 + "00 00 00 00 03 01 00", "bad_message", 12),
    ("COMPACT", "1001 keys", "00" * 8 + "00 00 00 00 e907" + "0100" * 1_001, "bad_message", 12),
    ("COMPACT", "a key that is cut", "00" * 8 + "00 00 00 00 01 01 02 07", "bad_message", 14),
    ("PAGE", "an end of 2", "02 00 00", "bad_message", 0),
    ("KINDS", "a body", "01", "bad_message", 0),
    ("KIND_LIST", "a kind numbered 0", "01 00 016b 01 01 01 01 0161 04 01 00", "bad_message", 1),
    ("ORIGINS", "a limit of 0", "00 00", "bad_message", 1),
    ("SUBSCRIBE", "a start of 0", "00 03 00 00 00 00 00", "bad_message", 0),
    ("SUBSCRIBE", "a start of 5", "05 03 00 00 00 00 00", "bad_message", 0),
    ("SUBSCRIBE", "an unknown type", "02 40 00 00 00 00 00", "bad_message", 1),
    ("SUBSCRIBE", "an unknown flag", "02 03 00 00 02 00 00", "bad_message", 4),
    ("SUBSCRIBE", "after a cursor without its seq", "01" + "f6e5d3a4c2001f9b" + "0000", "bad_message", 9),
    ("EVENTS", "a run longer than the body", "00" * 16 + "07" + "00" * 15 + "05000000" + "01020304", "bad_message", 32),
    ("EVENTS", "a cut run header", "00" * 16 + "07" + "00" * 7, "bad_message", 24),
    ("PING", "65 bytes", "41" + "00" * 65, "bad_message", 0),
    ("PONG", "65 bytes", "41" + "00" * 65, "bad_message", 0),
    ("STATUS_IS", "the mode 3", "00 00 03", "bad_message", 2),
    ("PLUGIN", "an action 5", "0161 05", "bad_message", 2),
    ("ERROR", "an unknown flag", "01 04 00 00 00 00", "bad_message", 1),
]


def message_vectors() -> Dict[str, Any]:
    valid: List[Vector] = []
    invalid: List[Vector] = []
    seen = set()
    for message, name, value in _valid():
        number = BY_NAME[message].number
        shown_name = message.partition("_HOST")[0]  # both sides' GOODBYE go by one name
        vector: Vector = {"name": f"{message} {name}".strip(), "message": shown_name, "type": number, "hex": "",
                          "value": value}
        vector["hex"] = encode_message(vector).hex()
        valid.append(vector)
        if message in seen:
            continue
        seen.add(message)
        data = bytes.fromhex(vector["hex"])
        if data:
            try:
                BY_NAME[message].decode(data[:-1])
            except DecodeError as error:
                assert error.name == "bad_message", f"{message}: {error}"
                invalid.append(bad(f"{message} cut by a byte", data[:-1].hex(), "bad_message", error.offset,
                                   message=shown_name, type=number))
        else:
            invalid.append(bad(f"{message} with a body of two bytes", "0001", "bad_message", 0, message=shown_name,
                               type=number))
        if message in ("EVENTS", "HISTORY_IS", "ENTRIES_ARE"):  # what follows is the next run
            invalid.append(bad(f"{message} with a trailing byte", vector["hex"] + "00", "bad_message", len(data),
                               message=shown_name, type=number))
        else:
            invalid.append(bad(f"{message} with a trailing byte", vector["hex"] + "00", "bad_message", len(data),
                               message=shown_name, type=number))
    assert seen == set(BY_NAME), set(BY_NAME) - seen
    for message, name, hexes, error_name, offset in _INVALID:
        invalid.append(bad(f"{message} {name}", hexes, error_name, offset, message=message,
                           type=BY_NAME[message].number))
    # WRITE of one merge: flags, origin, batch, count; save, merge, options, kind, known, 25 bytes of record
    assert next(v for v in valid if v["name"] == "WRITE")["hex"] == "00020101" + "0103000121" + "19" + MATRIX_HEX
    assert encode_frame(0x0E, 1, b"\x02\xab\xcd").hex() == "030000000e0000000100000002abcd"
    return {"about": "Message bodies, SPEC.md section 5, without their frames.",
            "valid": valid, "invalid": invalid}


def documents() -> Dict[str, Dict[str, Any]]:
    return {"frames": frame_vectors(), "messages": message_vectors()}
