"""Compaction and purge on a real host: records stay as they are, history goes or stays as asked, those who follow the log
lose nothing, and what was purged is in no file."""

import json
import os
import subprocess
import threading
import time

from harness import (BOOK, JOKE, TITLE, Follower, HostCase, as_model, delete, follow, joke, larder, list_all, program, read_log,
                     read_runs, replay, save, title, title_key, write_body)

NONE = (1 << 63) - 1
ALL = -(1 << 63)
SECRET = "zyzzyva-quokka-7731"


def compact(wire, **fields):
    """COMPACT of everything, and its final reply."""
    return wire.call("COMPACT", **{"history_since": NONE, "dead_share": 0, "flags": 1, "rate": NONE, **fields})


def purged(*numbers):
    return [{"kind": TITLE.number, "key": title_key(number)} for number in numbers]


class CompactionCase(HostCase):
    def larder(self, host, *words, code=0):
        done = subprocess.run([program(), "--library", host.library, "--socket", host.socket, *words], input="",
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def assertCompacted(self, frame):
        self.assertEqual(frame.name, "COMPACTED", frame)
        return frame

    def files_with(self, host, *needles):
        """The library's files that hold one of some bytes."""
        found = []
        for directory, _, names in os.walk(host.library):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    data = file.read()
                found += [path for needle in needles if needle in data]
        return found

    def log_bytes(self, host):
        with host.wire() as wire:
            return wire.call("STATUS")["log_bytes"]

    def churn(self, wire, count=2_000, rounds=5):
        """Saves, changes and deletes; what is left is what the model says."""
        for at in range(rounds):
            for start in range(1, count + 1, 500):
                wire.saved([save(title(number, f"Film {number}, round {at}", overview="x" * self.random.randrange(1, 400)))
                            for number in range(start, start + 500)])
            gone = self.random.sample(range(1, count + 1), count // 5)
            wire.saved([delete(title_key(number)) for number in gone])
        wire.saved([save(joke(number, f"Joke {number}"), JOKE) for number in range(1, 51)])


class CompactionTests(CompactionCase):
    def test_records_stay_history_goes_and_the_log_is_smaller(self):
        host = self.host()
        with host.wire() as wire:
            self.churn(wire)
            before = list_all(wire)
            status = wire.call("STATUS")
            reply = self.assertCompacted(compact(wire))
            self.assertEqual(reply["history_since"], NONE)
            self.assertGreater(reply["dropped"], 2_000)
            self.assertGreater(reply["rewritten"], 0)
            self.assertLess(reply["bytes_after"], status["log_bytes"] // 2)
            self.assertEqual(list_all(wire), before)
            after = wire.call("STATUS")
            self.assertEqual(after["floor"], reply["floor"])
            self.assertGreater(after["floor"], status["last_seq"] - 100)
            self.assertEqual(after["counts"], status["counts"])
            key = next(iter(as_model(before)))
            self.assertEqual(wire.call("GET", kind=key[0], key=key[1])["record"]["record"], as_model(before)[key][2])
            self.assertEqual(len(read_runs_of(wire, key)), 1)
        # After a restart, with and without the files that only make opening quick.
        for leaves_sidecars in (True, False):
            host.stop()
            if not leaves_sidecars:
                for name in os.listdir(os.path.join(host.library, "log")):
                    if not name.endswith(".seg"):
                        os.remove(os.path.join(host.library, "log", name))
            host.start()
            with host.wire() as wire:
                self.assertEqual(list_all(wire), before)
                self.assertEqual(wire.call("STATUS")["floor"], after["floor"])
                wire.saved([save(title(99_999, "after it"))])
                wire.saved([delete(title_key(99_999))])
        self.larder(host, "verify")

    def test_history_that_is_kept_stays(self):
        host = self.host()
        with host.wire() as wire:
            # Longer than a block of the disk: a segment that would stay as large is left as it is.
            wire.saved([save(title(1, "old", overview="old " * 2_000))])
            wire.saved([save(title(1, "new"))])
            wire.saved([save(title(2, "deleted"))])
            wire.saved([delete(title_key(2))])
            log = [entry.identity for entry in read_log(host)]
            # The host keeps 90 days by itself, and "all" is all.
            for since in (0, ALL, 1):
                reply = self.assertCompacted(compact(wire, history_since=since))
                self.assertEqual(reply["dropped"], 0)
                if since:
                    self.assertEqual(reply["history_since"], since)
            self.assertEqual(len(read_runs_of(wire, (TITLE.number, title_key(1)))), 2)
            self.assertLessEqual(set(log), {entry.identity for entry in read_log(host)})
        self.larder(host, "compact", "--keep-history", "1")
        self.assertEqual(json.loads(self.larder(host, "undelete", "title:test/movie/2", "--json"))["outcome"], "brought_back")
        self.larder(host, "delete", "title:test/movie/2")
        object = json.loads(self.larder(host, "compact", "--keep-history", "none", "--dead-share", "0", "--json"))
        self.assertEqual(object["history_since"], "none")
        self.assertGreater(object["dropped"], 2)
        with host.wire() as wire:
            self.assertEqual(len(read_runs_of(wire, (TITLE.number, title_key(1)))), 1)
            self.assertEqual(read_runs_of(wire, (TITLE.number, title_key(2))), [])
        self.larder(host, "undelete", "title:test/movie/2", code=1)

    def test_an_old_cursor_expires_and_a_snapshot_is_whole(self):
        host = self.host()
        with host.wire() as wire:
            self.churn(wire, count=500, rounds=2)
            old = wire.call("STATUS")
            self.churn(wire, count=500, rounds=2)
            reply = self.assertCompacted(compact(wire))
            _, refused = wire.subscribe(1, epoch=old["epoch"], seq=old["last_seq"])
            self.assertError(refused, "cursor_expired")
            self.assertEqual(refused.facts["floor"], str(reply["floor"]))
            listed = as_model(list_all(wire))
        with host.wire() as wire:
            request_id, subscribed = wire.subscribe(3)
            follower = Follower(subscribed)
            follow(wire, request_id, follower, lambda: follower.snapshot_end is not None)
        self.assertEqual(replay(follower.entries), listed)

    def test_who_follows_the_log_meanwhile_misses_nothing(self):
        host = self.host()
        with host.wire("writer") as writer, host.wire("follower", receive_bytes=4096) as reading:
            self.churn(writer, count=1_000, rounds=2)
            start = writer.call("STATUS")["last_seq"]
            request_id, subscribed = reading.subscribe(2, credit=65_536)
            follower = Follower(subscribed)
            stop = threading.Event()
            problems = []

            def compacts():
                try:
                    with host.wire("compacting") as wire:
                        while not stop.is_set():
                            reply = compact(wire)
                            if reply.name != "COMPACTED":
                                problems.append(reply)
                except Exception as error:  # the test's own thread says it
                    problems.append(error)

            thread = threading.Thread(target=compacts)
            thread.start()
            try:
                written = []
                for _ in range(40):
                    numbers = self.random.sample(range(1, 1_001), 100)
                    body = f"later {self.random.random()}"
                    reply = writer.saved([save(title(number, body)) for number in numbers])
                    written.append(reply["seq"])
                    gone = self.random.sample(numbers, 5)
                    written.append(writer.saved([delete(title_key(number)) for number in gone])["seq"])
                follow(reading, request_id, follower, lambda: follower.seq >= written[-1], window=65_536)
            finally:
                stop.set()
                thread.join(60)
            self.assertEqual(problems, [])
            # All that was written came: each batch is 100 saves and 5 deletes.
            self.assertEqual(len([entry for entry in follower.entries if entry.seq > start]), 40 * 105)
            model = as_model(list_all(writer))
            last = {}
            for entry in follower.entries:
                last[entry.key] = entry
            for key, entry in last.items():
                self.assertEqual(entry.type == 3, key not in model)
                if key in model:
                    self.assertEqual(model[key][0], entry.seq)

    def test_it_begins_and_ends_while_imports_keep_the_host_busy(self):
        host = self.host()
        batch_count = 150
        with host.wire("compacting") as wire:
            self.churn(wire, count=2_000, rounds=2)
            before = wire.call("STATUS")["last_seq"]
            problems = []

            def imports(number):
                """Sends without waiting for answers, so that there is always something staged."""
                try:
                    with host.wire(f"importing {number}") as importing:
                        first = 10_000 * number
                        bodies = [write_body([save(title(film, f"{at}")) for film in range(first, first + 100)], 0, 0, 0)
                                  for at in range(batch_count)]
                        started.wait()
                        sender = threading.Thread(target=lambda: [importing.send_body("WRITE", body) for body in bodies])
                        sender.start()
                        answers = [importing.receive() for _ in bodies]
                        sender.join()
                        problems.extend(answer for answer in answers if answer.name != "WRITTEN" or answer["refused"])
                except Exception as error:  # the test's own thread says it
                    problems.append(error)

            started = threading.Barrier(4)
            threads = [threading.Thread(target=imports, args=(number,)) for number in (1, 2, 3)]
            for thread in threads:
                thread.start()
            started.wait()
            self.eventually(lambda: wire.call("STATUS")["last_seq"] > before, what="the import")
            reply = self.assertCompacted(compact(wire))
            for thread in threads:
                thread.join()
            self.assertEqual(problems, [])
            last = wire.call("STATUS")["last_seq"]
            self.assertLess(reply["floor"] - before, (last - before) // 2, "it began when there was nothing more to do")
            listed = as_model(list_all(wire, TITLE.number))
            for number in (1, 2, 3):
                for film in range(10_000 * number, 10_000 * number + 100):
                    record = listed[TITLE.number, title_key(film)][2]
                    self.assertEqual(record, title(film, f"{batch_count - 1}"))

    def test_a_subscription_without_credit_holds_the_floor(self):
        host = self.host()
        with host.wire() as wire, host.wire("slow") as slow:
            wire.saved([save(title(number)) for number in range(1, 11)])
            request_id, subscribed = slow.subscribe(2, credit=0)
            after = subscribed["after"]
            wire.saved([save(title(number, "again")) for number in range(1, 11)])
            reply = self.assertCompacted(compact(wire))
            self.assertLessEqual(reply["floor"], after + 1)
            follower = Follower(subscribed)
            slow.notice("CREDIT", request_id, bytes=1 << 20)
            follow(slow, request_id, follower, lambda: len(follower.entries) == 10)
            self.assertGreater(self.assertCompacted(compact(wire))["floor"], after + 1)

    def test_one_at_a_time_and_a_cancelled_one_leaves_everything(self):
        host = self.host()
        with host.wire() as wire, host.wire("slow") as slow:
            self.churn(wire, count=500, rounds=2)
            before = list_all(wire)
            slow.subscribe(2, credit=0)
            wire.saved([save(title(1_000)), save(title(1_001))])
            wire.saved([delete(title_key(1_000))])
            waiting = wire.send("COMPACT", history_since=NONE, dead_share=0, flags=1, wait=600_000, purged=purged(1_000))
            self.assertError(compact(wire), "busy")
            wire.notice("CANCEL", waiting)
            self.assertError(wire.reply(waiting), "cancelled", waiting)
            self.assertCompacted(compact(wire))
            listed = list_all(wire)
            self.assertEqual(listed[:len(before)], before)
            self.assertEqual(len(listed), len(before) + 1)

    def test_a_clear_during_a_compaction_is_done(self):
        host = self.host()
        with host.wire() as wire, host.wire("compacting") as other:
            self.churn(wire, count=1_000, rounds=3)
            running = other.send("COMPACT", history_since=NONE, dead_share=0, flags=1, rate=NONE)
            self.assertEqual(wire.call("CLEAR", kind=TITLE.number).name, "CLEARED")
            reply = other.reply(running)
            self.assertIn(reply.name, ("COMPACTED", "ERROR"))
            if reply.name == "ERROR":
                self.assertError(reply, "busy")
            self.assertEqual(len(list_all(wire, TITLE.number)), 0)
            self.assertEqual(len(list_all(wire, JOKE.number)), 50)
            self.assertCompacted(compact(wire))
            self.assertEqual(len(list_all(wire, JOKE.number)), 50)

    def test_the_end_of_a_connection_does_not_end_it(self):
        host = self.host()
        with host.wire() as wire:
            self.churn(wire, count=1_000, rounds=3)
            before = list_all(wire)
            leaving = host.wire("leaving")
            leaving.send("COMPACT", history_since=NONE, dead_share=0, flags=1, rate=NONE)
            leaving.call("PING", bytes=b"taken")
            leaving.close()
            self.eventually(lambda: wire.call("STATUS")["floor"] > 1, what="the compaction")
            self.eventually(lambda: wire.call("STATUS")["reason"] == "", what="its end")
            self.assertEqual(list_all(wire), before)

    def test_the_host_stops_during_a_compaction(self):
        host = self.host()
        for at in range(4):
            with host.wire() as wire:
                self.churn(wire, count=1_000, rounds=2)
                before = list_all(wire)
                running = wire.send("COMPACT", history_since=NONE, dead_share=0, flags=1, rate=1 << 20)
                time.sleep(0.05 * at)
                host.send(15)
                reply = wire.reply(running)
                if reply.name == "ERROR":
                    self.assertError(reply, "shutting_down")
            self.assertEqual(host.wait(), 0)
            host.start()
            with host.wire() as wire:
                self.assertEqual(list_all(wire), before)

    def test_a_host_that_is_killed_during_a_compaction_loses_nothing(self):
        host = self.host()
        for _ in range(8):
            with host.wire() as wire:
                self.churn(wire, count=1_000, rounds=1)
                floor = wire.call("STATUS")["floor"]
                before, kept = list_all(wire), read_log(host, 3, after=floor - 1)
                wire.send("COMPACT", history_since=NONE, dead_share=0, flags=1, rate=self.random.choice((NONE, 4 << 20)))
                time.sleep(self.random.uniform(0, 0.1))
            host.kill()
            host.start()
            with host.wire() as wire:
                self.assertEqual(list_all(wire), before)
                status = wire.call("STATUS")
                after = read_log(host, 3, after=status["floor"] - 1)
                self.assertLessEqual({entry.identity for entry in after}, {entry.identity for entry in kept})
                self.assertCompacted(compact(wire))
                self.assertEqual(list_all(wire), before)

    def test_the_host_compacts_of_its_own_accord(self):
        host = self.host(start=False)
        host.start("--no-compact")
        with host.wire() as wire:
            for at in range(10):
                for start in range(1, 1_001, 100):
                    wire.saved([save(title(number, f"round {at}", overview=f"{number} " * 2_000))
                                for number in range(start, start + 100)])
            before = list_all(wire, limit=50)
            full = self.log_bytes(host)
        host.stop()
        host.start("--keep-history", "none", "--compact-rate", "0")
        with host.wire() as wire:
            self.eventually(lambda: self.log_bytes(host) < full // 2, 60, "a compaction")
            self.assertEqual(list_all(wire, limit=50), before)
        self.assertIn("compacted: ", host.log())

    def test_the_python_library_compacts(self):
        host = self.host()
        with host.wire() as wire:
            self.churn(wire, count=500, rounds=2)
        library = host.connect("python")
        self.addCleanup(library.close)
        told = []
        done = library.compact(keep_history="none", bytes_per_second=0, progress=lambda *numbers: told.append(numbers))
        self.assertLess(done.bytes_after, done.bytes_before)
        self.assertIsNone(done.history_since)
        with self.assertRaises(larder.Conflict) as caught:
            library.compact(purge=["title:test/movie/9404", next(library.list("title")).key_text])
        self.assertEqual(caught.exception.place, 2)


def read_runs_of(wire, key):
    """HISTORY of a key: its entries, newest first."""
    reply = wire.call("HISTORY", kind=key[0], key=key[1], limit=1_000)
    return list(read_runs(reply["runs"], 0))


class PurgeTests(CompactionCase):
    def prepare(self, wire):
        """A record with a text of its own, changed and deleted between others."""
        wire.saved([save(title(number, f"Film {number}")) for number in range(1, 100)])
        wire.saved([save(title(7_731_000_007, f"{SECRET} one", source="secretsource"))])
        wire.saved([save(title(7_731_000_007, f"{SECRET} two", source="secretsource"))])
        wire.saved([save(title(number, f"Film {number} again")) for number in range(50, 150)])
        return b"secretsource", SECRET.encode()

    KEY_TEXT = "title:secretsource/movie/7731000007"

    def test_what_is_purged_is_in_no_file(self):
        host = self.host()
        with host.wire() as wire:
            needles = self.prepare(wire)
            before = [record for record in list_all(wire) if needles[0] not in record["record"]]
        self.assertNotEqual(self.files_with(host, *needles), [])
        shown = self.larder(host, "purge", self.KEY_TEXT, "--yes")
        self.assertIn("1 key purged, 1 record deleted for it", shown)
        self.assertEqual(self.files_with(host, *needles), [])
        with host.wire() as wire:
            self.assertEqual(list_all(wire), before)
            # Its own entries alone: others keep their history.
            self.assertEqual(len(read_runs_of(wire, (TITLE.number, title_key(60)))), 2)
        for _ in range(2):
            host.stop()
            self.assertEqual(self.files_with(host, *needles), [])
            host.start()
            with host.wire() as wire:
                self.assertEqual(list_all(wire), before)
        self.larder(host, "verify")

    def test_a_record_that_was_deleted_long_ago_is_purged_too(self):
        host = self.host()
        with host.wire() as wire:
            needles = self.prepare(wire)
        self.larder(host, "delete", self.KEY_TEXT)
        host.stop()
        host.start()
        self.assertNotEqual(self.files_with(host, *needles), [])
        object = json.loads(self.larder(host, "purge", self.KEY_TEXT, "--yes", "--json"))
        self.assertEqual((object["purged"], object["deleted"]), (1, 0))
        self.assertEqual(self.files_with(host, *needles), [])

    def test_what_was_deleted_before_a_date_is_in_no_file(self):
        host = self.host()
        with host.wire() as wire:
            needles = self.prepare(wire)
        self.larder(host, "delete", self.KEY_TEXT)
        self.larder(host, "purge", "--deleted-before", "2000", "--yes")
        self.assertNotEqual(self.files_with(host, *needles), [])
        time.sleep(1.1)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.larder(host, "purge", "--deleted-before", now, "--yes")
        self.assertEqual(self.files_with(host, *needles), [])

    def test_a_record_that_is_there_is_not_purged(self):
        host = self.host()
        with host.wire() as wire:
            wire.saved([save(title(1)), save(title(2))])
            wire.saved([delete(title_key(1))])
            self.assertError(compact(wire, purged=purged(1, 2)), "conflict", place=2)
            self.assertError(compact(wire, purged=[{"kind": 63, "key": b""}]), "unknown_kind", place=1)
            self.assertError(compact(wire, purged=[*purged(1), {"kind": BOOK.number, "key": b"\xff"}]), "bad_key", place=2)
            self.assertEqual(as_model(list_all(wire)).keys(), {(TITLE.number, title_key(2))})
            # One that is on its way to the disk counts as there.
            written = wire.write([save(title(1, "back"))])
            asked = wire.send("COMPACT", history_since=NONE, flags=1, dead_share=0, purged=purged(1))
            self.assertEqual(wire.reply(written).name, "WRITTEN")
            self.assertError(wire.reply(asked), "conflict", place=1)

    def test_a_purge_waits_for_those_who_follow(self):
        host = self.host()
        with host.wire() as wire, host.wire("slow") as slow:
            needles = self.prepare(wire)
            request_id, subscribed = slow.subscribe(2, credit=0)
            library = host.connect("python")
            self.addCleanup(library.close)
            library.delete(self.KEY_TEXT)
            key = {"kind": TITLE.number, "key": title_key(7_731_000_007, source="secretsource")}
            asked = wire.send("COMPACT", history_since=0, flags=1, dead_share=0, wait=60_000, rate=NONE, purged=[key])
            time.sleep(0.6)
            self.assertNotEqual(self.files_with(host, *needles), [])
            follower = Follower(subscribed)
            slow.notice("CREDIT", request_id, bytes=1 << 20)
            follow(slow, request_id, follower, lambda: len(follower.entries) == 1)
            self.assertEqual(follower.entries[0].type, 3)
            reply = self.assertCompacted(wire.reply(asked))
            self.assertEqual(reply["subscriptions_ended"], 0)
            self.assertEqual(self.files_with(host, *needles), [])
            # The subscription lives on.
            wire.saved([save(title(5, "still heard"))])
            follow(slow, request_id, follower, lambda: len(follower.entries) == 2)

    def test_who_follows_and_is_hardly_behind_is_never_ended(self):
        host = self.host()
        count = 30
        with host.wire("writer") as wire, host.wire("purging") as other, host.wire("follower") as reading:
            wire.saved([save(title(number, f"Film {number}")) for number in range(1, count + 1)])
            request_id, subscribed = reading.subscribe(2)
            follower = Follower(subscribed)
            stop = threading.Event()
            problems = []

            def writes():
                try:
                    at = 0
                    with host.wire("busy") as busy:
                        while not stop.is_set():
                            at += 1
                            busy.saved([save(title(number, f"{at}")) for number in range(1_000, 1_020)])
                except Exception as error:  # the test's own thread says it
                    problems.append(error)

            def follows():
                try:
                    follow(reading, request_id, follower, lambda: stop.is_set() and follower.seq >= last[0])
                except Exception as error:
                    problems.append(error)

            last = [1 << 62]
            threads = [threading.Thread(target=writes), threading.Thread(target=follows)]
            for thread in threads:
                thread.start()
            for number in range(1, count + 1):
                wire.saved([delete(title_key(number))])
                reply = self.assertCompacted(compact(other, history_since=ALL, wait=60_000, purged=purged(number)))
                self.assertEqual(reply["subscriptions_ended"], 0)
            stop.set()
            threads[0].join()
            last[0] = wire.saved([save(title(999, "the end"))])["seq"]
            threads[1].join(60)
            self.assertFalse(threads[1].is_alive())
            self.assertEqual(problems, [])
            gone = {entry.key[1] for entry in follower.entries if entry.type == 3}
            self.assertEqual(gone, {title_key(number) for number in range(1, count + 1)})

    def test_who_lags_for_too_long_is_ended(self):
        host = self.host()
        with host.wire() as wire, host.wire("slow") as slow, host.wire("quick") as quick:
            needles = self.prepare(wire)
            lagging, _ = slow.subscribe(2, credit=0)
            going, subscribed = quick.subscribe(2)
            begun = time.monotonic()
            self.larder(host, "purge", self.KEY_TEXT, "--yes", "--wait", "1s")
            self.assertGreaterEqual(time.monotonic() - begun, 1)
            ended = slow.receive()
            self.assertError(ended, "cursor_expired", lagging)
            self.assertEqual(set(ended.facts), {"epoch", "floor", "last"})
            self.assertEqual(self.files_with(host, *needles), [])
            follower = Follower(subscribed)
            wire.saved([save(title(5, "heard"))])
            follow(quick, going, follower, lambda: len(follower.entries) == 2)
            self.assertEqual([entry.type for entry in follower.entries], [3, 2])
            # The id is free, and the connection lives.
            again, subscribed = slow.subscribe(3)
            follower = Follower(subscribed)
            follow(slow, again, follower, lambda: follower.snapshot_end is not None)
            self.assertEqual(replay(follower.entries), as_model(list_all(wire)))
