"""Where a library lies: copied, moved, linked. Full disks, and libraries of others, are in test_full_disk.py."""

import os
import shutil
import subprocess
import unittest

from harness import HostCase, list_all, program, save, title

WARNING = "this library is a copy"


class PlaceCase(HostCase):
    def path(self, name):
        return os.path.join(self.directory, name)

    def saved(self, host, number):
        with host.wire() as wire:
            wire.saved([save(title(number))])
            return len(list_all(wire)), wire.call("STATUS")["epoch"]

    def larder(self, *words, library):
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.directory, "LARDER_SOCKET": ""}
        subprocess.run([program(), "--library", self.path(library), *words], check=True, capture_output=True,
                       timeout=60, env=environment)


class CopyTests(PlaceCase):
    def test_a_copy_is_served_beside_the_original_and_says_once_that_it_is_one(self):
        original = self.host()
        self.assertEqual(self.saved(original, 1)[0], 1)
        # Beside the host, as people do.
        shutil.copytree(original.library, self.path("copied"))
        copy = self.host("copy", "copied")
        (_, epoch), (count, epoch_of_copy) = self.saved(original, 2), self.saved(copy, 3)
        self.assertEqual((count, epoch_of_copy), (2, epoch))
        self.assertIn(WARNING, copy.log())
        self.assertIn(f"{epoch:016x}", copy.log())
        self.assertIn("larder restore", copy.log())
        for host in (original, copy):
            self.assertEqual(host.stop(), 0)
            host.start()
            self.assertLives(host)
        self.assertNotIn(WARNING, original.log())
        self.assertEqual(copy.log().count(WARNING), 1)

    def test_what_is_restored_of_a_copy_has_an_epoch_of_its_own_and_is_none(self):
        original = self.host()
        _, epoch = self.saved(original, 1)
        shutil.copytree(original.library, self.path("copied"))
        self.larder("backup", self.path("backup"), library="copied")
        self.larder("restore", self.path("backup"), self.path("restored"), library="copied")
        restored = self.host("restored", "restored")
        count, its_epoch = self.saved(restored, 2)
        self.assertEqual(count, 2)
        self.assertNotEqual(its_epoch, epoch)
        self.assertNotIn(WARNING, restored.log())

    def test_a_host_that_nobody_hears_leaves_the_warning_to_one_that_is(self):
        original = self.host()
        self.saved(original, 1)
        shutil.copytree(original.library, self.path("copied"))
        copy = self.host("copy", "copied", start=False).start("--transient")
        self.assertLives(copy)
        self.assertNotIn(WARNING, copy.log())
        self.assertEqual(copy.stop(), 0)
        copy.start()
        self.assertLives(copy)
        self.assertIn(WARNING, copy.log())

    def test_a_library_that_is_moved_is_no_copy(self):
        host = self.host()
        self.saved(host, 1)
        self.assertEqual(host.stop(), 0)
        os.rename(host.library, self.path("moved"))
        moved = self.host("moved", "moved")
        self.assertEqual(self.saved(moved, 2)[0], 2)
        self.assertNotIn(WARNING, moved.log())

    def test_a_note_that_says_nothing_is_made_anew(self):
        host = self.host()
        _, epoch = self.saved(host, 1)
        note = os.path.join(host.library, "place")
        for text in (b"", b"\xff" * 5000, f"{epoch ^ 1:016x} 1\n".encode()):
            self.assertEqual(host.stop(), 0)
            with open(note, "wb") as file:
                file.write(text)
            host.start()
            self.assertLives(host)
            inode = os.stat(os.path.join(host.library, "larder")).st_ino
            with open(note, "rb") as file:
                self.assertEqual(file.read(), b"%016x %d\n" % (epoch, inode))
        self.assertNotIn(WARNING, host.log())


class NameTests(PlaceCase):
    """One library under several names is one library: its lock is found under each."""

    def refused(self, host, library):
        second = self.host("second", library, start=False).start(wait=False)
        self.assertNotEqual(second.wait(), 0)
        self.assertIn(f"process {host.pid}", second.log())
        self.assertLives(host)

    def test_a_link_to_a_library_that_is_served(self):
        host = self.host()
        os.symlink(host.library, self.path("linked"))
        self.refused(host, "linked")

    def test_a_copy_that_shares_the_files_of_one_that_is_served(self):
        host = self.host()
        self.saved(host, 1)
        shutil.copytree(host.library, self.path("shared"), copy_function=os.link)
        self.refused(host, "shared")

    def test_a_library_is_served_through_a_link(self):
        os.mkdir(self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("library"))
        host = self.host()
        self.saved(host, 1)
        self.assertEqual(host.stop(), 0)
        self.assertTrue(os.path.exists(os.path.join(self.path("elsewhere"), "larder")))
        host.start()
        self.assertEqual(self.saved(host, 2)[0], 2)


if __name__ == "__main__":
    unittest.main()
