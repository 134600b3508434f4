"""The package against the shared vectors, and its strictness beyond them: every cut, every flipped bit."""

import json
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "tools")]

import make_vectors  # noqa: E402
from vectorio import CODECS, VECTORS, kinds_of, octets  # noqa: E402

from larder import keys, records  # noqa: E402
from larder.blocks import decode_block  # noqa: E402
from larder.entries import decode_entry, encode_entry  # noqa: E402
from larder.errors import DecodeError, EncodeError  # noqa: E402
from larder.kinds import Kind  # noqa: E402
from larder.messages import BY_NUMBER  # noqa: E402


def load(file):
    return json.loads((VECTORS / f"{file}.json").read_text(encoding="utf-8"))


def flips(data):
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


class VectorTests(unittest.TestCase):
    def test_every_vector_holds(self):
        self.assertEqual(sorted(CODECS), sorted(path.stem for path in VECTORS.glob("*.json")))
        for file in CODECS:
            with self.subTest(file):
                make_vectors.check(file, load(file))

    def test_the_files_are_what_their_maker_makes(self):
        for file, document in make_vectors.documents().items():
            with self.subTest(file):
                self.assertEqual((VECTORS / f"{file}.json").read_text(encoding="utf-8"), make_vectors.render(document))


class StrictnessTests(unittest.TestCase):
    def assert_strict(self, name, data, decode, encode, flip=True):
        """No cut decodes, and what a flipped bit makes is refused or encodes to the flipped bytes."""
        with self.subTest(name):
            self.assertEqual(encode(decode(data)), data)
            for count in range(len(data)):
                with self.assertRaises(DecodeError):
                    decode(data[:count])
            for changed in flips(data) if flip else ():
                try:
                    value = decode(changed)
                except DecodeError as error:
                    self.assertLessEqual(error.offset, len(changed))
                    continue
                self.assertEqual(encode(value), changed)

    def test_records(self):
        document = load("records")
        kinds = kinds_of(document)
        for vector in document["valid"]:
            kind, relax = kinds[vector["kind"]], vector.get("relax", "")
            self.assert_strict(vector["name"], octets(vector),
                               lambda data: records.decode_record(kind, data, exact=True, relax=relax),
                               lambda value: records.encode_record(kind, value, relax=relax))

    def test_keys(self):
        document = load("keys")
        kinds = kinds_of(document)
        for vector in document["valid"]:
            kind = kinds[vector["kind"]]
            self.assert_strict(vector["name"], octets(vector), lambda data: keys.decode_key(kind, data, exact=True),
                               lambda value: keys.encode_key(kind, value))
            self.assertEqual(keys.parse_key_text(vector["value"], kinds.__getitem__), (kind, octets(vector)))

    def test_kinds(self):
        for vector in load("kinds")["valid"]:
            data = octets(vector)
            self.assert_strict(vector["name"], data, Kind.decode, Kind.encode, flip=len(data) < 600)

    def test_messages(self):
        for vector in load("messages")["valid"]:
            message = BY_NUMBER[vector["type"]]
            data = octets(vector)
            if "runs" in vector["value"]:  # a cut between runs leaves a whole message
                continue
            self.assert_strict(vector["name"], data, message.decode, message.encode, flip=len(data) < 600)

    def test_entries(self):
        for vector in load("entries")["valid"]:
            first, time = vector["first_seq"], vector["time"]
            data = octets(vector)
            for verify in (True, False):
                for count in range(len(data)):
                    with self.assertRaises(DecodeError):
                        decode_entry(data[:count], first, time, verify)
            for changed in flips(data):
                with self.assertRaises(DecodeError):
                    decode_entry(changed, first, time)
                try:
                    value = decode_entry(changed, first, time, verify=False)
                except DecodeError:
                    continue
                try:
                    made = encode_entry(value, first, time)
                except EncodeError:  # a saved time beyond 64 bits
                    continue
                self.assertEqual(made[:-4], changed[:-4])

    def test_blocks(self):
        vector = load("blocks")["valid"][0]
        data, place = octets(vector), (vector["epoch"], vector["segment"], vector["at"])
        for count in (*range(300), 4095):
            with self.assertRaises(DecodeError):
                decode_block(data[:count], *place)
        used = 64 + 24 * len(vector["value"]["commits"]) + vector["value"]["stored_bytes"]  # padding is not looked at
        for changed in flips(data[:used]):
            with self.assertRaises(DecodeError):
                decode_block(changed + data[used:], *place)
