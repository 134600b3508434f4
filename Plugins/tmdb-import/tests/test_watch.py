"""The watched folder."""

import os
import tempfile
import unittest

import support  # noqa: F401
from tmdb.watch import Folder


class FolderTests(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "inbox")
        os.mkdir(self.path)
        self.memory = os.path.join(self.directory.name, "imported.json")

    def put(self, name, text="{}"):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_file_is_given_once_it_has_stopped_changing_and_not_again(self):
        folder = Folder(self.path, self.memory)
        self.put("a.json")
        self.assertEqual(folder.settled(), [])
        self.put("a.json", "{ }")
        self.assertEqual(folder.settled(), [])
        ready = folder.settled()
        self.assertEqual([os.path.basename(path) for path in ready], ["a.json"])
        self.assertEqual(folder.settled(), ready)
        folder.imported(ready[0])
        self.assertEqual(folder.settled(), [])

    def test_what_was_imported_is_remembered_until_it_changes(self):
        folder = Folder(self.path, self.memory)
        self.put("a.json")
        folder.settled()
        folder.imported(folder.settled()[0])
        again = Folder(self.path, self.memory)
        again.settled()
        self.assertEqual(again.settled(), [])
        self.put("a.json", "[1, 2]")
        again.settled()
        self.assertEqual(len(again.settled()), 1)

    def test_hidden_and_foreign_names_and_a_missing_folder_are_left_alone(self):
        folder = Folder(self.path, self.memory)
        self.put(".a.json")
        self.put("notes.txt")
        folder.settled()
        self.assertEqual(folder.settled(), [])
        missing = Folder(os.path.join(self.path, "none"), self.memory)
        self.assertEqual(missing.settled(), [])


if __name__ == "__main__":
    unittest.main()
