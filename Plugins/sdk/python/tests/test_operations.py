"""Operations of a batch, as bytes that were written by hand."""

import unittest

from larder import Delete, EncodeError, Move, Restore, Save
from larder.batches import Many, Operations
from larder.keys import encode_key
from larder.operations import encode_operation

from .peer import TITLE
from .scripts import KEY, KEY_BYTES, MATRIX, RAW

RECORD = bytes([len(RAW)]) + RAW
OLD_KEY = bytes([len(KEY_BYTES)]) + KEY_BYTES
KNOWN = bytes([TITLE.highest])


class OperationTests(unittest.TestCase):
    def check(self, operation, head, tail, key=b""):
        self.assertEqual(encode_operation(operation, TITLE, key), bytes.fromhex(head) + tail)

    def test_saves_in_every_mode(self):
        for number, mode in enumerate(("insert", "replace", "merge", "fill"), start=1):
            self.check(Save("title", MATRIX, mode), f"010{number}0001", KNOWN + RECORD)
            self.assertEqual(Operations(TITLE, mode).encode(MATRIX),
                             encode_operation(Save("title", MATRIX, mode), TITLE))

    def test_options_in_the_order_of_the_wire(self):
        everything = Save("title", RAW, personal=True, if_seq=300, unless_exists="imdb_id", unset=("note", "title"))
        self.check(everything, "01030f01", KNOWN + bytes.fromhex("ac02 0e 02 1c04") + RECORD)
        self.check(Save("title", RAW, if_seq=0), "01030201", KNOWN + b"\0" + RECORD)

    def test_deletes_moves_and_restores(self):
        self.check(Delete("title", KEY), "02000001", b"\0" + OLD_KEY, KEY_BYTES)
        self.check(Delete("title", KEY, if_seq=7), "02000201", b"\0\7" + OLD_KEY, KEY_BYTES)
        self.check(Move("title", MATRIX), "03000001", KNOWN + OLD_KEY + RECORD, KEY_BYTES)
        self.check(Move("title", MATRIX, personal=True, if_seq=7, unless_exists="imdb_id"), "03000701",
                   KNOWN + b"\7\x0e" + OLD_KEY + RECORD, KEY_BYTES)
        self.check(Restore("title", MATRIX, 300, -1), "04000001", bytes.fromhex("00 ac02 01") + RECORD)

    def test_what_has_no_encoding_says_why(self):
        for operation, name in ((Save("title", MATRIX, "append"), "bad_message"),
                                (Save("title", MATRIX, unless_exists="isbn"), "unknown_field"),
                                (Save("title", MATRIX, unset=("isbn",)), "unknown_field"),
                                (Save("title", MATRIX, "replace", unset=("note",)), "bad_message"),
                                (Save("title", {"isbn": 1, **KEY}), "unknown_field"),
                                (Move("title", {"title": "a"}), "missing_field"),
                                (Restore("title", MATRIX, 0, 0), "bad_message")):
            with self.subTest(operation), self.assertRaises(EncodeError) as caught:
                encode_operation(operation, TITLE, KEY_BYTES)
            self.assertEqual(caught.exception.name, name)

    def test_many_of_one_kind_have_the_same_options(self):
        many = Many("fill", personal=True, unless_exists="imdb_id")
        found = Operations(TITLE, many.mode, personal=many.personal, unless_exists=many.unless_exists).encode(MATRIX)
        self.assertEqual(found, encode_operation(
            Save("title", MATRIX, "fill", personal=True, unless_exists="imdb_id"), TITLE))
        self.assertEqual(encode_key(TITLE, KEY), KEY_BYTES)
