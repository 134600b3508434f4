"""A real host is killed with SIGKILL while writes are under way and three subscribers listen; then everything is compared.

`LARDER_ROUNDS` rounds (30) are counted; one in which everything had been answered at the kill is done again. kill -9 is
a crash of the process, not of the machine: for power cuts see the store's own tests.
"""

import json
import os
import subprocess
import sys
import threading
import time
import unittest

from harness import (ALL_TYPES, BY_KIND, HEADER_BYTES, JOKE, READER, TITLE, Closed, Follower, HostCase, apply, as_model, decode_record,
                     delete, joke, list_all, read_log, record_to_json, replay, save, title, title_key)

ENTRIES_MAX = 14_000
ROUNDS_ON_ONE_LIBRARY = 5
JOKE_COUNT = 2500


class Writer:
    """A connection that keeps batches under way until the host is gone.

    It alone writes the records of its source, so what is there after the crash must be what some first part of its
    batches makes, at least up to the last one that was answered.
    """

    depth = 8

    def __init__(self, name):
        self.name = name
        self.number = 0
        self.model = {}          # key bytes to record bytes, as they are known to be
        self.batches = []        # of this round: the operations, each (key, record or None)
        self.is_answered = []
        self.failure = None

    def prepare(self, wire, random):
        """Before the clock runs; everything here is answered."""

    def batch(self, random):
        """The next batch: a list of (key, record or None)."""
        raise NotImplementedError

    def origin(self, wire):
        return 0

    def batch_number(self):
        return 0

    def next_number(self):
        self.number += 1
        return self.number

    def run(self, path, random, ready):
        try:
            self._run(path, random, ready)
        except (Closed, ConnectionError):
            ready.wait_or_abort()
        except BaseException as error:
            self.failure = error
            ready.abort()

    def _run(self, wire, random, ready):
        self.batches, self.is_answered = [], []
        waiting = {}
        with wire:
            self.prepare(wire, random)
            ready.wait()
            origin = self.origin(wire)
            sent = 0
            try:
                while True:
                    while len(waiting) < self.depth:
                        operations = self.batch(random)
                        if operations is None:
                            break
                        number = self.batch_number()
                        self.batches.append(operations)
                        self.is_answered.append(False)
                        body = [delete(key) if record is None else save(record) for key, record in operations]
                        waiting[wire.write(body, origin, number)] = len(self.batches) - 1
                        sent += 1
                    if not waiting:
                        return
                    self.take(wire.receive(), waiting)
            except (Closed, ConnectionError):
                # What the host had sent before it died is still there.
                for frame in wire.until_closed():
                    self.take(frame, waiting)

    def take(self, frame, waiting):
        at = waiting.pop(frame.id)
        if frame.name != "WRITTEN" or frame["refused"]:
            raise AssertionError(f"{self.name}: {frame}")
        self.is_answered[at] = True

    @property
    def unanswered(self):
        return self.is_answered.count(False)

    def check(self, actual):
        """Finds how many batches survived; takes their result as what is known. Raises where none fits."""
        least = max((at + 1 for at, answered in enumerate(self.is_answered) if answered), default=0)
        state, fits = dict(self.model), None
        for count in range(len(self.batches) + 1):
            if count:
                for key, record in self.batches[count - 1]:
                    if record is None:
                        state.pop(key, None)
                    else:
                        state[key] = record
            if count >= least and state == actual:
                fits = count
                break
        if fits is None:
            raise AssertionError(self._mismatch(actual, least))
        self.model = actual
        self.survived = fits
        return fits - least

    def _mismatch(self, actual, least):
        state = dict(self.model)
        for batch in self.batches[:least]:
            for key, record in batch:
                state.pop(key, None) if record is None else state.__setitem__(key, record)
        missing = [key for key in state if key not in actual]
        extra = [key for key in actual if key not in state]
        return (f"{self.name}: {least} of {len(self.batches)} batches had been answered; against their result "
                f"{len(missing)} keys are missing, {len(extra)} are more: no whole number of batches gives that")


class Importer(Writer):
    """Imports batches of new records, numbered or not; sometimes ones so large that they become a run of blocks."""

    depth = 4

    def __init__(self, name, numbered):
        super().__init__(name)
        self.numbered = numbered
        self.token = None
        self.is_begun = False
        self.large = False

    def prepare(self, wire, random):
        self.token = f"{self.name}-{self.number}"
        self.is_begun = False
        self.next_batch = 0

    def origin(self, wire):
        reply = wire.call("BEGIN_IMPORT", source=self.name, token=self.token)
        if reply.name != "IMPORT_BEGUN" or reply["resumed"] or reply["last_batch"]:
            raise AssertionError(f"{self.name}: {reply}")
        self.is_begun = True
        return reply["origin"]

    def batch_number(self):
        self.next_batch += 1
        return self.next_batch if self.numbered else 0

    def batch(self, random):
        if len(self.batches) > 40:
            return None
        count, overview = random.randrange(20, 120), "x" * random.randrange(200)
        if self.large and len(self.batches) % 4 == 1:
            count, overview = 64, "y" * 64_000
        records = []
        for _ in range(count):
            number = self.next_number()
            records.append((title_key(number, self.name), title(number, f"Film {number}", self.name, overview=overview)))
        return records

    def resume(self, wire):
        """The import goes on: what it says is durable agrees with what was found."""
        reply = wire.call("BEGIN_IMPORT", source=self.name, token=self.token)
        if reply.name != "IMPORT_BEGUN":
            raise AssertionError(reply)
        if self.is_begun and not reply["resumed"]:
            raise AssertionError(f"{self.name}: an import that had been answered is not known any more")
        if self.numbered and reply["resumed"] and reply["last_batch"] != self.survived:
            raise AssertionError(f"{self.name}: {self.survived} batches survived, {reply['last_batch']} is the last durable")
        if not reply["resumed"] and self.survived:
            raise AssertionError(f"{self.name}: batches without their import")
        ended = wire.call("END_IMPORT", origin=reply["origin"], outcome=2)
        if ended.name != "IMPORT_ENDED":
            raise AssertionError(ended)


class Saver(Writer):
    """Saves one record at a time, new ones and changed ones."""

    depth = 16

    def batch(self, random):
        if len(self.batches) > 1500:
            return None
        number = self.next_number() if random.random() < 0.7 or not self.number else random.randrange(1, self.number + 1)
        return [(title_key(number, self.name), title(number, f"Film {number} {random.random()}", self.name))]


class Deleter(Writer):
    """Deletes what it had saved, singly and in batches."""

    depth = 6

    def prepare(self, wire, random):
        fresh = []
        for _ in range(400):
            number = self.next_number()
            fresh.append((title_key(number, self.name), title(number, f"Film {number}", self.name)))
        wire.saved([save(record) for _, record in fresh])
        self.model.update(fresh)
        self.victims = list(self.model)
        random.shuffle(self.victims)

    def batch(self, random):
        count = random.choice((1, 1, 1, 10))
        taken, self.victims = self.victims[:count], self.victims[count:]
        return [(key, None) for key in taken] or None


class Clearer:
    """Fills a kind, then clears it (or everything); all or nothing may be there afterwards."""

    def __init__(self, name, kind):
        self.name = name
        self.kind = kind
        self.number = 0
        self.before = {}
        self.is_used = False
        self.answered = None
        self.failure = None

    def run(self, wire, random, ready):
        try:
            self.is_used, self.answered = True, False
            with wire:
                while len(self.before) < JOKE_COUNT:
                    fresh = {}
                    for _ in range(500):
                        self.number += 1
                        record = joke(self.number, f"Joke {self.number}")
                        fresh[record[2:18]] = record
                    wire.saved([save(record, JOKE) for record in fresh.values()])
                    self.before.update(fresh)
                ready.wait()
                request_id = wire.send("CLEAR", kind=self.kind)
                try:
                    while True:
                        frame = wire.receive()
                        if frame.name == "CLEARED":
                            self.answered = True
                            return
                        if frame.name != "PROGRESS" or frame.id != request_id:
                            raise AssertionError(frame)
                except Closed:
                    return
        except (Closed, ConnectionError):
            ready.wait_or_abort()
        except BaseException as error:
            self.failure = error
            ready.abort()

    @property
    def unanswered(self):
        return 1 if self.is_used and not self.answered else 0

    def check(self, actual):
        """True if the clear was carried out."""
        done = self.is_used and not actual and bool(self.before)
        if actual != self.before and not done:
            raise AssertionError(f"{self.name}: {len(self.before)} records before a clear, {len(actual)} after the crash")
        if self.answered and self.before and not done:
            raise AssertionError(f"{self.name}: the clear had been answered, the records are there")
        self.before = actual
        return done


class Ready:
    """Lets the clock run when every writer is ready."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count)

    def wait(self):
        self.barrier.wait(30)

    def wait_or_abort(self):
        pass

    def abort(self):
        self.barrier.abort()


class Subscriber:
    """Follows over all crashes; each time it goes on from its cursor. `slow`: a small window, and it dawdles."""

    def __init__(self, name, snapshot=False, slow=False):
        self.name = name
        self.resumed_snapshots = 0
        self.snapshot = snapshot
        self.window, self.pause = (3000, 0.004) if slow else (16_000, 0.002) if snapshot else (1 << 18, 0)
        self.forget()

    def forget(self):
        """Begins anew."""
        self.follower = None
        self.model = {}
        self.failure = None
        self.goal = None
        self.begun_at = 0

    def start(self, host, epoch):
        self.goal = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(host, epoch), daemon=True)
        self.thread.start()

    def _run(self, host, epoch):
        try:
            with host.wire(self.name) as wire:
                self._follow(wire, epoch)
        except (Closed, ConnectionError, FileNotFoundError):
            pass
        except BaseException as error:
            self.failure = error
        finally:
            self.done.set()

    def _follow(self, wire, epoch):
        old = self.follower
        if old is None and self.snapshot:
            request_id, reply = wire.subscribe(3, ALL_TYPES, credit=self.window)
        elif old is None:
            request_id, reply = wire.subscribe(1, ALL_TYPES, epoch=epoch, seq=0, credit=self.window)
        elif self.snapshot and old.snapshot_end is None:
            self.resumed_snapshots += 1
            request_id, reply = wire.subscribe(4, ALL_TYPES, epoch=old.epoch, seq=old.seq, s0=old.s0, credit=self.window)
        else:
            request_id, reply = wire.subscribe(1, ALL_TYPES, epoch=old.epoch, seq=old.seq, credit=self.window)
        if reply.name != "SUBSCRIBED":
            raise AssertionError(f"{self.name}: {reply}")
        if old is None:
            self.follower = Follower(reply, ALL_TYPES)
        elif reply["after"] != old.seq:
            raise AssertionError(f"{self.name}: goes on after {reply['after']}, not {old.seq}")
        follower, owed = self.follower, 0
        while self.goal is None or follower.seq < self.goal or self.snapshot and follower.snapshot_end is None:
            frame = wire.receive()
            if frame.name not in ("EVENTS", "SNAPSHOT_END"):
                raise AssertionError(f"{self.name}: {frame}")
            apply(self.model, follower.take(frame))
            if frame.name == "EVENTS":
                owed += HEADER_BYTES + len(frame.body)
                if owed * 2 >= self.window:
                    if self.pause and self.goal is None:
                        time.sleep(self.pause)
                    wire.notice("CREDIT", request_id, bytes=owed)
                    owed = 0

    def reach(self, seq):
        """Follows up to a seq; then ends."""
        self.goal = seq

    def join(self):
        if not self.done.wait(60):
            raise AssertionError(f"{self.name}: did not get to seq {self.goal}, it is at {self.follower and self.follower.seq}")
        if self.failure:
            raise AssertionError(f"{self.name}: {self.failure!r}") from self.failure

    def check_received(self, log, last):
        """What it has is what the log has, entry for entry, with nothing missing and nothing twice."""
        follower = self.follower
        if follower is None:
            return
        if follower.seq > last:
            raise AssertionError(f"{self.name}: was told of seq {follower.seq}; after the restart the log ends at {last}")
        begin = follower.s0 if self.snapshot else 0
        for entry in follower.entries:
            if entry.identity not in log.identities:
                raise AssertionError(f"{self.name}: {entry} was received, and is not in the log after the restart")
        mine = [entry.seq for entry in follower.entries if entry.seq > begin]
        theirs = [entry.seq for entry in log.entries if begin < entry.seq <= follower.seq]
        if mine != theirs:
            raise AssertionError(f"{self.name}: {len(mine)} entries behind {begin}, the log has {len(theirs)} up to {follower.seq}")


class Log:
    def __init__(self, entries):
        self.entries = entries
        self.identities = {entry.identity for entry in entries}


class CrashTests(HostCase):
    def begin_library(self, at):
        if getattr(self, "current", None):
            self.hosts.remove(self.current)
        self.current = self.host(f"host{at}", f"library{at}", start=False)
        self.writers = [Importer("numbered", True), Importer("unnumbered", False), Saver("single"), Deleter("deleter")]
        self.clearer = Clearer("clear", JOKE.number)
        self.subscribers = [Subscriber("cursor"), Subscriber("snapshot", snapshot=True), Subscriber("slow", slow=True)]
        self.rounds_here = 0
        self.is_large_here = False
        self.entry_count = 0

    def test_nothing_acknowledged_or_told_is_lost_when_the_host_is_killed(self):
        rounds = int(os.environ.get("LARDER_ROUNDS") or 30)
        counted = discarded = libraries = 0
        self.survivors = self.clears = self.unanswered_sum = self.unfinished_clears = self.resumed_snapshots = 0
        self.clear_seconds = 0.03
        self.expected_forms = {}
        modes = ["writes", "writes", "clear", "writes", "large", "clear all"]
        while counted < rounds:
            if libraries == 0 or self.entry_count > ENTRIES_MAX or self.rounds_here >= ROUNDS_ON_ONE_LIBRARY:
                libraries += 1
                self.begin_library(libraries)
            mode = modes[counted % len(modes)]
            self.rounds_here += 1
            try:
                unanswered = self.crash(mode)
                self.verify(mode)
            except BaseException:
                print(f"\nround {counted + 1} ({mode}), library {libraries}, round {self.rounds_here} on it", file=sys.stderr)
                raise
            if unanswered:
                counted += 1
                self.unanswered_sum += unanswered
            else:
                discarded += 1
                self.assertLess(discarded, 4 * rounds + 20, "the kill comes too late in too many rounds")
        print(f"\ncrash: {counted} rounds counted, {discarded} discarded, {libraries} libraries; {self.unanswered_sum} operations "
              f"unanswered at the kill, of which {self.survivors} batches had survived; {self.clears} clears done and "
              f"{self.unfinished_clears} undone; {self.resumed_snapshots} snapshots resumed",
              file=sys.stderr)

    def crash(self, mode):
        """One life of the host; gives how many requests were unanswered at the kill."""
        host, rng = self.current, self.random
        host.start()
        with host.wire() as wire:
            epoch = wire.welcome["epoch"]
        if rng.random() < 0.5:
            self.subscribers[1].forget()
        clears = mode.startswith("clear")
        if mode == "clear all":
            actors = [self.clearer]
        elif clears:
            actors = [*rng.sample(self.writers, 2), self.clearer]
        else:
            actors = list(self.writers)
        self.clearer.kind = 0 if mode == "clear all" else JOKE.number
        self.clearer.is_used = False
        for writer in self.writers:
            writer.batches, writer.is_answered = [], []
        for importer in self.writers[:2]:
            importer.token = None
            importer.large = mode == "large" and importer.numbered
        for subscriber in self.subscribers:
            subscriber.start(host, epoch)
        ready = Ready(len(actors) + 1)
        threads = []
        for actor in actors:
            wire = host.wire(actor.name)
            seeded = type(rng)(rng.random())
            threads.append(threading.Thread(target=actor.run, args=(wire, seeded, ready), daemon=True))
            threads[-1].start()
        with_failure = [*actors]
        try:
            ready.wait()
        except threading.BrokenBarrierError:
            for actor in with_failure:
                if actor.failure:
                    raise actor.failure
            raise
        time.sleep(rng.uniform(0, self.clear_seconds if clears else 0.25))
        host.kill()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        for actor in actors:
            if actor.failure:
                raise AssertionError(f"{actor.name}: {actor.failure!r}") from actor.failure
        for subscriber in self.subscribers:
            subscriber.join()
        self.resumed_snapshots += self.subscribers[1].resumed_snapshots
        self.subscribers[1].resumed_snapshots = 0
        if clears:
            # Aim at the time that a clear takes.
            self.clear_seconds *= 1.15 if self.clearer.unanswered else 0.75
            return self.clearer.unanswered
        return sum(writer.unanswered for writer in actors)

    def verify(self, mode):
        """Starts the host again and compares everything."""
        host = self.current
        host.start()
        with host.wire("verifier") as wire:
            last = wire.welcome["last_seq"]
            log = Log(read_log(host, until=last))
            self.entry_count = len(log.entries)
            for subscriber in self.subscribers:
                subscriber.check_received(log, last)
            listed = list_all(wire)
            actual = as_model(listed)
            self.assertEqual(list(replay(log.entries).items()), list(actual.items()), "the log replayed is not what LIST says")
            newest_first = list_all(wire, reverse=True, limit=701)
            self.assertEqual([record["key"] for record in newest_first], [record["key"] for record in reversed(listed)])
            counts = {item["kind"]: item["records"] for item in wire.call("COUNT", kind=0)["counts"]}
            for kind in BY_KIND:
                self.assertEqual(counts.get(kind, 0), sum(1 for key in actual if key[0] == kind))
            self.check_writers(mode, actual)
            self.check_reader(listed)
            for importer in self.writers[:2]:
                if importer.token:
                    with host.wire(importer.name) as again:
                        importer.resume(again)
            for subscriber in self.subscribers:
                subscriber.start(host, wire.welcome["epoch"])
            with host.wire() as late:
                last = late.welcome["last_seq"]
            for subscriber in self.subscribers:
                subscriber.reach(last)
            # Something must come for those that wait already: a last change.
            marker = self.writers[2]
            number = marker.next_number()
            record = title(number, "the end of a round", marker.name)
            wire.saved([save(record)])
            marker.model[title_key(number, marker.name)] = record
            log = Log(read_log(host))
            final = as_model(list_all(wire))
            for subscriber in self.subscribers:
                subscriber.join()
                subscriber.check_received(log, log.entries[-1].seq)
                upto = replay(entry for entry in log.entries if entry.seq <= subscriber.follower.seq)
                self.assertEqual(subscriber.model, upto, f"{subscriber.name}: its replay is not the library")
            self.assertEqual(final, replay(log.entries))
        host.kill()

    def check_writers(self, mode, actual):
        cleared_all = False
        jokes = {key: value[2] for (kind, key), value in actual.items() if kind == JOKE.number}
        if mode == "clear all":
            before = {(JOKE.number, key): record for key, record in self.clearer.before.items()}
            for writer in self.writers:
                before.update({(TITLE.number, key): record for key, record in writer.model.items()})
            cleared_all = not actual and bool(before)
            if not cleared_all:
                self.assertEqual(before, {key: value[2] for key, value in actual.items()}, "a part of everything was cleared")
            self.assertFalse(self.clearer.answered and not cleared_all)
            if cleared_all:
                for writer in self.writers:
                    writer.model = {}
        if self.clearer.is_used:
            if self.clearer.check(jokes):
                self.clears += 1
            else:
                self.unfinished_clears += 1
        else:
            self.assertTrue(jokes == self.clearer.before, "jokes that nobody touched have changed")
        by_source = {writer.name: {} for writer in self.writers}
        for (kind, key), value in actual.items():
            if kind == TITLE.number:
                by_source[key[1:1 + key[0]].decode()][key] = value[2]
        for writer in self.writers:
            self.survivors += writer.check(by_source[writer.name])

    def check_reader(self, listed):
        """The independent reader finds the same records in the files."""
        done = subprocess.run([sys.executable, READER, self.current.library], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
        expected = []
        for record in listed:
            kind = BY_KIND[record["kind"]]
            form = self.expected_forms.get(record["record"])
            if form is None:
                form = self.expected_forms[record["record"]] = record_to_json(kind, decode_record(kind, record["record"]))
            expected.append((kind.name, record["seq"], record["first_seq"], form))
        self.assertEqual([(item["kind"], item["seq"], item["saved_seq"], item["record"]) for item in found], expected)


if __name__ == "__main__":
    unittest.main()
