"""verify, inspect, salvage, backup and restore on the real program, beside running hosts and under kill -9."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from harness import READER, TITLE, HostCase, delete, list_all, program, save, title, title_key

PAGE = 4096


class FilesCase(HostCase):
    def path(self, name):
        return os.path.join(self.directory, name)

    def environment(self, **more):
        return {**os.environ, "XDG_RUNTIME_DIR": self.directory, "LARDER_SOCKET": "", "NO_COLOR": "1", **more}

    def larder(self, *words, code=0, library="library", socket=None):
        """Runs a command; gives its output, which with --json are dicts."""
        command = [program(), "--library", self.path(library), *words]
        if socket:
            command[1:1] = ["--socket", socket]
        run = subprocess.run(command, capture_output=True, env=self.environment(), timeout=300)
        self.assertEqual(run.returncode, code, (words, run.stderr.decode(), run.stdout.decode()[:2000]))
        if "--json" in words:
            return [json.loads(line) for line in run.stdout.splitlines()]
        return run.stdout.decode() + run.stderr.decode()

    def verified(self, library="library", code=0):
        return self.larder("verify", "--json", library=library, code=code)

    def reader(self, library, *words, code=0):
        run = subprocess.run([sys.executable, READER, self.path(library), *words], capture_output=True, timeout=600)
        self.assertEqual(run.returncode, code, run.stderr.decode() + run.stdout.decode()[:2000])
        return [json.loads(line) for line in run.stdout.splitlines()]

    def filled(self, count=300):
        """A closed library of titles: several commits, some deleted."""
        host = self.host()
        with host.wire() as wire:
            for first in range(0, count, 50):
                wire.saved([save(title(1 + n, f"Film {n}")) for n in range(first, first + 50)])
            wire.saved([delete(title_key(7)), delete(title_key(8))])
            wire.saved([save(title(1, "Film again"))])
        self.assertEqual(host.stop(), 0)
        return host

    def spoil(self, offset, library="library", bit=4, number=1):
        path = os.path.join(self.path(library), "log", f"{number:08}.seg")
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ bit]))

    def tree(self, name):
        found = {}
        for directory, _, files in os.walk(self.path(name)):
            for file in files:
                path = os.path.join(directory, file)
                with open(path, "rb") as content:
                    found[os.path.relpath(path, self.path(name))] = content.read()
        return found


class VerifyTests(FilesCase):
    def test_a_sound_library_is_sound_and_untouched_and_the_reader_agrees(self):
        self.filled()
        before = self.tree("library")
        done = self.verified()[-1]["done"]
        self.assertTrue(done["sound"])
        self.assertEqual(done["records"], len(self.reader("library")))
        self.assertEqual(done["entries"], len(self.reader("library", "--entries")))
        self.assertIn("sound", self.larder("verify", "--verbose"))
        self.assertEqual(self.tree("library"), before)

    def test_damage_is_named_with_its_seqs_and_exits_with_1(self):
        self.filled()
        blocks = [line for line in self.larder("inspect", "1", "--json") if "commits" in line]
        block = blocks[2]
        self.spoil(block["offset"] + 9)
        lines = self.verified(code=1)
        damage = next(line for line in lines if "damage" in line)
        self.assertEqual((damage["damage"], damage["segment"], damage["offset"]), ("bad_header", 1, block["offset"]))
        first = block["commits"][0]["first_seq"]
        self.assertEqual((damage["lost_from"], damage["lost_to"]), (first, blocks[3]["commits"][0]["first_seq"] - 1))
        self.assertIn(f"lost seqs {first} to", self.larder("verify", code=1))
        shown = self.larder("inspect", f"1:{block['offset']}")
        self.assertIn("no block: the header does not check", shown)

    def test_what_is_no_library_exits_with_2(self):
        self.larder("verify", code=2)
        os.makedirs(self.path("library"))
        self.larder("verify", code=2)
        self.filled(50)
        with open(os.path.join(self.path("library"), "larder"), "r+b") as file:
            file.seek(8)
            file.write(b"\x07")
        for words in (["verify"], ["upgrade"], ["backup", self.path("backup")], ["salvage", self.path("new")], ["inspect"]):
            text = self.larder(*words, code=2)
            self.assertIn("format 7", text)
            self.assertIn("up to 1", text)

    def test_beside_a_host_under_writes_it_finds_no_damage(self):
        host = self.host()
        stop, saved = threading.Event(), [0]

        def write():
            with host.wire("writer") as wire:
                while not stop.is_set():
                    wire.saved([save(title(saved[0] + k, "x" * self.random.randrange(2000))) for k in range(1, 21)])
                    # A pace: what a quick machine would write, the plain reader takes minutes to check.
                    time.sleep(0.005)
                    saved[0] += 20

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(8):
                done = self.verified()[-1]["done"]
                self.assertTrue(done["sound"])
        finally:
            stop.set()
            writer.join()
        self.assertGreater(saved[0], 100)
        self.assertLives(host)


class InspectTests(FilesCase):
    def test_segments_blocks_entries_and_a_seq(self):
        self.filled()
        segments = self.larder("inspect", "--json")
        entries = self.reader("library", "--entries")
        self.assertEqual(sum(line["entries"] for line in segments), len(entries))
        blocks = self.larder("inspect", "1", "--json")
        self.assertEqual(sum(block["bytes"] for block in blocks if "commits" in block), sum(line["bytes"] for line in segments))
        shown = []
        for block in blocks:
            # Any offset inside will do.
            [whole] = self.larder("inspect", f"1:{block['offset'] + 77}", "--json")
            shown += whole["entries"]
        self.assertEqual([entry["seq"] for entry in shown], [entry["seq"] for entry in entries])
        last = next(entry for entry in reversed(shown) if entry["type"] == "updated")
        [one] = self.larder("inspect", "--seq", str(last["seq"]), "--json")
        self.assertEqual((one["key"], one["record"]["title"]), ("title:test/movie/1", "Film again"))
        self.larder("inspect", "--seq", "999999", code=1)
        self.larder("inspect", "9", code=1)
        self.larder("inspect", "1:99999999", code=1)
        self.larder("inspect", "one", code=2)

    def test_any_bytes_are_shown(self):
        self.filled(100)
        path = os.path.join(self.path("library"), "log", "00000001.seg")
        good = self.tree("library")["log/00000001.seg"]
        for _ in range(25):
            data = bytearray(good)
            for _ in range(self.random.randrange(1, 300)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
            with open(path, "wb") as file:
                file.write(data[:self.random.randrange(1, len(data) + 1)])
            for words in (["inspect"], ["inspect", "1"], ["inspect", "1:0"], ["inspect", "1:4096", "--json"]):
                run = subprocess.run([program(), "--library", self.path("library"), *words], capture_output=True, timeout=60)
                self.assertIn(run.returncode, (0, 1), run.stderr)
            run = subprocess.run([program(), "--library", self.path("library"), "verify"], capture_output=True, timeout=60)
            self.assertIn(run.returncode, (0, 1), run.stderr)


class SalvageTests(FilesCase):
    def test_all_but_the_damage_is_in_the_new_library(self):
        self.filled()
        whole = {record["seq"]: record for record in self.reader("library")}
        block = [line for line in self.larder("inspect", "1", "--json") if "commits" in line][2]
        [shown] = self.larder("inspect", f"1:{block['offset']}", "--json")
        entry = shown["entries"][4]
        self.spoil(entry["offset"] + 9)
        os.remove(os.path.join(self.path("library"), "larder"))
        before = self.tree("library")
        lines = self.larder("salvage", self.path("new"), "--json", code=1)
        self.assertEqual([(line["lost_from"], line["lost_to"]) for line in lines if "damage" in line], [(entry["seq"],) * 2])
        self.assertIn("identity", lines[-1]["done"])
        self.assertEqual(self.tree("library"), before)
        del whole[entry["seq"]]
        self.assertEqual({record["seq"]: record for record in self.reader("new")}, whole)
        self.assertTrue(self.verified("new")[-1]["done"]["sound"])
        host = self.host("second", library="new")
        with host.wire() as wire:
            wire.saved([save(title(5000, "behind"))])
        self.assertEqual(host.stop(), 0)
        self.assertTrue(self.verified("new")[-1]["done"]["sound"])
        self.larder("salvage", self.path("new"), code=2)


class BackupTests(FilesCase):
    def expect_prefix(self, library, of):
        """The entries of one library are the first of another's."""
        short, long = self.reader(library, "--entries"), self.reader(of, "--entries")
        self.assertEqual(short, long[:len(short)])
        return short

    def test_a_backup_comes_back_the_same_under_a_new_epoch(self):
        host = self.filled()
        before = self.tree("library")
        self.larder("backup", self.path("backup"))
        self.assertTrue(self.larder("backup", self.path("backup"), "--check", "--json")[-1]["done"]["sound"])
        again = self.larder("backup", self.path("backup"), "--json")[-1]["done"]
        self.assertEqual((again["copied"], again["linked"]), (0, 0))
        self.assertEqual(self.tree("library"), before)
        self.larder("restore", self.path("backup"), self.path("new"))
        self.assertEqual(self.reader("new"), self.reader("library"))
        self.assertEqual(len(self.expect_prefix("new", "library")), len(self.reader("library", "--entries")))
        self.larder("restore", self.path("backup"), self.path("new"), code=2)
        host.start()
        with host.wire() as wire:
            epoch = wire.welcome["epoch"]
        host.stop()
        second = self.host("second", library="new")
        with second.wire() as wire:
            self.assertNotEqual(wire.welcome["epoch"], epoch)
            _, reply = wire.subscribe(1, epoch=epoch, seq=3)
            self.assertError(reply, "cursor_expired")

    def test_beside_a_host_under_writes_what_was_answered_is_in_it(self):
        host = self.host()
        stop, answered = threading.Event(), [0]

        def write():
            with host.wire("writer") as wire:
                n = 0
                while not stop.is_set():
                    answered[0] = wire.saved([save(title(n + k, "x" * 500)) for k in range(1, 21)])["seq"]
                    # A pace: what a quick machine would write, the plain reader takes minutes to check.
                    time.sleep(0.005)
                    n += 20

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for at in range(5):
                time.sleep(0.1)
                known = answered[0]
                done = self.larder("backup", self.path("backup"), "--json", socket=host.socket)[-1]["done"]
                self.assertGreaterEqual(done["last_seq"], known)
                self.assertTrue(self.larder("backup", self.path("backup"), "--check", "--json")[-1]["done"]["sound"])
                self.larder("restore", self.path("backup"), self.path(f"new{at}"))
        finally:
            stop.set()
            writer.join()
        self.assertEqual(host.stop(), 0)
        self.assertGreater(answered[0], 100)
        for at in range(5):
            entries = self.expect_prefix(f"new{at}", "library")
            self.assertTrue(entries)

    def test_a_backup_that_is_killed_leaves_the_one_before_or_the_new_one(self):
        host = self.filled()
        self.larder("backup", self.path("backup"))
        host.start()
        with host.wire() as wire:
            for n in range(30):
                wire.saved([save(title(2000 + 50 * n + k, "y" * 3000)) for k in range(50)])
        host.stop()
        killed = 0
        for at in range(12):
            words = [program(), "--library", self.path("library"), "backup", self.path("backup"), "--copy"]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
            time.sleep(self.random.random() * 0.15)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            self.assertTrue(self.larder("backup", self.path("backup"), "--check", "--json")[-1]["done"]["sound"])
        self.assertGreater(killed, 0)
        self.larder("backup", self.path("backup"), "--copy")
        self.assertFalse([name for name in self.tree("backup") if name.endswith(".tmp")])
        self.larder("restore", self.path("backup"), self.path("new"))
        self.assertEqual(self.reader("new"), self.reader("library"))

    def test_a_rotten_backup_is_refused_and_named(self):
        self.filled(100)
        self.larder("backup", self.path("backup"), "--copy")
        [name] = os.listdir(os.path.join(self.path("backup"), "log"))
        path = os.path.join(self.path("backup"), "log", name)
        with open(path, "r+b") as file:
            file.seek(PAGE + 100)
            file.write(b"\xff\x00\xff")
        self.assertIn(name, self.larder("backup", self.path("backup"), "--check", code=1))
        self.larder("restore", self.path("backup"), self.path("new"), code=1)
        self.assertFalse(os.path.exists(os.path.join(self.path("new"), "larder")))
        self.larder("restore", self.path("library"), self.path("new"), code=1)
        self.larder("backup", self.path("library"), code=2)

    def test_a_damaged_library_replaces_no_backup(self):
        self.filled()
        self.larder("backup", self.path("backup"), "--copy")
        before = self.tree("backup")
        self.spoil(PAGE + 9)
        self.assertIn("--damaged", self.larder("backup", self.path("backup"), code=1))
        self.assertEqual(self.tree("backup"), before)
        self.larder("backup", self.path("backup"), "--damaged", code=1)


class LateDamageTests(FilesCase):
    """Damage that no opening has seen, as a checkpoint spares it the look."""

    def large(self):
        """A closed library with a checkpoint: what lies before it is not read at the next opening."""
        host = self.host()
        with host.wire() as wire:
            for first in range(1, 3_001, 500):
                wire.saved([save(title(number, f"Film {number}", overview=f"{number} " * 400))
                            for number in range(first, first + 500)])
        self.assertEqual(host.stop(), 0)
        self.assertTrue(os.path.exists(os.path.join(host.library, "checkpoint")))
        return host

    def test_a_rotten_record_is_told_and_after_a_restart_costs_itself_alone(self):
        host = self.large()
        [entry] = self.larder("inspect", "--seq", "1500", "--json")
        rotten = title_key(int(entry["key"].rsplit("/", 1)[1]))
        self.spoil(entry["offset"] + 60)
        host.start()
        with host.wire() as wire:
            self.assertEqual(wire.call("COUNT", kind=0)["counts"][0]["records"], 3_000)
            self.assertError(wire.call("GET", kind=TITLE.number, key=rotten), "corrupt")
            self.assertIn("start the host again", wire.call("STATUS")["reason"])
            # Everything else goes on.
            wire.saved([save(title(9_999))])
        self.assertIn("serves the rest", host.log())
        self.assertEqual(host.stop(), 0)
        self.assertFalse(os.path.exists(os.path.join(host.library, "checkpoint")))
        host.start()
        self.assertIn("are damaged", host.log())
        with host.wire() as wire:
            self.assertError(wire.call("GET", kind=TITLE.number, key=rotten), "not_found")
            # One is lost, one was saved.
            self.assertEqual(len(list_all(wire)), 3_000)
            self.assertEqual(wire.call("STATUS")["reason"], "")


if __name__ == "__main__":
    unittest.main()
