"""Subscribers of a real host: slow ones, exact credit, snapshots under way, filters, cursors."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from harness import (ALL_TYPES, HEADER_BYTES, JOKE, TITLE, Follower, HostCase, apply, as_model, delete, follow, joke, list_all,
                     read_log, replay, save, span_of, title, title_key)

SAVES = 20_000
# With a subscriber that does not read an import may take so much longer, and a little for the noise of the machine.
STALL_FACTOR, STALL_SECONDS = 2.0, 2.0
# What a subscriber that does not read may cost the host in memory, whatever is saved meanwhile.
STALL_BYTES = 8 << 20


def films(count, first=1, name="Film"):
    return [title(number, f"{name} {number}") for number in range(first, first + count)]


def save_all(wire, records, batch=100, depth=4, kind=TITLE):
    """Saves records in batches, some under way; gives the seconds that it took."""
    begun, waiting = time.monotonic(), []
    for at in range(0, len(records), batch):
        if len(waiting) == depth:
            reply = wire.reply(waiting.pop(0))
            assert reply.name == "WRITTEN" and not reply["refused"], reply
        waiting.append(wire.write([save(record, kind) for record in records[at:at + batch]]))
    for request_id in waiting:
        reply = wire.reply(request_id)
        assert reply.name == "WRITTEN" and not reply["refused"], reply
    return time.monotonic() - begun


class Background:
    """Something in a thread of its own, whose failure is not lost."""

    def __init__(self, work):
        self.failure = self.result = None
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work):
        try:
            self.result = work()
        except BaseException as error:
            self.failure = error

    def join(self, seconds=60):
        self.thread.join(seconds)
        if self.thread.is_alive():
            raise AssertionError(f"not done after {seconds} s")
        if self.failure:
            raise AssertionError(repr(self.failure)) from self.failure
        return self.result


class SubscriberCase(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()

    def wire(self, name="test", **options):
        wire = self.larder.wire(name, **options)
        self.addCleanup(wire.close)
        return wire

    def cursor_of(self, wire, seq=0):
        return {"epoch": wire.welcome["epoch"], "seq": seq}

    def follow_to(self, wire, request_id, follower, seq, window=1 << 20):
        return follow(wire, request_id, follower, lambda: follower.seq >= seq, window)


class StallTests(SubscriberCase):
    """Case 059: subscriber A stops, B reads, an importer goes on."""

    def import_with(self, host, *names):
        """Saves with B following; gives the seconds, and B's account."""
        with host.wire("B") as b, host.wire("importer") as importer:
            request_id, reply = b.subscribe(2, credit=1 << 20)
            follower = Follower(reply)
            reading = Background(lambda: follow(b, request_id, follower, lambda: len(follower.entries) >= SAVES))
            seconds = save_all(importer, films(SAVES))
            reading.join()
        seqs = [entry.seq for entry in follower.entries]
        self.assertEqual(len(seqs), SAVES)
        self.assertEqual(seqs, sorted(set(seqs)))
        self.assertEqual([bytes(entry.body["record"]) for entry in follower.entries], films(SAVES))
        return seconds

    def test_one_that_does_not_read_slows_nobody_and_costs_little(self):
        alone = self.host("alone", "alone")
        base = self.import_with(alone)
        alone_bytes = alone.anonymous_bytes()
        alone.kill()
        # A gives credit for everything and does not read: the socket is full after a few frames.
        a = self.wire("A")
        a.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        request_id, reply = a.subscribe(2, credit=a.welcome["credit_limit"])
        follower = Follower(reply)
        seconds = self.import_with(self.larder)
        self.assertLess(seconds, base * STALL_FACTOR + STALL_SECONDS)
        cost = self.larder.anonymous_bytes() - alone_bytes
        self.assertLess(cost, STALL_BYTES)
        # A resumes: everything, in order.
        last = self.wire().welcome["last_seq"]
        self.follow_to(a, request_id, follower, last)
        self.assertEqual([bytes(entry.body["record"]) for entry in follower.entries], films(SAVES))
        print(f"\nstall: {SAVES} saves in {base:.2f} s alone, {seconds:.2f} s beside one that does not read; "
              f"it cost {cost // 1024} KiB", file=sys.stderr)

    def test_a_stopped_process_gets_everything_once_it_goes_on(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_events.py")
        a = subprocess.Popen([sys.executable, program, self.larder.socket, str(SAVES)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(a.wait)
        self.addCleanup(a.kill)
        self.addCleanup(a.stdout.close)
        self.assertEqual(a.stdout.readline(), "ready\n")
        with self.larder.wire("first") as first:
            save_all(first, films(10, name="Early"))
        self.assertEqual(a.stdout.readline(), "10\n")
        a.send_signal(signal.SIGSTOP)
        with self.larder.wire("clearing") as wire:
            wire.call("CLEAR", kind=TITLE.number)
        self.import_with(self.larder)
        self.assertIsNone(a.poll())
        a.send_signal(signal.SIGCONT)
        rest, _ = a.communicate(timeout=60)
        # 10 saved, 10 deleted by the clear, then all in order; the count is of saves alone.
        self.assertEqual(rest.split(), [str(SAVES + 10), "in", "order"])
        self.assertEqual(a.returncode, 0)


class TruthTests(SubscriberCase):
    def test_what_an_event_tells_is_what_a_get_finds(self):
        """Case 061: 1,000 downloaded and 1,000 deleted, a GET at each, while an importer writes: no misses."""
        count = 1000
        notifier, asker = self.wire("notifier"), self.wire("asker")
        request_id, reply = notifier.subscribe(2, credit=1 << 16)
        follower = Follower(reply)

        def write():
            with self.larder.wire("importer") as wire:
                waiting = []
                for at in range(1, count + 1, 5):
                    waiting.append(wire.write([save(title(number, f"Film {number}")) for number in range(at, at + 5)]))
                    # Refused and unchanged ones are not told.
                    waiting.append(wire.write([save(title(at, f"Film {at}")), save(b"\x00"), delete(title_key(1 << 40))]))
                    if len(waiting) > 16:
                        wire.reply(waiting.pop(0))
                for request_id in waiting:
                    wire.reply(request_id)
                # A key is deleted only when the notifier has asked for it.
                for at in range(1, count + 1):
                    while asked[0] < at:
                        time.sleep(0.001)
                    wire.saved([delete(title_key(at))])

        misses, asked, told = [], [0], {"saved": [], "deleted": []}

        def check(entry):
            kind, key = entry.key
            found = asker.call("GET", kind=kind, key=key)
            if entry.type == 3:
                told["deleted"].append(key)
                if found.name != "ERROR" or found.error != "not_found":
                    misses.append(("deleted and there", key))
                return
            told["saved"].append(key)
            asked[0] += 1
            if found.name != "RECORD":
                misses.append(("saved and not there", key))
            elif (found["record"]["record"], found["record"]["seq"]) != (bytes(entry.body["record"]), entry.seq):
                misses.append(("another record", key))

        writing = Background(write)
        follow(notifier, request_id, follower, lambda: len(told["deleted"]) == count, 1 << 16, check)
        writing.join()
        self.assertEqual(misses, [])
        keys = [title_key(number) for number in range(1, count + 1)]
        self.assertEqual((told["saved"], told["deleted"]), (keys, keys))

    def test_an_offline_notifier_hears_everything_after_a_crash(self):
        """Case 062: 50 saved and 10 deleted while it is away, kill -9, restart; then it connects."""
        for _ in range(5):
            with self.larder.wire("notifier") as notifier:
                request_id, reply = notifier.subscribe(2)
                seen = reply["after"]
            wire = self.larder.wire("importer")
            base = self.random.randrange(1, 1 << 40)
            waiting = {wire.write([save(title(base + number))]): (1, base + number) for number in range(50)}
            waiting.update({wire.write([delete(title_key(base + number))]): (3, base + number) for number in range(10)})
            answered = set()
            for _ in range(self.random.randrange(61)):
                frame = wire.receive()
                self.assertEqual(frame.name, "WRITTEN")
                answered.add(waiting[frame.id])
            self.larder.kill()
            for frame in wire.until_closed():
                answered.add(waiting[frame.id])
            wire.close()
            self.larder.start()
            with self.larder.wire("notifier") as notifier:
                last = notifier.welcome["last_seq"]
                request_id, reply = notifier.subscribe(1, **self.cursor_of(notifier, seen))
                self.assertEqual(reply.name, "SUBSCRIBED")
                follower = self.follow_to(notifier, request_id, Follower(reply), last)
                listed = as_model(list_all(notifier))
            told = [(3 if entry.type == 3 else 1, entry.key[1]) for entry in follower.entries]
            self.assertEqual(len(told), len(set(told)), "told twice")
            expected = {(what, title_key(number)) for what, number in answered}
            self.assertLessEqual(expected, set(told), "lost")
            for number in range(10):
                mine = [what for what, key in told if key == title_key(base + number)]
                self.assertIn(mine, ([], [1], [1, 3]))
            for what, key in told:
                self.assertEqual((TITLE.number, key) in listed, (3, key) not in told)
            # What was taken does not come again.
            with self.larder.wire("notifier") as notifier:
                request_id, reply = notifier.subscribe(1, **self.cursor_of(notifier, follower.seq))
                self.assertEqual(notifier.call("SYNC", subscription=request_id)["through"], follower.seq)
                self.assertEqual([frame for frame in notifier.waiting if frame.name == "EVENTS" and len(frame.body) > 16], [])


class CreditTests(SubscriberCase):
    def test_never_more_than_the_credit_and_one_frame(self):
        with self.larder.wire("importer") as importer:
            save_all(importer, [title(number, "x" * self.random.choice((5, 300, 20_000))) for number in range(1, 601)])
            importer.saved([save(title(1000, "y" * 200_000))])
        wire = self.wire()
        credit = self.random.randrange(1, 3000)
        request_id, reply = wire.subscribe(1, credit=credit, **self.cursor_of(wire))
        follower, frames = Follower(reply), 0
        last = wire.welcome["last_seq"]
        while follower.seq < last:
            # Everything that the credit allows comes, and the last frame of it began while there was some.
            while credit > 0 and follower.seq < last:
                frame = wire.receive()
                follower.take(frame)
                frames += 1
                credit -= HEADER_BYTES + len(frame.body)
            if follower.seq >= last:
                break
            # A PONG comes behind everything that was sent: nothing was.
            self.assertEqual(wire.call("PING", bytes=b"nothing?").name, "PONG")
            self.assertEqual(wire.waiting, [], f"sent with a credit of {credit}")
            if credit < 0 and self.random.random() < 0.3:
                # Up to zero is not above zero.
                wire.notice("CREDIT", request_id, bytes=-credit)
                credit = 0
                self.assertEqual(wire.call("PING", bytes=b"nothing?").name, "PONG")
                self.assertEqual(wire.waiting, [], "sent with a credit of 0")
            more = self.random.choice((1, 28, 500, 5000, 100_000))
            wire.notice("CREDIT", request_id, bytes=more)
            credit += more
        self.assertGreater(frames, 5)
        self.assertEqual(len(follower.entries), 601)

    def test_credit_is_held_to_the_limit_of_welcome(self):
        wire = self.wire()
        limit = wire.welcome["credit_limit"]
        request_id, reply = wire.subscribe(2, credit=1 << 62)
        for _ in range(3):
            wire.notice("CREDIT", request_id, bytes=(1 << 63) + 5)
        follower, used = Follower(reply), 0
        record_bytes, count = 200_000, limit // 200_000 + 5
        with self.larder.wire("importer") as importer:
            for number in range(1, count + 1):
                importer.saved([save(title(number, "z" * record_bytes))])
            last = importer.welcome["last_seq"] + count
        while used < limit:
            frame = wire.receive()
            follower.take(frame)
            used += HEADER_BYTES + len(frame.body)
        self.assertEqual(wire.call("PING", bytes=b"").name, "PONG")
        self.assertEqual(wire.waiting, [])
        self.assertLess(follower.seq, last)
        wire.notice("CREDIT", request_id, bytes=4 << 20)
        self.follow_to(wire, request_id, follower, last)

    def test_a_frame_ends_near_48_kib_and_a_larger_entry_has_its_own(self):
        with self.larder.wire("importer") as importer:
            save_all(importer, films(8000))
            importer.saved([save(title(9000, "y" * 300_000)), save(title(9001))])
            last = importer.call("STATUS")["last_seq"]
        wire = self.wire()
        request_id, reply = wire.subscribe(1, credit=8 << 20, **self.cursor_of(wire))
        follower, sizes = Follower(reply), []
        while follower.seq < last:
            frame = wire.receive()
            found = follower.take(frame)
            sizes.append((len(frame.body), len(found)))
        for size, count in sizes:
            self.assertTrue(size <= 49_152 + 600 or count == 1, (size, count))
        self.assertEqual([count for size, count in sizes if size > 300_000], [1])
        full = [size for size, _ in sizes[:4]]
        self.assertGreater(min(full), 24_000)

    def test_without_credit_nothing_comes_and_other_subscriptions_go_on(self):
        wire = self.wire()
        starved, reply = wire.subscribe(2, credit=0)
        fed, other = wire.subscribe(2, credit=1 << 20)
        with self.larder.wire("importer") as importer:
            save_all(importer, films(500))
            last = importer.call("STATUS")["last_seq"]
        follower = Follower(other)
        self.follow_to(wire, fed, follower, last)
        self.assertEqual(len(follower.entries), 500)
        wire.notice("CREDIT", starved, bytes=1 << 20)
        self.assertEqual(len(self.follow_to(wire, starved, Follower(reply), last).entries), 500)


class SyncTests(SubscriberCase):
    def test_synced_comes_behind_everything_that_was_committed(self):
        wire, importer = self.wire(), self.wire("importer")
        request_id, reply = wire.subscribe(2, credit=8 << 20)
        follower = Follower(reply)
        number = 0
        for _ in range(30):
            for _ in range(self.random.randrange(4)):
                number += 1
                importer.saved([save(title(number))])
            sync = wire.send("SYNC", subscription=request_id)
            while True:
                frame = wire.receive()
                if frame.id == sync:
                    break
                follower.take(frame)
            self.assertEqual(frame.name, "SYNCED")
            self.assertEqual(frame["through"], follower.seq)
            self.assertEqual(len(follower.entries), number, "saved before, and not sent before SYNCED")

    def test_synced_passes_over_what_is_filtered_out(self):
        wire, importer = self.wire(), self.wire("importer")
        request_id, reply = wire.subscribe(2, kinds=[JOKE.number], credit=1 << 20)
        follower = Follower(reply)
        importer.saved([save(record) for record in films(50)])
        last = importer.call("STATUS")["last_seq"]
        sync = wire.send("SYNC", subscription=request_id)
        frame = wire.receive()
        while frame.id != sync:
            self.assertEqual(follower.take(frame), [])
            frame = wire.receive()
        self.assertEqual((frame["through"], follower.seq), (last, last))

    def test_sync_waits_for_credit_and_can_be_cancelled_or_run_into_the_deadline(self):
        wire, importer = self.wire(), self.wire("importer")
        importer.saved([save(title(1))])
        request_id, reply = wire.subscribe(1, credit=0, **self.cursor_of(wire))
        sync = wire.send("SYNC", subscription=request_id)
        wire.frame("CANCEL", sync, b"")
        self.assertError(wire.reply(sync), "cancelled")
        hasty = self.wire("hasty", deadline=300)
        other, _ = hasty.subscribe(1, credit=0, **self.cursor_of(wire))
        begun = time.monotonic()
        reply = hasty.call("SYNC", subscription=other)
        self.assertError(reply, "deadline_exceeded")
        self.assertEqual(reply["flags"], 2)
        self.assertTrue(0.25 < time.monotonic() - begun < 3)
        # The subscription itself has no deadline.
        hasty.notice("CREDIT", other, bytes=1000)
        self.assertEqual(hasty.receive().name, "EVENTS")

    def test_unsubscribe_ends_it_and_nothing_follows(self):
        wire, importer = self.wire(), self.wire("importer")
        request_id, reply = wire.subscribe(2, credit=1 << 20)
        follower = Follower(reply)
        stop = threading.Event()

        def write():
            number = 0
            while not stop.is_set():
                number += 1
                importer.saved([save(title(number))])
            return number

        writing = Background(write)
        follow(wire, request_id, follower, lambda: len(follower.entries) > 50)
        ending = wire.send("UNSUBSCRIBE", subscription=request_id)
        while True:
            frame = wire.receive()
            if frame.id == ending:
                break
            follower.take(frame)
        self.assertEqual((frame.name, frame["through"]), ("UNSUBSCRIBED", follower.seq))
        time.sleep(0.05)
        stop.set()
        count = writing.join()
        self.assertEqual(wire.call("PING", bytes=b"").name, "PONG")
        self.assertEqual(wire.waiting, [])
        self.assertError(wire.call("UNSUBSCRIBE", subscription=request_id), "unknown_subscription")
        # The id is free, and the cursor goes on where it ended.
        wire.frame("PING", request_id, b"\0")
        self.assertEqual(wire.receive().name, "PONG")
        again, reply = wire.subscribe(1, **self.cursor_of(wire, follower.seq))
        more = self.follow_to(wire, again, Follower(reply), importer.call("STATUS")["last_seq"])
        self.assertEqual(len(follower.entries) + len(more.entries), count)

    def test_unsubscribe_answers_the_syncs_that_wait(self):
        wire, importer = self.wire(), self.wire("importer")
        importer.saved([save(title(1))])
        request_id, _ = wire.subscribe(1, credit=0, **self.cursor_of(wire))
        sync = wire.send("SYNC", subscription=request_id)
        self.assertEqual(wire.call("UNSUBSCRIBE", subscription=request_id).name, "UNSUBSCRIBED")
        self.assertError(wire.reply(sync), "unknown_subscription")


class SnapshotTests(SubscriberCase):
    def churn(self, stop, seed):
        """Creates, changes and deletes until told to stop."""
        rng = type(self.random)(seed)
        with self.larder.wire(f"churn {seed}") as wire:
            waiting = []
            while not stop.is_set():
                number, what = rng.randrange(1, 3000), rng.random()
                operation = (save(title(number, f"Changed {rng.random()}")) if what < 0.6 else delete(title_key(number)))
                waiting.append(wire.write([operation]))
                if len(waiting) > 8:
                    wire.reply(waiting.pop(0))
            for request_id in waiting:
                wire.reply(request_id)

    def test_exact_at_its_end_while_others_write(self):
        with self.larder.wire("importer") as importer:
            save_all(importer, films(3000, name="x" * 200))
            save_all(importer, [joke(number) for number in range(300)], kind=JOKE)
        stop = threading.Event()
        writing = [Background(lambda seed=seed: self.churn(stop, seed)) for seed in range(2)]
        results = []
        for window in (1 << 20, 4000, 60_000):
            wire = self.wire(timeout=60)
            request_id, reply = wire.subscribe(3, types=3, credit=window)
            self.assertEqual((reply["after"], reply["s0"] > 0), (0, True))
            follower, model = Follower(reply), {}
            follow(wire, request_id, follower, lambda f=follower: f.snapshot_end is not None, window, lambda e, m=model: apply(m, [e]))
            results.append((reply["s0"], follower.snapshot_end, dict(model), follower))
            # It goes on as any other.
            goal = follower.seq + 50
            follow(wire, request_id, follower, lambda f=follower: f.seq >= goal, window, lambda e, m=model: apply(m, [e]))
            wire.close()
        stop.set()
        for background in writing:
            background.join()
        log = read_log(self.larder)
        for s0, s1, model, follower in results:
            self.assertLessEqual(s0, s1)
            self.assertEqual(model, replay(entry for entry in log if entry.seq <= s1), "not the library as of S1")
            self.assertEqual([e for e in follower.entries if e.seq <= s0 and e.type == 3], [], "a tombstone up to S0")
            behind = [entry.identity for entry in log if s0 < entry.seq <= follower.seq and entry.type <= 3]
            self.assertEqual([entry.identity for entry in follower.entries if entry.seq > s0], behind)

    def test_resumed_with_its_s0_over_connections_and_a_crash(self):
        with self.larder.wire("importer") as importer:
            save_all(importer, films(3000, name="x" * 400))
        stop = threading.Event()
        wire = self.wire()
        request_id, reply = wire.subscribe(3, credit=20_000)
        follower, model = Follower(reply), {}
        for at in range(6):
            writing = None
            if at % 2 == 0:
                stop.clear()
                writing = Background(lambda seed=at: self.churn(stop, seed))
            goal = follower.seq + 300
            follow(wire, request_id, follower, lambda: follower.seq >= goal or follower.snapshot_end is not None, 20_000,
                   lambda entry: apply(model, [entry]))
            stop.set()
            if writing:
                writing.join()
            self.assertIsNone(follower.snapshot_end)
            wire.close()
            if at == 3:
                self.larder.kill()
                self.larder.start()
            wire = self.wire()
            request_id, again = wire.subscribe(4, credit=20_000, s0=follower.s0, **self.cursor_of(wire, follower.seq))
            self.assertEqual((again.name, again["after"], again["s0"]), ("SUBSCRIBED", follower.seq, follower.s0))
        follow(wire, request_id, follower, lambda: follower.snapshot_end is not None, 20_000, lambda entry: apply(model, [entry]))
        self.assertEqual(model, replay(entry for entry in read_log(self.larder) if entry.seq <= follower.snapshot_end))
        self.assertEqual(model, as_model(list_all(self.wire())))

    def test_of_an_empty_library(self):
        wire = self.wire()
        request_id, reply = wire.subscribe(3)
        follower = Follower(reply)
        follow(wire, request_id, follower, lambda: follower.snapshot_end is not None)
        self.assertEqual((follower.entries, follower.snapshot_end), ([], wire.welcome["last_seq"]))

    def test_of_one_kind(self):
        with self.larder.wire("importer") as importer:
            save_all(importer, films(200))
            save_all(importer, [joke(number) for number in range(20)], kind=JOKE)
            save_all(importer, films(100, 500))
        wire = self.wire()
        request_id, reply = wire.subscribe(3, kinds=[JOKE.number])
        follower = Follower(reply)
        follow(wire, request_id, follower, lambda: follower.snapshot_end is not None)
        self.assertEqual([entry.key[0] for entry in follower.entries], [JOKE.number] * 20)
        self.assertEqual(follower.snapshot_end, reply["s0"])


class PassedOverTests(SubscriberCase):
    """A log of which little is wanted is passed over without a pause, also where it lies in many small commits."""

    def setUp(self):
        super().setUp()
        with self.wire() as wire:
            for number in range(200):
                wire.saved([save(title(1, f"Film {number}"))])
            wire.saved([save(joke(1), JOKE)])
        # What was written in this life would still lie in memory.
        self.assertEqual(self.larder.stop(), 0)
        self.larder.start()

    def test_by_a_snapshot(self):
        with self.wire() as wire:
            begun = time.monotonic()
            request_id, reply = wire.subscribe(3)
            follower = Follower(reply)
            follow(wire, request_id, follower, lambda: follower.snapshot_end is not None)
            self.assertLess(time.monotonic() - begun, 5)
            self.assertEqual(len(follower.entries), 2)

    def test_by_a_filter(self):
        with self.wire() as wire:
            begun = time.monotonic()
            request_id, reply = wire.subscribe(1, epoch=wire.welcome["epoch"], seq=0, kinds=[JOKE.number])
            follower = Follower(reply)
            follow(wire, request_id, follower, lambda: follower.entries)
            self.assertLess(time.monotonic() - begun, 5)


class CursorTests(SubscriberCase):
    def assertExpired(self, wire, start, **fields):
        _, reply = wire.subscribe(start, **fields)
        self.assertError(reply, "cursor_expired")
        status = wire.call("STATUS")
        self.assertEqual(reply.facts, {"epoch": f"{status['epoch']:016x}", "floor": str(status["floor"]), "last": str(status["last_seq"])})

    def test_expired_cursors_are_told_with_the_facts(self):
        wire = self.wire()
        save_all(wire, films(10))
        last, epoch = wire.call("STATUS")["last_seq"], wire.welcome["epoch"]
        self.assertExpired(wire, 1, epoch=epoch ^ 1, seq=last)
        self.assertExpired(wire, 1, epoch=epoch, seq=last + 1)
        self.assertExpired(wire, 1, epoch=epoch, seq=(1 << 64) - 1)
        self.assertExpired(wire, 4, epoch=epoch ^ 1, seq=1, s0=1)
        self.assertExpired(wire, 4, epoch=epoch, seq=last + 1, s0=last)
        self.assertExpired(wire, 4, epoch=epoch, seq=1, s0=last + 1)
        for seq in (0, 1, last - 1, last):
            request_id, reply = wire.subscribe(1, epoch=epoch, seq=seq)
            self.assertEqual((reply.name, reply["after"], reply["epoch"]), ("SUBSCRIBED", seq, epoch))
            follower = self.follow_to(wire, request_id, Follower(reply), last)
            wire.call("UNSUBSCRIBE", subscription=request_id)

    def test_a_cursor_inside_a_recovered_gap_has_expired(self):
        with self.larder.wire("importer") as wire:
            save_all(wire, films(10))
            last, epoch = wire.call("STATUS")["last_seq"], wire.welcome["epoch"]
        self.larder.kill()
        segment = os.path.join(self.larder.library, "log", "00000001.seg")
        with open(segment, "r+b") as file:
            data = file.read().rstrip(b"\0")
            end = -(-len(data) // 4096) * 4096
            file.truncate(end)
            file.seek(end)
            file.write(b"LRDB" + b"\x01" * 3000)  # a block that was not finished
        self.larder.start()
        wire = self.wire()
        after = wire.welcome["last_seq"]
        self.assertGreater(after, last + (1 << 20), "the seq jumps where the tail was torn")
        self.assertTrue(os.listdir(os.path.join(self.larder.library, "aside")))
        for seq in (last + 1, last + 1000, last + (1 << 20)):
            self.assertExpired(wire, 1, epoch=epoch, seq=seq)
            self.assertExpired(wire, 4, epoch=epoch, seq=seq, s0=last)
        request_id, reply = wire.subscribe(1, ALL_TYPES, epoch=epoch, seq=last)
        follower = self.follow_to(wire, request_id, Follower(reply, ALL_TYPES), after)
        self.assertEqual([(entry.type, entry.body["from"], entry.body["to"]) for entry in follower.entries if entry.type == 21],
                         [(21, last + 1, last + (1 << 20))])
        self.assertEqual(len(list_all(wire)), 10)

    def test_another_library_has_another_epoch(self):
        other = self.host("other", "other")
        with other.wire() as wire:
            self.assertNotEqual(wire.welcome["epoch"], self.wire().welcome["epoch"])


class FilterTests(SubscriberCase):
    def test_types_and_kinds_and_the_heartbeat(self):
        importer = self.wire("importer")
        wires = {}
        for name, types, kinds in (("saves", 1, []), ("deletes", 2, []), ("jokes", 3, [JOKE.number]), ("both", 3, [1, JOKE.number]),
                                   ("imports", 16, []), ("origins", 8, []), ("kinds", 4, []), ("all", ALL_TYPES, [])):
            wire = self.wire(name)
            request_id, reply = wire.subscribe(1, types, kinds, **self.cursor_of(wire))
            wires[name] = (wire, request_id, Follower(reply, types))
        begun = importer.call("BEGIN_IMPORT", source="s", token="t")
        importer.saved([save(record) for record in films(20)], begun["origin"], 1)
        importer.saved([save(joke(number), JOKE) for number in range(5)])
        importer.saved([delete(title_key(3)), delete(title_key(4))])
        ended = importer.call("END_IMPORT", origin=begun["origin"], outcome=1, read=20, created=20)
        last = ended["seq"]
        found = {}
        for name, (wire, request_id, follower) in wires.items():
            # The heartbeat takes the cursor over what was filtered out, in about a second.
            begun_at = time.monotonic()
            self.follow_to(wire, request_id, follower, last)
            self.assertLess(time.monotonic() - begun_at, 6, name)
            found[name] = [entry.type for entry in follower.entries]
        self.assertEqual(found["saves"], [1] * 25)
        self.assertEqual(found["deletes"], [3, 3])
        self.assertEqual(found["jokes"], [1] * 5)
        self.assertEqual(found["both"], [1] * 25 + [3] * 2)
        self.assertEqual(found["imports"], [18, 20, 19])
        self.assertEqual(found["kinds"], [16] * 3)
        self.assertEqual(set(found["origins"]), {17})
        log = [entry.identity for entry in read_log(self.larder)]
        self.assertEqual([entry.identity for entry in wires["all"][2].entries], log)

    def test_silence_is_broken_by_a_heartbeat(self):
        wire = self.wire()
        request_id, reply = wire.subscribe(2)
        frame = wire.receive()
        self.assertEqual((frame.name, span_of(frame.body), len(frame.body)), ("EVENTS", (reply["after"],) * 2, 16))

    def test_all_but_one_origin(self):
        mine, others = self.wire("enricher"), self.wire("importer")
        mine.saved([save(title(1))])
        origins = {item["name"]: item["number"] for item in mine.call("ORIGINS", limit=100)["origins"]}
        request_id, reply = mine.subscribe(2, except_origin=origins["enricher"])
        follower = Follower(reply)
        for number in range(2, 40):
            (mine if number % 2 else others).saved([save(title(number))])
        mine.saved([delete(title_key(2))])
        others.saved([delete(title_key(4))])
        last = mine.call("STATUS")["last_seq"]
        self.follow_to(mine, request_id, follower, last)
        self.assertEqual([entry.key[1] for entry in follower.entries], [title_key(n) for n in (*range(2, 40, 2), 4)])

    def test_many_subscriptions_on_one_connection(self):
        wire, importer = self.wire(timeout=60), self.wire("importer")
        followers = {}
        for at in range(100):
            kinds = ([], [1], [JOKE.number])[at % 3]
            request_id, reply = wire.subscribe((2, 3)[at % 2], kinds=kinds, credit=3000)
            followers[request_id] = (Follower(reply), kinds)
        save_all(importer, films(600), batch=20)
        save_all(importer, [joke(number) for number in range(60)], kind=JOKE)
        last = importer.call("STATUS")["last_seq"]
        owed = dict.fromkeys(followers, 0)
        while any(follower.seq < last for follower, _ in followers.values()):
            frame = wire.receive()
            followers[frame.id][0].take(frame)
            if frame.name == "EVENTS":
                owed[frame.id] += HEADER_BYTES + len(frame.body)
                if owed[frame.id] > 1500:
                    wire.notice("CREDIT", frame.id, bytes=owed[frame.id])
                    owed[frame.id] = 0
        for follower, kinds in followers.values():
            expected = {(): 660, (1,): 600, (JOKE.number,): 60}[tuple(kinds)]
            self.assertEqual(len(follower.entries), expected)
        self.assertEqual(wire.call("STATUS")["sessions"][0]["subscriptions"], 100)


if __name__ == "__main__":
    unittest.main()
