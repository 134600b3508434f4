"""The golden libraries of Protocol/golden: what is read from a copy must be what their manifests say."""
import glob
import os
import re
import shutil
import struct
import tempfile
import unittest

from read_library import Library, crc32c
from values import Bad, time

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Protocol", "golden", "format-1")


class GoldenTest(unittest.TestCase):
    def copy(self, name):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return shutil.copytree(os.path.join(GOLDEN, name), os.path.join(directory.name, name))

    def test_every_golden_library_is_read_as_its_manifest_says(self):
        names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(GOLDEN, "*")))
        self.assertEqual(names, ["all-entries", "compacted", "compressed", "damaged-block", "segments-and-run", "torn-tail"])
        for name in names:
            with self.subTest(name):
                self.check(name)

    def check(self, name):
        path = self.copy(name)
        library = Library(path)
        with open(os.path.join(path, "manifest"), encoding="utf-8") as file:
            rows = [line.split() for line in file]
        bodies = {entry.seq: entry.body.hex() for entry in library.entries}
        wanted = [row[1:] for row in rows if row[0] == "record"]
        records = library.records()
        self.assertEqual(len(records), len(wanted))
        for record, (_, seq, saved_seq, saved_at, changed_at, origin, data) in zip(records, wanted):
            self.assertEqual(
                (record["seq"], record["saved_seq"], record["saved_at"], record["changed_at"], record["origin"]),
                (int(seq), int(saved_seq), time(int(saved_at)), time(int(changed_at)), int(origin)))
            self.assertTrue(bodies[int(seq)].endswith(data))
        lost = []
        for text in library.damage:
            found = re.search(r"seqs lost: (\d+) to (\d+)", text)
            if found:
                lost.append([str(int(found[1]) - 1), found[2]])
        self.assertEqual(lost, [row[1:] for row in rows if row[0] == "lost"])
        undeclared = [re.search(r"kind (\d+) was not declared", text) for text in library.damage]
        self.assertEqual([found[1] for found in undeclared if found], [row[1] for row in rows if row[0] == "undeclared"])
        self.assertEqual(len(library.notes), sum(row[0] == "cut" for row in rows))
        self.assertEqual([["entries", str(len(library.entries))]], [row for row in rows if row[0] == "entries"])

    def test_format_2_is_refused_with_both_numbers(self):
        path = self.copy("all-entries")
        for name, at, crc_at, head in [("log/00000001.seg", 4, 60, 88), ("larder", 8, 124, 124)]:
            with open(os.path.join(path, name), "r+b") as file:
                data = bytearray(file.read())
                data[at] = 2
                data[crc_at:crc_at + 4] = struct.pack("<I", crc32c(data[:min(crc_at, head)], data[crc_at + 4:head]))
                file.seek(0)
                file.write(data)
            with self.assertRaisesRegex(Bad, "format.* 2, this reader's is 1"):
                Library(path)


if __name__ == "__main__":
    unittest.main()
