"""Values and records as Python programs give them."""

import datetime
import json
import random
import unittest
import uuid
from decimal import Decimal

from larder import PartialDate, decode_record, encode_record, keys, record_from_json, record_to_json
from larder.crc32c import pure_crc32c
from larder.dates import TIME_MAX, TIME_MIN, civil_from_days, days_from_civil, time_of, time_text
from larder.decimals import exact, number_text, parts_of, plain
from larder.errors import DecodeError, EncodeError
from larder.kinds import Kind
from larder.results import Cursor
from larder.varint import read_svarint, read_varint, svarint, varint

from .test_vectors import load

KINDS = {form["kind"]: Kind.from_json(form) for form in load("records")["kinds"]}
TITLE, JOKE, SAMPLE = KINDS["title"], KINDS["joke"], KINDS["sample"]
KEY = {"source": "tmdb", "media_type": "movie", "id": 603}


class PrimitiveTests(unittest.TestCase):
    def test_varints_around_every_power_of_two(self):
        for bit in range(65):
            for value in (2 ** bit - 1, 2 ** bit, 2 ** bit + 1):
                if 0 <= value < 2 ** 64:
                    self.assertEqual(read_varint(varint(value), 0), (value, len(varint(value))))
                for signed in (value, -value):
                    if -2 ** 63 <= signed < 2 ** 63:
                        self.assertEqual(read_svarint(svarint(signed), 0)[0], signed)
        for wrong in (-1, 2 ** 64):
            self.assertRaises(EncodeError, varint, wrong)

    def test_the_crc_is_castagnoli(self):
        self.assertEqual(pure_crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(pure_crc32c(b"456789", pure_crc32c(b"123")), 0xE3069283)
        self.assertEqual(pure_crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(pure_crc32c(b""), 0)


class NumberTests(unittest.TestCase):
    def test_doubles_are_their_shortest_decimal(self):
        chosen = random.Random(7)
        values = [0.0, -0.0, 0.1, 8.6, 1e300, 5e-324, 1.7976931348623157e308]
        values += [chosen.uniform(-1, 1) * 10.0 ** chosen.randint(-300, 300) for _ in range(500)]
        for value in values:
            parts = parts_of(value)
            self.assertEqual(float(plain(*parts)), value)
            self.assertEqual(float(number_text(*parts)), value)
            self.assertEqual(Decimal(number_text(*parts)), exact(*parts))
            json.loads(number_text(*parts))

    def test_integers_are_exact(self):
        for value in (0, 10, 100, 2 ** 53 + 1, 2 ** 63 - 1, -2 ** 63, 10 ** 300, 9 * 10 ** 400):
            self.assertEqual(plain(*parts_of(value)), value)

    def test_what_has_no_encoding(self):
        for value in (float("inf"), float("nan"), Decimal("NaN"), Decimal("1e401"), 2 ** 64 + 1, 10 ** 500, True, "1"):
            self.assertRaises(EncodeError, parts_of, value)


class DateTests(unittest.TestCase):
    def test_civil_days_round_trip_and_agree_with_datetime(self):
        for days in range(-4_371_953, 2_932_897, 997):
            self.assertEqual(days_from_civil(*civil_from_days(days)), days)
        for year, month, day in ((1, 1, 1), (1999, 3, 31), (2000, 2, 29), (9999, 12, 31)):
            self.assertEqual(days_from_civil(year, month, day),
                             (datetime.date(year, month, day) - datetime.date(1970, 1, 1)).days)

    def test_the_ends_of_time(self):
        self.assertEqual(time_text(TIME_MIN), "-9999-01-01T00:00:00.000Z")
        self.assertEqual(time_text(TIME_MAX), "9999-12-31T23:59:59.999Z")
        self.assertEqual(time_of(datetime.datetime(1999, 3, 31, 10, tzinfo=datetime.timezone(
            datetime.timedelta(hours=2)))), time_of("1999-03-31T08:00:00.000Z"))
        self.assertRaises(EncodeError, time_of, datetime.datetime(1999, 3, 31))

    def test_dates_from_text_and_date(self):
        self.assertEqual(PartialDate.of("1999-03"), PartialDate(1999, 3))
        self.assertEqual(PartialDate.of(datetime.date(1999, 3, 31)), PartialDate.of("1999-03-31"))
        for wrong in ("", "99", "1999-00", "1999-13", "1999-02-29", "1999-3-1", "-0000", "10000", "1999-03-31 ", 1999):
            self.assertRaises(EncodeError, PartialDate.of, wrong)


class RecordTests(unittest.TestCase):
    def test_python_values_come_back(self):
        record = {"a": "x", "when": datetime.date(1999, 3, 31), "yes": False, "amount": 0.1, "blob": b"\0",
                  "at": 5, "uid": uuid.UUID(int=3), "sort": "one", "words": ("a", "b"), "count": 9, "external": "603",
                  "last": "", "blob_name": None}
        found = decode_record(SAMPLE, encode_record(SAMPLE, record))
        expected = {**record, "when": PartialDate(1999, 3, 31), "words": ["a", "b"], "external": 603}
        del expected["blob_name"]
        self.assertEqual(found, expected)
        form = record_to_json(SAMPLE, found)
        self.assertEqual(record_from_json(SAMPLE, json.loads(json.dumps(form))), found)

    def test_what_has_no_encoding_says_where_and_why(self):
        for change, name in (({"nope": 1}, "unknown_field"), ({"source": " \u3000"}, "blank_field"),
                             ({"id": 0}, "zero_field"), ({"id": "0"}, "zero_field"), ({"id": ""}, "not_canonical"),
                             ({"id": None}, "missing_field"), ({"media_type": "song"}, "unknown_choice"),
                             ({"title": "a\0"}, "bad_text"), ({"title": "\ud800"}, "bad_text"),
                             ({"title": 5}, "bad_record"), ({"genres": "Drama"}, "bad_record"),
                             ({"vote_count": 2 ** 63}, "bad_record"), ({"adult": 1}, "bad_record"),
                             ({"overview": "x" * (1 << 20)}, "record_too_large")):
            with self.subTest(change=str(change)[:40]), self.assertRaises(EncodeError) as caught:
                encode_record(TITLE, {**KEY, **change})
            self.assertEqual(caught.exception.name, name)
            if name != "record_too_large":
                self.assertEqual(caught.exception.field, next(iter(change)))

    def test_a_record_of_exactly_1_mib(self):
        base = len(encode_record(TITLE, {**KEY, "title": "x" * 20_000}))
        data = encode_record(TITLE, {**KEY, "title": "x" * (20_000 + (1 << 20) - base)})
        self.assertEqual(len(data), 1 << 20)
        decode_record(TITLE, data)
        with self.assertRaises(DecodeError) as caught:
            decode_record(TITLE, data + b"\0")
        self.assertEqual(caught.exception.name, "record_too_large")

    def test_key_text_is_normalised(self):
        record = encode_record(TITLE, {**KEY, "source": "\u1112\u1161\u11ab"})
        self.assertEqual(keys.key_text(TITLE, keys.key_of_record(TITLE, record)), "title:\ud55c/movie/603")
        self.assertRaises(EncodeError, keys.parse_key_text, "title:a%/movie/1", KINDS.__getitem__)
        self.assertRaises(EncodeError, keys.parse_key_text, "title:a/movie", KINDS.__getitem__)

    def test_labels(self):
        self.assertEqual(TITLE.label_of({"title": " ", "name": "Lost"}), "Lost")
        self.assertIsNone(TITLE.label_of({}))

    def test_uuid_may_be_left_to_the_host(self):
        self.assertRaises(EncodeError, encode_record, JOKE, {"body": "x"})
        encode_record(JOKE, {"body": "x"}, relax="uuid")
        encode_record(TITLE, KEY, relax="partial")


class CursorTests(unittest.TestCase):
    def test_cursors_in_text(self):
        for text in ("9b1f00c2a4d3e5f6-1234", "0000000000000001-0-55"):
            self.assertEqual(str(Cursor.parse(text)), text)
        for wrong in ("", "1-2", "9b1f00c2a4d3e5f6", "9b1f00c2a4d3e5f6--1", "9b1f00c2a4d3e5f6-x"):
            self.assertRaises(EncodeError, Cursor.parse, wrong)
