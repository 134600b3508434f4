import datetime
import unittest
import uuid

import support  # noqa: F401

from larder import PartialDate, encode_record
from larder.entries import CREATED, frame_entry, read_frame
from larder.events import Event
from larder.keys import key_of_record
from larder.kinds import Field, Kind
from larder.values import BOOL, DATE, IDENTIFIER, INT, NUMBER, TEXT, TIME, UUID

from jsonl_mirror.lines import head_bytes, head_of, identity_of_key, line_of

KEY = {"text": TEXT, "identifier": IDENTIFIER, "bool": BOOL, "int": INT, "number": NUMBER, "date": DATE, "time": TIME,
       "uuid": UUID}
KIND = Kind(64, "thing", 1, [Field(number, name, type, 1) for number, (name, type) in enumerate(KEY.items(), 1)]
            + [Field(9, "name", TEXT, 0)], 8, (9,))


def line(record, known=KIND):
    data = encode_record(KIND, record)
    entry = frame_entry(CREATED, 5, 5, b"\x40\x01" + data)
    return data, line_of(Event("created", 5, 0, 1, None, read_frame(entry, 0, len(entry), 5), entry, {64: known}))


class LineTest(unittest.TestCase):
    def record(self, **more):
        return {"text": 'a/b%"\\\n각', "identifier": "0140449132", "bool": True, "int": -3, "number": 8.20,
                "date": PartialDate(1999, 3), "time": int(datetime.datetime(2026, 1, 31).timestamp()) * 1000,
                "uuid": uuid.UUID(int=7), **more}

    def test_the_key_is_that_of_the_record_whatever_its_types(self):
        for more in ({}, {"identifier": 603, "bool": False, "number": 10 ** 22, "text": "{\t}"}, {"number": 1e-7}):
            data, found = line(self.record(**more))
            self.assertEqual(found.identity, identity_of_key(KIND, key_of_record(KIND, data)))
            self.assertEqual(head_of(found.data), (found.identity, 5))
            self.assertTrue(found.data.startswith(head_bytes(found.identity)))

    def test_a_record_of_a_later_version_is_opaque(self):
        former = Kind(64, "thing", 1, KIND.fields[:8], 8, ())
        data, found = line(self.record(name="new"), former)
        self.assertIn(b'"opaque":"%s"}\n' % data.hex().encode(), found.data)
        self.assertEqual(head_of(found.data).identity, line(self.record(name="new"))[1].identity)


if __name__ == "__main__":
    unittest.main()
