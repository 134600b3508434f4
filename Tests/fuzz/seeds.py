#!/usr/bin/env python3
"""Writes the seeds of a fuzz target into a directory: seeds.py TARGET DIRECTORY. They come from Protocol/vectors,
Protocol/kinds and Protocol/golden."""
import glob
import json
import os
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# In the order of MessageDecoders.all.
MESSAGES = """ERROR KINDS KIND_LIST REGISTER REGISTERED READY HISTORY ENTRIES HISTORY_IS ENTRIES_ARE END_IMPORT
IMPORT_ENDED LIST PAGE SUBSCRIBE SUBSCRIBED ORIGINS ORIGIN_LIST WRITTEN GET RECORD SNAPSHOT_END LOST CREDIT SYNC SYNCED
UNSUBSCRIBE UNSUBSCRIBED SEARCH MATCHES DEFINE DEFINED STATUS STATUS_IS BEGIN_IMPORT IMPORT_BEGUN COUNT COUNTED PLUGIN
PLUGIN_DONE GIVE_WAY GIVING_WAY PING PONG CANCEL HELLO WELCOME GOODBYE HOST_GOODBYE FIND FOUND CLEAR PROGRESS CLEARED
COMPACT COMPACTED WRITE EVENTS""".split()
CONDITIONS = ["title = 'The Matrix'", "runtime > 90 and (genres has 'Drama' or not language is present)",
              "release_date >= 1999 and release_date < 2000-06", "price <= 1.5e3 or name contains 'ab' and flag = true",
              "saved_at > 2024-01-01T00:00:00Z", "other = '0140' and uuid = 00000000-0000-0000-0000-000000000001",
              "colour in (red, blue) and count != -3", "name starts with 'x' or tags is absent", "seq > 5 and kind = book"]
TEXTS = ["978-89-324-1234-5", "ISBN 0-306-40615-2", "1999-03-31", "1999", "12 May 2001", "2026-01-31T08:00:00.000Z",
         "1.7976931348623157e308", "-0.0", "title:tmdb/movie/603", "00000000-0000-4000-8000-000000000001",
         "한국어 ＡＢＣ cafe\u0301", "\u1112\u1161\u11ab", "[\"a\", \"b\"]", "a|b|c", "👩‍👩‍👧 x"]
JSONS = ['{"a":[1,2.5e-3,null,true,"\\u00e9\\ud83d\\ude00"],"b":{"c":""}}', "[]", '"x"', "-0", '{"a":1,"a":2}',
         '[[[[[[[["deep"]]]]]]]]', "123456789012345678901234567890"]
LINES = ['{"id":7,"name":"Ahoj","price":1.50,"tags":["a","b"],"day":"1999-03-31"}\n{"kind":"title","source":"tmdb",'
         '"media_type":"movie","id":603,"title":"The Matrix"}\n', "id,name\n1,x\n",
         '{"kind":"book","source":"isbn","id":"9788932412345","title":"x","unknown":{"a":[]}}']


def vectors(name):
    with open(os.path.join(ROOT, "Protocol/vectors", name + ".json"), encoding="utf-8") as file:
        table = json.load(file)
    for row in table["valid"] + table["invalid"]:
        yield row, bytes.fromhex(row["hex"]) + bytes(row.get("zeros", 0))


def segments():
    for directory in sorted(glob.glob(os.path.join(ROOT, "Protocol/golden/format-1/*/"))):
        parts = []
        for path in sorted(glob.glob(os.path.join(directory, "log/*.seg"))):
            with open(path, "rb") as file:
                parts.append(file.read())
        pages = len(parts[0]) // 4096 if len(parts) > 1 else 15
        for how in (0, 1, 3, 5, 17):
            yield bytes([how, pages, 0]) + b"".join(parts[:2])
    for _, data in vectors("blocks"):
        yield bytes([1, 15, 0]) + data


def seeds(target):
    if target == "frame":
        yield from (b"LARDER\x01\n" + data for _, data in vectors("frames"))
        yield from (data for _, data in vectors("frames"))
    elif target == "message":
        for row, data in vectors("messages"):
            if row["message"] in MESSAGES:
                yield bytes([MESSAGES.index(row["message"])]) + data
    elif target == "record":
        kinds = {"title": 0, "book": 1, "joke": 2}
        for row, data in vectors("records"):
            for mode in (0, 5, 6, 7):
                yield bytes([kinds.get(row.get("kind"), 3), (len(data) + 3) // 4, 20, mode]) + data
                yield bytes([kinds.get(row.get("kind"), 3), 0, 20, mode]) + data
    elif target == "entry":
        yield from (struct.pack("<Qi", row["first_seq"], 0) + data for row, data in vectors("entries"))
    elif target == "block":
        yield from (data for _, data in vectors("blocks"))
    elif target == "segment":
        yield from segments()
    elif target == "index":
        # Changes of a file that the target makes: of its head, of counts, and of one field and another.
        for how in range(16):
            yield bytes([how])
            for at in (4, 24, 28, 32, 48, 56, 64, 72, 96, 104, 4096, 4097, 8192, 8200, 12288, 12296, 16384, 45000):
                yield bytes([how]) + struct.pack("<I", at)[:3] + bytes([4, 255, 255, 0, 0])
    elif target == "kind":
        yield from (data for _, data in vectors("kinds"))
        for path in glob.glob(os.path.join(ROOT, "Protocol/kinds/*.json")):
            with open(path, "rb") as file:
                yield file.read()
    elif target == "token":
        yield bytes([1, 0, 2]) + bytes(range(16))
        yield bytes([2, 1]) + bytes(range(20)) + b"key"
    else:
        yield from (text.encode() for text in {"condition": CONDITIONS, "json": JSONS, "line": LINES, "text": TEXTS}[target])


for at, data in enumerate(seeds(sys.argv[1])):
    with open(os.path.join(sys.argv[2], str(at)), "wb") as file:
        file.write(data)
