"""Tests of the independent reader. The writer below is the tests' own; it shares nothing with the reader."""
import contextlib
import io
import json
import os
import struct
import tempfile
import unittest

import read_library
from read_library import Library, main
from values import Bad, Bytes, Field, Raw, date, dump, is_plain_decimal, number, time

EPOCH, NOW = 0x9B1F00C2A4D3E5F6, 1769846400000              # 2026-01-31T08:00:00.000Z


def crc(data):
    """Bit by bit, so that it is no twin of the reader's table."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 * (value & 1))
    return value ^ 0xFFFFFFFF


def v(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def s(n):
    return v(2 * n if n >= 0 else -2 * n - 1)


def t(text):
    data = text.encode()
    return v(len(data)) + data


def entry(first, seq, type, body):
    inside = bytes([type]) + v(seq - first) + body
    data = v(len(inside) + 4) + inside
    return data + struct.pack("<I", crc(struct.pack("<Q", seq) + data))


def block(segment, offset, commits, flags=0, synced=(1, 0), epoch=EPOCH, pad=4096):
    """commits: lists of (seq, type, body); every commit's first seq is its first entry's."""
    table, payload, count = b"", b"", 0
    for commit in commits:
        first = commit[0][0]
        data = b"".join(entry(first, *item) for item in commit)
        table += struct.pack("<QqII", first, NOW + first, len(commit), len(data))
        payload, count = payload + data, count + len(commit)
    size = -(-(64 + len(table) + len(payload)) // pad) * pad
    head = struct.pack("<4sBBHQIIIIIIIIQI", b"LRDB", 1, flags, len(commits), epoch, segment, offset, size, len(payload),
                       len(payload), count, *synced, 0, 0)
    data = head + struct.pack("<I", crc(head + table)) + table + payload
    return data + bytes(size - len(data))


def identity(epoch=EPOCH, form=1):
    data = struct.pack("<8sII16sQ16sq", b"LARDERLB", form, 0, bytes(range(16)), epoch, bytes(16), NOW) + bytes(60)
    return data + struct.pack("<I", crc(data))


def field(number, name, type, constraints=0, values=()):
    data = v(number) + t(name) + bytes([type]) + v(constraints)
    return data + v(len(values)) + b"".join(v(i + 1) + t(n) for i, n in enumerate(values)) if type == 10 else data


KIND = (v(64) + t("item") + v(1) + v(2) + v(5) + field(1, "source", 4, 1) + field(2, "id", 5, 1) + field(3, "name", 4)
        + field(4, "price", 3) + field(5, "tags", 11) + v(1) + v(3))


def record(id, name):
    return b"\x01\x07" + t("a/b") + v(2 * id) + t(name)


def created(seq, id, name):
    return seq, 1, v(64) + v(1) + record(id, name)


DECLARED = [(1, 16, KIND), (2, 17, v(1) + t("writer") + t(""))]


class LibraryTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = self.directory.name
        os.mkdir(os.path.join(self.path, "log"))
        self.put("larder", identity())

    def put(self, name, data):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(data)

    def segment(self, *parts, number=1):
        self.put(f"log/{number:08d}.seg", b"".join(parts))

    def names(self):
        self.library = Library(self.path)
        return [r["record"]["name"] for r in self.library.records()]

    def run_main(self, *options):
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([self.path, *options])
        out.flush()
        return code, out.buffer.getvalue().decode(), err.getvalue()

    def assert_clean(self):
        self.assertEqual((self.library.damage, self.library.notes), ([], []))

    def test_a_good_library_is_listed_in_saved_order(self):
        self.segment(
            block(1, 0, [DECLARED + [created(3, 1, "하나"), created(4, 2, "two"), created(5, 3, "three")]]),
            block(1, 4096, [[
                (6, 2, v(0) + v(64) + v(1) + v(3) + s(-3) + v(3) + b"\x01\x04" + record(1, "uno\u2028\n")),
                (7, 3, v(0) + v(64) + v(1) + v(3) + v(3) + t("a/b") + v(4))]], synced=(1, 4096)))
        self.assertEqual(self.names(), ["uno\u2028\n", "three"])
        self.assert_clean()
        code, out, _ = self.run_main()
        self.assertEqual(code, 0)
        self.assertEqual(out.split("\n")[0], (
            '{"kind":"item","key":"item:a%2Fb/1","seq":6,"saved_seq":3,"saved_at":"2026-01-31T08:00:00.003Z",'
            '"changed_at":"2026-01-31T08:00:00.006Z","origin":1,'
            '"record":{"source":"a/b","id":1,"name":"uno\u2028\\n"}}'))

    def test_an_empty_library_and_an_empty_last_segment_have_no_records(self):
        self.assertEqual(self.names(), [])
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]))
        self.segment(number=2)
        self.assertEqual(self.names(), ["one"])
        self.assert_clean()

    def test_a_torn_tail_is_ignored_at_every_cut(self):
        first, second = block(1, 0, [DECLARED + [created(3, 1, "one")]]), block(1, 4096, [[created(4, 2, "two")]])
        for cut in [1, 4, 63, 64, 87, 88, 100, 120]:
            self.segment(first, second[:cut])
            self.assertEqual(self.names(), ["one"])
            self.assertEqual(self.library.damage, [])
            self.assertIn("offset 4096: a torn tail", self.library.notes[0])
        self.assertEqual(self.run_main("--check")[0], 0)

    def test_what_lies_behind_an_unsynced_tear_is_ignored_too(self):
        torn = bytearray(block(1, 4096, [[created(4, 2, "two")]]))
        torn[100] ^= 1
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), torn, block(1, 8192, [[created(5, 3, "three")]]))
        self.segment(block(2, 0, [[created(6, 4, "four")]]), number=2)
        self.assertEqual(self.names(), ["one"])
        self.assertEqual(len(self.library.notes), 1)

    def test_a_corrupt_entry_below_the_synced_position_costs_only_itself(self):
        middle = bytearray(block(1, 4096, [[created(4, 2, "two"), created(5, 3, "three"), created(6, 4, "four")]]))
        middle[middle.index(b"three")] ^= 0x20
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), middle,
                     block(1, 8192, [[created(7, 5, "five")]], synced=(1, 8192)))
        self.assertEqual(self.names(), ["one", "two", "four", "five"])
        self.assertEqual(len(self.library.damage), 1)
        self.assertIn("seqs lost: 5 to 5", self.library.damage[0])
        code, out, _ = self.run_main("--check")
        self.assertEqual(code, 1)
        self.assertIn("log/00000001.seg, offset 42", out)

    def test_a_corrupt_header_costs_its_block_and_the_walk_goes_on_at_the_next(self):
        middle = bytearray(block(1, 4096, [[created(4, 2, "two")]]))
        middle[16] ^= 1
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), middle)
        self.segment(block(2, 0, [[created(9, 3, "three")]], synced=(1, 8192)), number=2)
        self.assertEqual(self.names(), ["one", "three"])
        self.assertIn("seqs lost: 4 to 8", self.library.damage[0])

    def test_every_single_bit_flip_in_a_synced_block_is_noticed(self):
        good = block(1, 0, [DECLARED + [created(3, 1, "one")]])
        tail = block(1, 4096, [[created(4, 2, "two")]], synced=(1, 4096))
        used = len(block(1, 0, [DECLARED + [created(3, 1, "one")]], pad=1))        # padding is not checked
        for bit in range(0, used * 8, 7):
            broken = bytearray(good)
            broken[bit // 8] ^= 1 << bit % 8
            self.segment(broken, tail)
            self.names()
            self.assertTrue(self.library.damage, f"bit {bit}")

    def test_two_commits_in_a_block_have_their_own_seqs_and_times(self):
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")], [created(10, 2, "two"), created(12, 3, "three")]]))
        self.assertEqual(self.names(), ["one", "two", "three"])
        self.assert_clean()
        self.assertEqual([e.seq for e in self.library.entries], [1, 2, 3, 10, 12])
        self.assertEqual([e.time - NOW for e in self.library.entries], [1, 1, 1, 10, 10])

    def test_a_finished_run_counts_across_a_segments_end(self):
        self.segment(block(1, 0, [DECLARED]), block(1, 4096, [[created(3, 1, "one")]], flags=1))
        self.segment(block(2, 0, [[created(4, 2, "two")]], flags=3),
                     block(2, 4096, [[created(5, 3, "three")]], flags=2), number=2)
        self.assertEqual(self.names(), ["one", "two", "three"])
        self.assert_clean()

    def test_a_run_that_is_cut_off_does_not_count(self):
        self.segment(block(1, 0, [DECLARED]), block(1, 4096, [[created(3, 1, "one")]], flags=1),
                     block(1, 8192, [[created(4, 2, "two")]], flags=3, synced=(1, 8192)))
        self.assertEqual(self.names(), [])
        self.assertEqual(self.library.damage, [])
        self.assertIn("offset 4096: a run that was not finished", self.library.notes[0])

    def test_a_run_before_a_torn_end_does_not_count(self):
        self.segment(block(1, 0, [DECLARED]), block(1, 4096, [[created(3, 1, "one")]], flags=1),
                     block(1, 8192, [[created(4, 2, "two")]], flags=2)[:90])
        self.assertEqual(self.names(), [])
        self.assertEqual(len(self.library.notes), 2)

    def test_a_run_whose_middle_is_damaged_still_counts(self):
        middle = bytearray(block(1, 8192, [[created(4, 2, "two")]], flags=3))
        middle[60] ^= 1
        self.segment(block(1, 0, [DECLARED]), block(1, 4096, [[created(3, 1, "one")]], flags=1), middle,
                     block(1, 12288, [[created(5, 3, "three")]], flags=2, synced=(1, 12288)))
        self.assertEqual(self.names(), ["one", "three"])
        self.assertEqual(len(self.library.damage), 1)

    def test_a_zero_tail_is_room_laid_out_ahead(self):
        first = block(1, 0, [DECLARED + [created(3, 1, "one")]])
        for room in [1, 63, 64, 4096, 20000]:
            self.segment(first, bytes(room))
            self.assertEqual(self.names(), ["one"])
            self.assert_clean()

    def test_zeros_where_synced_blocks_were_are_damage(self):
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), bytes(4096))
        self.segment(block(2, 0, [[created(5, 2, "two")]], synced=(1, 8192)), number=2)
        self.assertEqual(self.names(), ["one", "two"])
        self.assertEqual(len(self.library.damage), 1)

    def test_a_block_of_another_epoch_is_misplaced(self):
        stray = block(1, 4096, [[created(4, 2, "two")]], epoch=EPOCH + 1)
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), stray)
        self.assertEqual(self.names(), ["one"])
        self.assertIn("misplaced", self.library.notes[0])
        self.segment(block(1, 0, [DECLARED + [created(3, 1, "one")]]), stray,
                     block(1, 8192, [[created(5, 3, "three")]], synced=(1, 8192)))
        self.assertEqual(self.names(), ["one", "three"])
        self.assertIn("misplaced", self.library.damage[0])

    def repacked(self, number=1, first=1, flags=(8, 8 | 16)):
        """A segment of two blocks as compaction writes them; each names its own position as synced."""
        declared = DECLARED if first == 1 else []
        one = block(number, 0, [declared + [created(first + 2, first, "one")]], flags[0], (number, 0))
        two = block(number, 4096, [[created(first + 5, first + 1, "two")], [created(first + 8, first + 2, "three")]],
                    flags[1], (number, 4096))
        self.segment(one, two, number=number)
        return one, two

    def test_a_repacked_segment_is_read_like_any_other(self):
        self.repacked()
        self.segment(block(2, 0, [[(10, 22, v(10))], [created(11, 9, "four")]], 0, (2, 0)), number=2)
        self.assertEqual(self.names(), ["one", "two", "three", "four"])
        self.assert_clean()
        self.assertEqual(self.library.floor, 10)

    def test_a_repacked_segment_without_its_end_is_damage_at_any_cut(self):
        one, two = self.repacked()
        self.segment(block(2, 0, [[created(20, 9, "four")]], 0, (2, 0)), number=2)
        for keep, names in [(len(one), ["one", "four"]), (len(one) + 100, ["one", "four"]),
                            (len(one) + len(two) - 4096 + 200, ["one", "four"])]:
            self.segment((one + two)[:keep])
            self.assertEqual(self.names()[0], names[0])
            self.assertEqual(self.names()[-1], names[-1])
            self.assertTrue(self.library.damage)
            self.assertIn("to 19", self.library.damage[-1])

    def test_the_end_of_a_repacked_segment_is_missed_where_the_flag_is_gone_too(self):
        self.repacked(flags=(8, 8))
        self.segment(block(2, 0, [[created(20, 9, "four")]], 0, (2, 0)), number=2)
        self.assertEqual(self.names(), ["one", "two", "three", "four"])
        self.assertEqual(len(self.library.damage), 1)
        self.assertIn("without its end; seqs lost: 10 to 19", self.library.damage[0])

    def test_a_run_whose_flags_are_at_a_repacked_border_counts(self):
        self.repacked(flags=(8, 8 | 16 | 1))
        self.segment(block(2, 0, [[created(20, 9, "four")]], 8 | 16 | 2, (2, 0)), number=2)
        self.segment(block(3, 0, [[created(21, 10, "five")]], 0, (3, 0)), number=3)
        self.assertEqual(self.names(), ["one", "two", "three", "four", "five"])
        self.assert_clean()

    def test_unknown_entry_types_are_skipped(self):
        self.segment(block(1, 0, [DECLARED + [(3, 200, b"later"), created(4, 1, "one")]]))
        self.assertEqual(self.names(), ["one"])
        self.assert_clean()
        lines = [json.loads(line) for line in self.run_main("--entries")[1].splitlines()]
        self.assertEqual([line["type"] for line in lines], ["kind", "origin", 200, "created"])

    def test_a_record_that_was_deleted_and_saved_again_is_new(self):
        self.segment(block(1, 0, [DECLARED + [
            created(3, 1, "one"), created(4, 2, "two"), (5, 3, v(0) + v(64) + v(1) + v(2) + v(2) + t("a/b") + v(2)),
            created(6, 1, "again")]]))
        self.assertEqual(self.names(), ["two", "again"])

    def test_a_field_that_is_not_declared_makes_the_record_opaque(self):
        self.segment(block(1, 0, [DECLARED + [(3, 1, v(64) + v(1) + b"\x01\x83" + t("a") + v(2) + b"??")]]))
        self.assertEqual(Library(self.path).records()[0]["opaque"], "01830161023f3f")

    def test_a_newer_format_or_a_broken_identity_is_refused(self):
        self.put("larder", identity(form=2))
        with self.assertRaisesRegex(Bad, "format is 2, this reader's is 1"):
            Library(self.path)
        self.put("larder", identity()[:-1] + b"\0")
        self.assertEqual(self.run_main()[0], 2)

    def test_the_boundary_sizes_are_legal(self):
        body = v(64) + v(1) + b"\x01\x07" + t("a/b") + v(2)
        room = (1 << 20) - (2 + 4 + 1 + 3)                  # bitmap, source, id, a text's length of 3 bytes
        name = "x" * room
        big = block(1, 4096, [[(3, 1, body + t(name))]])
        self.assertEqual(len(body + t(name)) - 2, 1 << 20)
        self.segment(block(1, 0, [DECLARED]), big)
        self.assertEqual(self.names(), [name])
        self.assert_clean()
        short = 4096 - len(block(1, 0, [DECLARED + [created(3, 1, "")]], pad=1)) - 2   # both lengths grow by a byte
        exact = block(1, 0, [DECLARED + [created(3, 1, "y" * short)]])
        self.assertEqual(len(exact), 4096)
        self.assertNotEqual(exact[-4:], bytes(4))
        self.segment(exact)
        self.assertEqual(len(self.names()[0]), short)


class ValueTest(unittest.TestCase):
    def test_the_check_value_of_the_crc(self):
        self.assertEqual(read_library.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc(b"123456789"), 0xE3069283)

    def test_numbers_are_printed_as_ecmascript_prints_them(self):
        for text, pair in {"0": (0, 0), "603": (603, 0), "100000000000000000000": (1, 20), "1e+21": (1, 21),
                           "0.000001": (1, -6), "1e-7": (1, -7), "1.5e-7": (15, -8), "8.2": (82, -1),
                           "-0.125": (-125, -3), "123456789012345680000": (12345678901234568, 4),
                           "1.7976931348623157e+308": (17976931348623157, 292), "5e-324": (5, -324)}.items():
            self.assertEqual(number(*pair), text)

    def test_dates_and_times_keep_their_precision(self):
        self.assertEqual(date(831711), "1999-03-31")
        self.assertEqual(date((1999 * 13 + 3) * 32), "1999-03")
        self.assertEqual(date(1999 * 13 * 32), "1999")
        self.assertEqual(date((-44 * 13 + 3) * 32 + 15), "-0044-03-15")
        self.assertEqual(date(0), "0000")
        for bad in [(2023 * 13 + 2) * 32 + 29, 1999 * 13 * 32 + 1, 10000 * 13 * 32]:
            self.assertRaises(Bad, date, bad)
        self.assertEqual(time(0), "1970-01-01T00:00:00.000Z")
        self.assertEqual(time(-377705116800000), "-9999-01-01T00:00:00.000Z")
        self.assertEqual(time(253402300799999), "9999-12-31T23:59:59.999Z")
        self.assertRaises(Bad, time, 253402300800000)

    def test_a_value_has_one_encoding(self):
        def value(type, data, constraints=0):
            b = Bytes(data)
            out = Field(Bytes(field(1, "f", type, constraints, ["x"]))).value(b)
            b.finish()
            return out
        self.assertEqual(value(5, v(1206)), 603)
        self.assertEqual(value(5, v(21) + b"0140449132"), "0140449132")
        self.assertEqual(value(2, s(-2 ** 63)), -2 ** 63)
        self.assertEqual(value(9, bytes(range(16))), "00010203-0405-0607-0809-0a0b0c0d0e0f")
        self.assertEqual(value(10, v(1)), "x")
        self.assertEqual(value(11, v(0)), [])
        self.assertEqual(value(6, v(2) + b"\xff\x00"), "/wA=")
        for type, data in [(1, b"\x02"), (2, b"\x80\x00"), (2, b"\xff" * 9 + b"\x02"), (3, s(10) + s(0)),
                           (3, s(0) + s(1)), (3, s(1) + s(401)), (4, b"\x02\xc0\x80"), (4, b"\x01\x00"),
                           (4, b"\x03\xed\xa0\x80"), (5, v(7) + b"603"), (5, v(1)), (9, bytes(15)), (10, v(2)),
                           (11, v(3)), (1, b"")]:
            with self.assertRaises(Bad, msg=f"{type} {data.hex()}"):
                value(type, data)
        for type, data, constraints in [(4, t(" \u3000"), 2), (5, v(0), 4), (2, s(0), 4)]:
            with self.assertRaises(Bad):
                value(type, data, constraints)

    def test_plain_decimals(self):
        self.assertTrue(all(map(is_plain_decimal, ["0", "603", str(2 ** 63 - 1)])))
        self.assertFalse(any(map(is_plain_decimal, ["", "-1", "01", "1e3", str(2 ** 63), "٣", "1 "])))

    def test_json_is_compact_and_keeps_what_is_not_ascii(self):
        self.assertEqual(dump({"a": ["한", True, None, Raw("1e-7")], "b": "\x01\x7f\"\\/\u2028"}),
                         '{"a":["한",true,null,1e-7],"b":"\\u0001\x7f\\"\\\\/\u2028"}')


if __name__ == "__main__":
    unittest.main()
