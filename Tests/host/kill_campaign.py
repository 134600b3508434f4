"""A real host is killed with SIGKILL, again and again, under importers, deleters, subscribers and commands.

    kill_campaign.py [ROUNDS]       LARDER_ROUNDS, LARDER_SEED and LARDER_BIN say the rest

Each round starts the host on the same library, compares all that it holds with all that was sent, answered and told in
the lives before, lets four importers, two deleters and eight subscribers (and sometimes a clear) work, and kills it at
a random moment: while it opens, at the first commits, or later. Commands run beside it: verify, backup, compact. A seed
gives the same choices; the timing of two runs is never the same.

kill -9 ends the process, not the machine: what was written and not synced survives it. For power cuts see the store's
own tests.
"""

import os
import random
import selectors
import shutil
import sys
import tempfile
import time

from harness import ALL_TYPES, HEADER_BYTES, Host, HostDied, list_all, span_of
from kill_commands import Commands
from kill_entries import Broken, Entry, cut
from kill_log import Ledger
from kill_peers import Clearer, Deleter, Importer, NumberedImporter
from kill_pool import Pool
from kill_subscribers import AFTER, Anchor, eight

ROUNDS_ON_ONE_LIBRARY = 40
ENTRIES_MAX = 120_000
CREDIT = 4 << 20


class Campaign:
    """Rounds of one seed. `tamper`, where given, is called with the library's path after each kill."""

    def __init__(self, directory, seed, say=print, tamper=None):
        self.directory, self.random, self.say, self.tamper = directory, random.Random(seed), say, tamper
        self.rounds = self.libraries = self.acked = self.events = self.unanswered = self.survived = 0
        self.retried_idle = self.retried_again = self.snapshots = self.expired = self.recovered = self.clears = 0
        self.early_kills = 0
        self.commands = Commands(directory, self.random)
        self.host = None

    # A library.

    def begin_library(self):
        rng = self.random
        self.libraries += 1
        self.host = Host(self.directory, f"library{self.libraries}", f"host{self.libraries}")
        segment = rng.choice((64, 256, 1024))
        self.arguments = ["--segment", str(segment)]
        pool = Pool(rng.choice((100, 400)), rng.choice((50, 200)))
        self.ledger, self.epoch, self.rounds_here = Ledger(), None, 0
        self.writers = [
            NumberedImporter("imp1", pool, rng), NumberedImporter("imp2", pool, rng), Importer("imp3", pool, rng),
            Importer("imp4", pool, rng), Deleter("del1", pool, rng), Deleter("del2", pool, rng)]
        self.clearer = Clearer("clr1", pool, rng)
        self.subscribers = eight(rng)
        self.anchor = Anchor("anchor", rng)
        self.active = []

    def finish_library(self):
        """Everything once more, with every subscriber brought to the end; then the files by themselves."""
        self.host.start(*self.arguments)
        self.check()
        self.catch_up()
        if self.host.stop() != 0:
            raise HostDied(f"SIGTERM did not end it in order:\n{self.host.log()}")
        self.commands.check_files(self.host, self.ledger)
        self.events += sum(subscriber.event_count for subscriber in self.subscribers)
        self.snapshots += sum(subscriber.snapshot_count for subscriber in self.subscribers)
        self.expired += sum(subscriber.expired_count for subscriber in self.subscribers)
        self.recovered += self.ledger.recovered
        self.retried_idle += self.ledger.retried_idle
        self.retried_again += self.ledger.retried_again
        shutil.rmtree(self.host.library)
        self.host = None

    # A round.

    def round(self):
        if self.host is None:
            self.begin_library()
        self.rounds += 1
        self.rounds_here += 1
        if self.random.random() < 0.1:
            self.kill_while_opening()
        self.host.start(*self.arguments)
        self.check()
        self.work_and_kill()
        if self.rounds_here >= ROUNDS_ON_ONE_LIBRARY or len(self.ledger.log) > ENTRIES_MAX:
            self.finish_library()

    def kill_while_opening(self):
        self.host.start(*self.arguments, wait=False)
        time.sleep(self.random.uniform(0, 0.04))
        self.host.kill()
        self.early_kills += 1

    def check(self):
        """What the host that has just started holds, against the account of everybody."""
        ledger = self.ledger
        with self.host.wire("check") as wire:
            last = self.last_seq = wire.welcome["last_seq"]
            self.floor = wire.welcome["floor"]
            if self.epoch not in (None, wire.welcome["epoch"]):
                raise Broken("wrong", f"the epoch was {self.epoch:x}, and is {wire.welcome['epoch']:x}")
            self.epoch = wire.welcome["epoch"]
            if last < ledger.last_seq:
                raise Broken("lost", f"the log ends at seq {last}, it had come to {ledger.last_seq}")
            fresh = read_behind(wire, self.epoch, ledger.last_seq, last)
            ledger.append(fresh)
            for subscriber in self.subscribers:
                subscriber.check(ledger, last)
            ledger.account(fresh, {writer.name: writer.sent for writer in self.active})
            for importer in self.active[:2]:
                importer.check_imports(ledger)
            counts = {item["kind"]: item["records"] for item in wire.call("COUNT", kind=0)["counts"]}
            ledger.check_listed(list_all(wire), counts)
        for writer in self.active:
            waiting = [sent for sent in writer.sent if not sent.is_answered]
            self.unanswered += len(waiting)
            self.survived += sum(1 for sent in waiting if sent.is_found)
        self.active = []

    def work_and_kill(self):
        rng, selector = self.random, selectors.DefaultSelector()
        self.active = list(self.writers)
        if rng.random() < 0.12:
            self.active.append(self.clearer)
            self.clears += 1
        for subscriber in self.subscribers:
            subscriber.prepare(self.ledger, self.epoch, self.floor)
        self.anchor.prepare(self.ledger, self.epoch)
        peers = [*self.active, *self.subscribers]
        rng.shuffle(peers)
        peers.insert(0, self.anchor)
        seconds = rng.uniform(0, 0.02) if rng.random() < 0.25 else rng.uniform(0.02, 0.4)
        operations_max = rng.uniform(0, 6000)
        goal = self.acked_operations() + operations_max
        end = time.monotonic() + seconds
        for peer in peers:
            peer.open(self.host.socket, selector)
        self.commands.start(self.host)
        while time.monotonic() < end and self.acked_operations() < goal:
            turn(selector, peers, end)
        self.host.kill()
        for peer in peers:
            peer.drain()
        selector.close()
        self.acked += sum(1 for writer in self.active for sent in writer.sent if sent.is_answered)
        for importer in self.writers[:2]:
            importer.check_begun(self.ledger)
        self.commands.finish()
        if self.tamper:
            self.tamper(self.host.library)

    def acked_operations(self):
        return sum(writer.acked_operations for writer in self.active)

    def catch_up(self):
        """Every subscriber comes to the end of the log."""
        selector = selectors.DefaultSelector()
        for subscriber in self.subscribers:
            subscriber.prepare(self.ledger, self.epoch, self.floor, goal=self.ledger.last_seq)
            subscriber.open(self.host.socket, selector)
        end = time.monotonic() + 60
        while not all(subscriber.is_there for subscriber in self.subscribers):
            if time.monotonic() > end:
                late = [subscriber.name for subscriber in self.subscribers if not subscriber.is_there]
                raise Broken("gap", f"{late} did not come to seq {self.ledger.last_seq} within 60 s")
            turn(selector, self.subscribers, end)
        for subscriber in self.subscribers:
            subscriber.leave()
            # The log's last entry may be one that nobody is told of: a floor.
            subscriber.check(self.ledger, self.last_seq)
        selector.close()

    def summary(self):
        return (f"{self.rounds} rounds: {self.acked} batches acked, {self.events} events, 0 lost, 0 half, 0 early, "
                f"0 gaps; {self.libraries} libraries, {self.early_kills} more kills while opening, {self.unanswered} "
                f"batches under way at the kill of which {self.survived} had survived; sent again, {self.retried_idle} "
                f"changed nothing and {self.retried_again} what others had changed meanwhile; {self.clears} clears, "
                f"{self.snapshots} snapshots, {self.expired} cursors expired, {self.recovered} torn ends; {self.commands}")

    def run(self, rounds):
        """All rounds. A failure tells the round and where the library is, and is raised."""
        begun = time.monotonic()
        try:
            for _ in range(rounds):
                self.round()
                if self.rounds % 100 == 0:
                    self.say(f"round {self.rounds}: {self.acked} batches acked, library {self.libraries} with "
                             f"{len(self.ledger.log)} entries, {time.monotonic() - begun:.0f} s")
            if self.host is not None:
                self.finish_library()
        except BaseException as error:
            if self.host is not None:
                self.host.kill()
                self.say(f"round {self.rounds}, the {self.rounds_here}. on {self.host.library}: {error!r}")
            raise
        self.say(self.summary())


def turn(selector, peers, end):
    """One turn: what came is taken, what is due is done."""
    for key, events in selector.select(max(0.0, min(0.003, end - time.monotonic()))):
        if events & selectors.EVENT_WRITE:
            key.data.flush()
        if events & selectors.EVENT_READ and not key.data.receive():
            raise HostDied(f"the host closed the connection of {key.data.name}")
    now = time.monotonic()
    for peer in peers:
        peer.tick(now)


def read_behind(wire, epoch, seq, last):
    """The entries of the log behind a seq."""
    if seq == last:
        return []
    request_id, reply = wire.subscribe(AFTER, ALL_TYPES, epoch=epoch, seq=seq, credit=CREDIT)
    if reply.name != "SUBSCRIBED":
        raise Broken("lost", f"the log cannot be read behind seq {seq}: {reply}")
    found, cursor, owed = [], seq, 0
    while cursor < last:
        frame = wire.receive()
        if frame.name != "EVENTS":
            raise Broken("wrong", f"reading the log at {cursor}: {frame}")
        after, cursor = span_of(frame.body)
        found += [Entry(*item) for item in cut(frame.body)]
        owed += HEADER_BYTES + len(frame.body)
        if owed * 2 > CREDIT:
            wire.notice("CREDIT", request_id, bytes=owed)
            owed = 0
    wire.call("UNSUBSCRIBE", subscription=request_id)
    return found


def main(arguments):
    rounds = int(arguments[0] if arguments else os.environ.get("LARDER_ROUNDS") or 2000)
    seed = int(os.environ.get("LARDER_SEED") or random.SystemRandom().randrange(1 << 32))
    directory = tempfile.mkdtemp(prefix="larder-kill-")
    print(f"LARDER_SEED={seed} gives these choices again; {rounds} rounds in {directory}", flush=True)
    try:
        Campaign(directory, seed, lambda text: print(text, flush=True)).run(rounds)
    except (Broken, HostDied) as error:
        print(f"{error}\nLARDER_SEED={seed}; everything is kept in {directory}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        shutil.rmtree(directory, ignore_errors=True)
        return 2
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
