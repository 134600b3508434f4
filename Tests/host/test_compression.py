"""Compressed blocks on a real host: nobody sees a difference but in the files, and where zstd is missing it is said."""

import json
import os
import subprocess
import sys
import unittest

from harness import (READER, TITLE, Follower, as_model, delete, follow, has_zstd, list_all, program, read_log, replay, save,
                     title, title_key)
from test_compaction import CompactionCase, compact, purged

COMPRESS, UNCOMPRESS = 3, 5


class CompressionCase(CompactionCase):
    def fill(self, wire, count=4_000):
        for start in range(1, count + 1, 500):
            wire.saved([save(title(number, f"Film {number}", overview=f"What happens in film {number}. " * 9))
                        for number in range(start, start + 500)])
        wire.saved([save(title(number, "again")) for number in range(1, 200)])
        wire.saved([delete(title_key(number)) for number in range(200, 400)])

    def verified(self, host):
        lines = [json.loads(line) for line in self.larder(host, "verify", "--json").splitlines()]
        return next(line["done"] for line in lines if "done" in line)

    def without_zstd(self, host):
        """An environment in which the library is not found."""
        directory = os.path.join(host.directory, "no-zstd")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "libzstd.so.1"), "wb"):
            pass
        return {"LD_LIBRARY_PATH": directory}


@unittest.skipUnless(has_zstd(), "zstd is not installed")
class CompressionTests(CompressionCase):
    def compressed(self, host):
        """A library of compressed segments; gives its records."""
        with host.wire() as wire:
            self.fill(wire)
            before = list_all(wire)
            log = [entry.identity for entry in read_log(host)]
            reply = self.assertCompacted(compact(wire, flags=COMPRESS, history_since=-(1 << 63)))
            self.assertEqual(reply["dropped"], 0)
            self.assertLess(reply["bytes_after"], reply["bytes_before"] // 3)
            self.assertEqual(list_all(wire), before)
            self.assertLessEqual(set(log), {entry.identity for entry in read_log(host)})
        self.assertGreater(self.verified(host)["compressed_blocks"], 0)
        return before

    def test_nobody_sees_a_difference(self):
        host = self.host()
        before = self.compressed(host)
        for how in ("stop", "kill", "stop"):
            getattr(host, how)()
            host.start()
            with host.wire() as wire:
                self.assertEqual(list_all(wire), before)
                self.assertEqual(list_all(wire, reverse=True), before[::-1])
                for key, (_, _, record) in self.random.sample(sorted(as_model(before).items()), 50):
                    self.assertEqual(wire.call("GET", kind=key[0], key=key[1])["record"]["record"], record)
                request_id, subscribed = wire.subscribe(3, credit=1 << 20)
                follower = Follower(subscribed)
                follow(wire, request_id, follower, lambda: follower.snapshot_end is not None)
                self.assertEqual(replay(follower.entries), as_model(before))
                wire.call("UNSUBSCRIBE", subscription=request_id)
        host.stop()
        done = subprocess.run([sys.executable, READER, host.library], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)["seq"] for line in done.stdout.splitlines()], [item["seq"] for item in before])

    def test_what_is_compressed_stays_so_until_it_is_asked_to_be_plain(self):
        host = self.host()
        before = self.compressed(host)
        with host.wire() as wire:
            wire.saved([delete(title_key(number)) for number in range(1_000, 2_000)])
            self.assertGreater(self.assertCompacted(compact(wire))["dropped"], 1_000)
        self.assertGreater(self.verified(host)["compressed_blocks"], 0)
        object = json.loads(self.larder(host, "compact", "--uncompress", "--json"))
        self.assertGreater(object["bytes_after"], object["bytes_before"])
        self.assertEqual(self.verified(host)["compressed_blocks"], 0)
        object = json.loads(self.larder(host, "compact", "--compress", "--json"))
        self.assertLess(object["bytes_after"], object["bytes_before"] // 2)
        with host.wire() as wire:
            gone = {title_key(number) for number in range(1_000, 2_000)}
            self.assertEqual(list_all(wire), [item for item in before if key_of(item) not in gone])
        self.larder(host, "compact", "--compress", "--uncompress", code=2)

    def test_backup_restore_salvage_and_inspect_take_them(self):
        host = self.host()
        before = self.compressed(host)
        copy, restored, salvaged = (os.path.join(host.directory, name) for name in ("copy", "restored", "salvaged"))
        self.larder(host, "backup", copy)
        self.larder(host, "backup", copy, "--check")
        host.stop()
        self.larder(host, "salvage", salvaged)
        self.assertIn("compressed", self.larder(host, "inspect", "1"))
        listed = [json.loads(line) for line in self.larder(host, "list", "--json").splitlines()]
        self.assertEqual([item["saved_seq"] for item in listed], [item["first_seq"] for item in before])
        subprocess.run([program(), "restore", copy, restored], check=True, capture_output=True, timeout=120)
        for library in (restored, salvaged):
            done = subprocess.run([program(), "--library", library, "list", "--json"], capture_output=True, text=True,
                                  timeout=120)
            self.assertEqual([json.loads(line)["record"] for line in done.stdout.splitlines()],
                             [item["record"] for item in listed])

    def test_a_purged_key_is_in_no_frame(self):
        host = self.host()
        self.compressed(host)
        with host.wire() as wire:
            self.assertError(compact(wire, flags=1, purged=purged(3_000)), "conflict")
            wire.saved([delete(title_key(3_000))])
            self.assertCompacted(compact(wire, flags=1, purged=purged(3_000)))
        self.assertGreater(self.verified(host)["compressed_blocks"], 0)
        # The reader shows every entry of the log with its body.
        host.stop()
        done = subprocess.run([sys.executable, READER, host.library, "--entries"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue('"title:test/movie/3001"' in done.stdout)
        self.assertFalse('"title:test/movie/3000"' in done.stdout)

    def test_a_host_compresses_what_is_old_enough(self):
        host = self.host(start=False)
        host.start("--segment", "64", "--compress-after", "0")
        with host.wire() as wire:
            # More than the 16 MiB that are worth it, in segments that are ended.
            for start in range(1, 40_001, 1_000):
                wire.saved([save(title(number, overview=f"What happens in film {number}. " * 16))
                            for number in range(start, start + 1_000)])
            status = wire.call("STATUS")
            self.assertGreater(status["log_bytes"], 18 << 20)
            self.eventually(lambda: wire.call("STATUS")["log_bytes"] < status["log_bytes"] // 2, seconds=60,
                            what="a compaction that compresses")
            self.assertEqual(wire.call("COUNT", kind=TITLE.number)["counts"][0]["records"], 40_000)

    def test_without_zstd_it_is_said_what_is_missing(self):
        host = self.host()
        before = self.compressed(host)
        for how in ("stop", "kill"):
            getattr(host, how)()
            host.start(wait=False, environment=self.without_zstd(host))
            self.assertNotEqual(host.wait(), 0)
            self.assertIn("libzstd1", host.log())
            host.start()
        host.stop()
        environment = {**os.environ, **self.without_zstd(host)}
        for words in (["verify"], ["salvage", os.path.join(host.directory, "salvaged")], ["inspect", "1"], ["list"]):
            done = subprocess.run([program(), "--library", host.library, *words], capture_output=True, text=True,
                                  timeout=60, env=environment)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("libzstd1", done.stderr, words)
        # A backup copies files as they are.
        subprocess.run([program(), "--library", host.library, "backup", os.path.join(host.directory, "copy")], check=True,
                       capture_output=True, timeout=60)
        host.start()
        with host.wire() as wire:
            self.assertEqual(list_all(wire), before)

    def test_a_host_without_zstd_refuses_to_compress_and_goes_on(self):
        host = self.host(start=False)
        host.start("--compress-after", "0", environment=self.without_zstd(host))
        self.eventually(lambda: "libzstd1" in host.log(), what="the note")
        with host.wire() as wire:
            self.fill(wire, 500)
            self.assertError(compact(wire, flags=COMPRESS), "unsupported")
            self.assertCompacted(compact(wire))
        done = subprocess.run([program(), "--library", host.library, "--socket", host.socket, "doctor"], capture_output=True,
                              text=True, timeout=60, env={**os.environ, **self.without_zstd(host)})
        self.assertIn("libzstd1", done.stdout)


def key_of(item):
    """The key of a listed title."""
    return next(iter(as_model([item])))[1]


if __name__ == "__main__":
    unittest.main()
