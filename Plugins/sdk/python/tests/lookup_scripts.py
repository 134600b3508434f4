"""Scripts of lookups and batches for both clients, and what the two must give."""

from larder import Delete, Move, Restore, Save
from larder.batches import write_body
from larder.entries import frame_entry
from larder.kinds import Kind
from larder.operations import encode_operation

from .peer import TITLE, created, frame, greeting, kinds, run, written
from .scripts import KEY, KEY_BYTES, MATRIX, RAW, STORED, ends

WHERE = 'title contains "matrix"'
NUMBER = {item.name: item.number for item in TITLE.fields}


def listing(request_id, **more):
    return frame("LIST", request_id, {"kind": 1, "flags": 1, "limit": 1, "condition": WHERE,
                                      "order": NUMBER["vote_average"], **more})


def page(request_id, is_end, token=b"", records=(STORED,)):
    return frame("PAGE", request_id, {"is_end": is_end, "token": token, "records": list(records)})


def search(request_id, token=b""):
    return frame("SEARCH", request_id, {"kind": 0, "query": "the matrix", "limit": 1, "token": token})


READING = [
    *greeting(), *kinds(2),
    ("expect", listing(3)), ("send", page(3, 0, b"t")), ("expect", listing(4, token=b"t")), ("send", page(4, 1)),
    ("expect", frame("COUNT", 5, {"kind": 1, "condition": WHERE})),
    ("send", frame("COUNTED", 5, {"counts": [{"kind": 1, "records": 7}]})),
    ("expect", frame("COUNT", 6, {"kind": 1, "condition": "", "group": NUMBER["media_type"]})),
    ("send", frame("COUNTED", 6, {"counts": [{"kind": 1, "records": 9}], "groups": [
        {"present": 1, "value": b"\1", "records": 5}, {"present": 0, "value": b"", "records": 4}]})),
    ("expect", frame("COUNT", 7, {"kind": 1, "condition": "", "group": NUMBER["genres"]})),
    ("send", frame("COUNTED", 7, {"counts": [], "groups": [{"present": 1, "value": b"\5Drama", "records": 2}]})),
    ("expect", frame("FIND", 8, {"kind": 1, "field": 14, "value": b"\3tt1", "limit": 2})),
    ("send", frame("FOUND", 8, {"is_end": 0, "records": [STORED, STORED]})),
    ("expect", search(9)),
    ("send", frame("MATCHES", 9, {"is_end": 0, "token": b"u", "matches": [{"rank": 0, "record": STORED}]})),
    ("expect", search(10, b"u")),
    ("send", frame("MATCHES", 10, {"is_end": 1, "token": b"", "matches": [{"rank": 5, "record": STORED}]})),
    ("expect", listing(11)), ("send", frame("ERROR", 11, {"error": 34, "place": 7, "message": "no such field"})),
    *ends(),
]

DELETED = frame_entry(3, 9, 8, b"\0\1\2\1\2" + KEY_BYTES)
HISTORY = [
    *greeting(), *kinds(2),
    ("expect", frame("HISTORY", 3, {"kind": 1, "key": KEY_BYTES, "limit": 1000})),
    ("send", frame("HISTORY_IS", 3, {"runs": run(8, 2_000, DELETED) + run(7, 1_000, created(7, 7, RAW))})),
    # The frame has room for one; then one is gone; then one is left, and the seqs of the next thousand with it.
    ("expect", frame("ENTRIES", 4, {"seqs": [7, 8, *range(9, 1007)]})),
    ("send", frame("ENTRIES_ARE", 4, {"runs": run(7, 1_000, created(7, 7, RAW))})),
    ("expect", frame("ENTRIES", 5, {"seqs": [8, *range(9, 1008)]})),
    ("send", frame("ENTRIES_ARE", 5, {"runs": run(1007, 5, created(1007, 1007, RAW))})),
    ("expect", frame("ENTRIES", 6, {"seqs": [1008]})), ("send", frame("ENTRIES_ARE", 6, {"runs": b""})),
    *ends(),
]
HISTORY_SEEN = [("deleted", 9, 2_000, "title:tmdb/movie/603"), ("created", 7, 1_000, "title:tmdb/movie/603")]
ENTRIES_ASKED, ENTRIES_SEEN = range(7, 1009), [7, 1007]

GAME = {"kind": "game", "key": ["id"], "label": ["title"], "fields": [
    {"number": 1, "name": "id", "type": "identifier", "required": True},
    {"number": 2, "name": "title", "type": "text", "indexed": True}]}
DEFINING = [
    *greeting(), ("expect", frame("DEFINE", 2, {"declaration": Kind.from_json(GAME)})),
    ("send", frame("DEFINED", 2, {"number": 64, "version": 1, "is_changed": 1})),
    ("expect", frame("KINDS", 3)),
    ("send", frame("KIND_LIST", 3, {"kinds": [TITLE, Kind.from_json({**GAME, "number": 64, "version": 1})]})),
    ("expect", frame("DEFINE", 4, {"declaration": Kind.from_json(GAME)})),
    ("send", frame("ERROR", 4, {"error": 43, "message": "field 2 is missing"})), *ends(),
]

OPERATIONS = [Save("title", MATRIX, personal=True, unset=["note"]), Delete("title:tmdb/movie/603", if_seq=7),
              Move("title", MATRIX, old_key=KEY), Restore("title", MATRIX, 7, 1_000)]


def write(request_id, operations, flags):
    keys = [b"" if isinstance(item, (Save, Restore)) else KEY_BYTES for item in operations]
    return frame("WRITE", request_id, body=write_body(
        [encode_operation(item, TITLE, key) for item, key in zip(operations, keys)], 0, 0, flags))


WRITING = [
    *greeting(), *kinds(2), ("expect", write(3, OPERATIONS, 5)),
    written(3, seq=14, updated=2, deleted=1, created=1, results=[
        {"outcome": 1, "seq": 10, "key": b""}, {"outcome": 6, "seq": 11, "key": b""},
        {"outcome": 1, "seq": 13, "key": b""}, {"outcome": 0, "seq": 14, "key": b""}]),
    ("expect", write(4, OPERATIONS[1:2], 6)),
    written(4, seq=14, refused=1, refusals=[{"position": 0, "error": 26, "field": 0, "offset": 0, "reason": "14"}],
            results=[{"outcome": 7, "seq": 14, "key": b""}]),
    ("expect", write(5, OPERATIONS, 5)),
    ("send", frame("ERROR", 5, {"error": 25, "place": 3, "message": "operation 3: no record has the key"})),
    ("expect", write(6, [Save("title", MATRIX, "insert", if_seq=0, unless_exists="imdb_id")], 6)),
    written(6, seq=14, already_saved=1, results=[{"outcome": 4, "seq": 12, "key": b""}]),
    ("expect", write(7, [Delete("title", KEY, if_seq=3)], 4)),
    written(7, seq=14, refused=1, refusals=[{"position": 0, "error": 26, "field": 0, "offset": 0, "reason": "14"}],
            results=[{"outcome": 7, "seq": 14, "key": b""}]),
    ("expect", write(8, [Save("title", MATRIX, "merge", personal=True)], 2)), written(8, created=1),
    *ends(),
]
