"""The package against the texts: every frame and byte dump of SPEC.md and FORMAT.md, and the two tables."""

import json
import re
import unittest

from larder.blocks import decode_block
from larder.decimals import number_text
from larder.entries import decode_body, read_frame, read_runs
from larder.errors import ERROR_NAMES
from larder.frames import PREFACE, FrameDecoder
from larder.kinds import Kind
from larder.messages import BY_NUMBER
from larder.records import decode_record, record_json_text

from .test_vectors import VECTORS

PROTOCOL = VECTORS.parent
BYTES = re.compile(r"(?:[CH] +| +)?((?:[0-9A-F]{2} )*[0-9A-F]{2})(?: {2,}|$)")


def dumps(name):
    """The bytes of each fenced block of a text that begins with some."""
    text = (PROTOCOL / name).read_text(encoding="utf-8")
    for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        found = [match[1] for match in map(BYTES.match, block.splitlines()) if match]
        if found:
            yield bytes.fromhex(" ".join(found)), block


class TextTests(unittest.TestCase):
    def test_every_frame_of_the_protocols_text_decodes_and_encodes(self):
        seen = set()
        for data, block in dumps("SPEC.md"):
            if len(data) < 12:
                continue
            with self.subTest(block.splitlines()[0]):
                if "5242880" in block:  # a frame that is too large, and the answer to it
                    data = data[12:]
                stream = data.replace(PREFACE, b"")
                decoder = FrameDecoder(4 << 20)
                for frame in decoder.feed(stream):
                    message = BY_NUMBER[frame.type]
                    if frame.type == 5 and frame.body == bytes.fromhex("0108 04746d"):  # cut on purpose
                        continue
                    fields = message.decode(frame.body)
                    self.assertEqual(message.encode(fields), frame.body)
                    seen.add(frame.type)
                    for run in read_runs(fields["runs"], 0) if message.name == "EVENTS" else ():
                        at = run.start
                        while at < run.end:
                            entry = read_frame(fields["runs"], at, run.end, run.first_seq)
                            decode_body(entry, fields["runs"], run.time)
                            at = entry.end
                self.assertEqual(decoder.buffered, 0)
        self.assertEqual(seen, set(BY_NUMBER))

    def test_the_block_of_the_formats_text(self):
        data, _ = next(dump for dump in dumps("FORMAT.md") if dump[0].startswith(b"LRDB"))
        block = decode_block(data + bytes(4096 - len(data)), 0x9B1F00C2A4D3E5F6, 1, 0)
        entries = [decode_body(entry, data) for entry in block.entries]
        self.assertEqual([entry["type"] for entry in entries], ["kind", "origin", "created"])
        kind: Kind = entries[0]["kind"]
        self.assertEqual(record_json_text(kind, decode_record(kind, entries[2]["record"])), '{"id":7,"name":"Ahoj"}')

    def test_the_tables_of_messages_and_errors(self):
        errors = json.loads((PROTOCOL / "errors.json").read_text(encoding="utf-8"))["errors"]
        self.assertEqual({item["number"]: item["name"] for item in errors}, ERROR_NAMES)
        table = json.loads((PROTOCOL / "messages.json").read_text(encoding="utf-8"))["messages"]
        self.assertEqual({item["number"] for item in table}, set(BY_NUMBER))
        by_name = {item["name"]: item["number"] for item in table}
        for item in table:
            message = BY_NUMBER[item["number"]]
            with self.subTest(message.name):
                self.assertEqual([name for name, _ in message.body.fields], [field["name"] for field in item["fields"]])
                self.assertEqual(message.name.partition("_HOST")[0], item["name"])
                self.assertEqual(message.reply or None, by_name.get(item["reply"]))
                self.assertEqual({"client": "C", "host": "H", "both": "CH"}[item["direction"]], message.direction)

    def test_numbers_as_larder_prints_them(self):
        for mantissa, exponent, text in ((603, 0, "603"), (1, 20, "100000000000000000000"), (82, -1, "8.2"),
                                         (1, -6, "0.000001"), (1, -7, "1e-7"), (15, 299, "1.5e+300"), (0, 0, "0"),
                                         (1, 21, "1e+21"), (-123, -2, "-1.23"), (2 ** 63 - 1, -19, "0.9223372036854775807")):
            self.assertEqual(number_text(mantissa, exponent), text)
