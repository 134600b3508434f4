"""The mirror as a program, with a host as a program: killed, stopped, started again."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import unittest

from support import PLUGIN, Host, larder_program, listed, scratch

from jsonl_mirror.lines import identity_of_key, line_of
from jsonl_mirror.scan import published
from larder import Cursor, NotFound

PROGRAM = larder_program()
REASON = "no larder program: build it or set LARDER_BIN"
if PROGRAM is None:
    print(f"tests with a host are skipped: {REASON}", file=sys.stderr)


class Running(unittest.TestCase):
    def setUp(self):
        self.directory = scratch(self)
        self.host = Host(self.directory)
        self.addCleanup(self.host.stop)
        self.path = os.path.join(self.directory, "mirror", "library.jsonl")
        self.mirror = None
        self.addCleanup(self.end)
        self.log = open(os.path.join(self.directory, "mirror.log"), "ab")
        self.addCleanup(self.log.close)

    def begin(self):
        self.mirror = subprocess.Popen([sys.executable, str(PLUGIN / "mirror.py"), "run", "--path", self.path],
                                       env={**os.environ, "LARDER_SOCKET": self.host.socket}, stderr=self.log)

    def end(self, number=signal.SIGTERM):
        if self.mirror is not None and self.mirror.poll() is None:
            self.mirror.send_signal(number)
            self.mirror.wait(60)

    def lines(self):
        mirror = published(self.path)
        if mirror is None:
            return None, {}
        try:
            return Cursor.parse(mirror.state.cursor), {json.loads(line)["key"]: line[:-1] for line in mirror.lines()}
        finally:
            mirror.close()

    def wait(self, client, seconds=60.0):
        """Until the mirror equals the library."""
        expected = listed(client)
        until = time.monotonic() + seconds
        while self.lines()[1] != expected:
            self.assertLess(time.monotonic(), until, "the mirror does not become the library")
            time.sleep(0.05)

    def as_of(self, client, cursor):
        """The library as of a cursor, out of its log."""
        model = {}
        if cursor.seq:
            subscription = client.subscribe(Cursor(cursor.epoch, 0), heartbeats=True)
            for event in subscription:
                if event.seq <= cursor.seq and event.type in ("created", "updated"):
                    line = line_of(event)
                    model[line.identity] = line.data[:-1]
                elif event.seq <= cursor.seq and event.type == "deleted":
                    model.pop(identity_of_key(event.kind, event.raw), None)
                if subscription.cursor.seq >= cursor.seq:
                    break
            subscription.unsubscribe()
        return {json.loads(identity): line for identity, line in model.items()}

    @staticmethod
    def film(chance, number):
        return {"source": "tmdb", "media_type": "movie", "id": number, "title": "새" * chance.randrange(1, 30),
                "popularity": chance.random(), "overview": "x" * chance.randrange(300)}

    def change(self, client, chance):
        client.save_many("title", [self.film(chance, chance.randrange(1, 400)) for _ in range(chance.randrange(1, 60))])
        for _ in range(chance.randrange(20)):
            try:
                client.delete("title", ["tmdb", "movie", chance.randrange(1, 400)])
            except NotFound:
                pass


@unittest.skipUnless(PROGRAM, REASON)
class KillTest(Running):
    def test_killed_anywhere_it_equals_the_library_as_of_its_cursor(self):
        seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
        chance = random.Random(seed)
        client = self.host.start()
        self.change(client, chance)
        with self.subTest(seed=seed):
            for _ in range(int(os.environ.get("ROUNDS", 8))):
                self.begin()
                until = time.monotonic() + chance.uniform(0.2, 1.8)
                while time.monotonic() < until:
                    self.change(client, chance)
                    time.sleep(chance.uniform(0, 0.1))
                self.end(signal.SIGKILL)
                cursor, lines = self.lines()
                if cursor is not None:
                    self.assertEqual(lines, self.as_of(client, cursor))
            self.begin()
            self.wait(client)
            client.clear()
            self.wait(client)
        client.close()

    def test_killed_in_a_snapshot_it_goes_on(self):
        client = self.host.start()
        chance = random.Random(1)
        client.save_many("title", (self.film(chance, number + 1) for number in range(20_000)))
        for seconds in (0.3, 0.6, 0.4):
            self.begin()
            time.sleep(seconds)
            self.end(signal.SIGKILL)
        self.begin()
        self.wait(client)
        client.close()

    def test_a_killed_host_is_followed_again(self):
        client = self.host.start()
        chance = random.Random(2)
        self.change(client, chance)
        self.begin()
        for _ in range(3):
            self.change(client, chance)
            self.host.kill()
            client.close()
            client = self.host.start()
            self.change(client, chance)
        self.wait(client)
        client.close()

    def test_another_library_behind_the_socket_means_a_new_snapshot(self):
        client = self.host.start()
        self.change(client, random.Random(3))
        self.begin()
        self.wait(client)
        client.close()
        self.host.process.terminate()
        self.host.process.wait(30)
        self.host.library += "-restored"
        client = self.host.start()
        self.change(client, random.Random(4))
        self.wait(client)
        self.assertEqual(self.lines()[0].epoch, client.welcome["epoch"])
        client.close()


@unittest.skipUnless(PROGRAM, REASON)
@unittest.skipUnless(os.environ.get("LARDER_LONG") == "1", "long: set LARDER_LONG=1")
class MillionTest(Running):
    """At 1,000,000 records: time to the snapshot, memory, and the bytes that a single change writes."""

    COUNT = int(os.environ.get("LARDER_LONG_RECORDS", 1_000_000))

    def written(self):
        with open(f"/proc/{self.mirror.pid}/io") as source:
            return int(dict(line.split(": ") for line in source.read().splitlines())["wchar"])

    def memory(self):
        with open(f"/proc/{self.mirror.pid}/status") as source:
            return int(next(line for line in source if line.startswith("RssAnon")).split()[1]) << 10

    def seq(self):
        mirror = published(self.path)
        if mirror is None:
            return -1
        mirror.close()
        return Cursor.parse(mirror.state.cursor).seq

    def until_seq(self, seq):
        begun = time.monotonic()
        while self.seq() < seq or not os.path.exists(self.path):
            self.assertLess(time.monotonic() - begun, 900)
            self.assertIsNone(self.mirror.poll())
            time.sleep(0.05)
        return time.monotonic() - begun

    def test_a_million(self):
        client = self.host.start()
        overview = "An invented overview of a film that nobody has made. " * 5
        begun = time.monotonic()
        client.save_many("title", ({"source": "tmdb", "media_type": "movie", "id": number + 1, "title": f"Film {number}",
                                    "overview": overview, "popularity": number / 7, "vote_count": number}
                                   for number in range(self.COUNT)))
        figures = {"records": self.COUNT, "import_seconds": round(time.monotonic() - begun, 1)}
        self.begin()
        figures["snapshot_seconds"] = round(self.until_seq(client.status()["last_seq"] - 1), 1)
        figures["file_bytes"] = os.path.getsize(self.path)
        figures["rss_anon_per_record"] = round(self.memory() / self.COUNT, 1)
        changes = 20
        before = self.written()
        for number in range(changes):
            seq = client.save("title", {"source": "tmdb", "media_type": "movie", "id": number * (self.COUNT // changes) + 1,
                                        "title": "another"}).seq
            self.until_seq(seq)
        figures["bytes_written_per_change"] = (self.written() - before) // changes
        self.end()
        self.begin()
        begun = time.monotonic()
        seq = client.delete("title", ["tmdb", "movie", 2]).seq
        self.until_seq(seq)
        figures["restart_seconds"] = round(time.monotonic() - begun, 1)
        figures["rss_anon_per_record_after_restart"] = round(self.memory() / self.COUNT, 1)
        self.end()
        cursor, lines = self.lines()
        expected = listed(client)
        self.assertEqual(len(lines), self.COUNT - 1)
        self.assertTrue(lines == expected)
        figures["test_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        print("\n" + json.dumps(figures), file=sys.stderr)
        self.assertLess(figures["bytes_written_per_change"], 4096)
        client.close()


if __name__ == "__main__":
    unittest.main()
