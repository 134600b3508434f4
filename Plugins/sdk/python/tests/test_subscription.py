"""Taking events one by one, and waiting for what was committed, whatever the credit."""

import asyncio
import threading
import time
import unittest

import larder
from larder.aio import AsyncClient
from larder.client import Client
from larder.events import SubscriptionState

from .peer import EPOCH, TITLE, Peer, created, events, frame, greeting, kinds, run
from .scripts import RAW, ends

NOW = {"start": 2, "types": 7, "kinds": [], "except": 0, "credit": 200}
BEGUN = [*greeting(), *kinds(2), ("expect", frame("SUBSCRIBE", 3, NOW)),
         ("send", frame("SUBSCRIBED", 3, {"epoch": EPOCH, "after": 6, "s0": 0, "floor": 1}))]


def saved(seq):
    return events(3, seq - 1, seq, run(seq, 1_000, created(seq, seq, RAW)))


COST = len(saved(7))
# A frame is less than half of the credit, two are more.
assert COST * 2 < 200 <= 4 * COST

# The host sends while there is credit: two frames, then two when they are paid for, though nobody took one.
SYNC = [
    *BEGUN, ("expect", frame("SYNC", 4, {"subscription": 3})), ("send", saved(7) + saved(8)),
    ("expect", frame("CREDIT", 3, {"bytes": 2 * COST})), ("send", saved(9) + saved(10)),
    ("expect", frame("CREDIT", 3, {"bytes": 2 * COST})), ("send", saved(11) + frame("SYNCED", 4, {"through": 11})),
    # Taking the five owes for the last one alone; with one more it is time to pay.
    ("expect", frame("PING", 5, {"bytes": b""})), ("send", frame("PONG", 5, {"bytes": b""}) + saved(12)),
    ("expect", frame("CREDIT", 3, {"bytes": 2 * COST})), *ends(),
]

FULL = [
    *BEGUN, ("expect", frame("SYNC", 4, {"subscription": 3})), ("send", saved(7) + saved(8)),
    ("expect", frame("CREDIT", 3, {"bytes": 2 * COST})), ("send", frame("SYNCED", 4, {"through": 8})),
    ("expect", frame("SYNC", 5, {"subscription": 3})), ("send", frame("SYNCED", 5, {"through": 8})), *ends(),
]

POLL = [
    *BEGUN, ("expect", frame("PING", 4, {"bytes": b""})),
    ("send", events(3, 6, 6) + saved(7) + frame("PONG", 4, {"bytes": b""})),
    ("expect", frame("PING", 5, {"bytes": b""})), ("send", frame("PONG", 5, {"bytes": b""}) + saved(8)),
    # For the heartbeat and the first of the frames.
    ("expect", frame("CREDIT", 3, {"bytes": 28 + COST})),
    ("expect", frame("UNSUBSCRIBE", 6, {"subscription": 3})),
    ("send", saved(9) + frame("UNSUBSCRIBED", 6, {"through": 9})), *ends(),
]


class SubscriptionTests(unittest.TestCase):
    def play(self, script):
        peer = Peer(script)
        self.addCleanup(peer.finish)
        client = Client(peer.client_end, "test", timeout=10)
        self.addCleanup(client.close)
        return client, client.subscribe(credit=200)

    def test_a_sync_gives_credit_for_what_it_queues(self):
        library, subscription = self.play(SYNC)
        self.assertEqual(subscription.sync(), 11)
        self.assertEqual([subscription.poll().seq for _ in range(5)], [7, 8, 9, 10, 11])
        self.assertIsNone(subscription.poll())
        library.ping()
        self.assertEqual(subscription.poll(5).seq, 12)
        self.assertIsNone(subscription.poll())

    def test_a_sync_that_would_queue_too_much_raises_and_can_be_asked_again(self):
        library, subscription = self.play(FULL)
        with self.assertRaises(larder.QueueFull):
            subscription.sync(queue_bytes=COST)
        self.assertEqual([subscription.poll().seq for _ in range(2)], [7, 8])
        self.assertIsNone(subscription.poll())
        self.assertEqual(subscription.sync(queue_bytes=COST), 8)
        self.assertEqual(library._replies, {})

    def test_polling(self):
        library, subscription = self.play(POLL)
        begun = time.monotonic()
        self.assertIsNone(subscription.poll())
        self.assertIsNone(subscription.poll(0.05))
        self.assertGreaterEqual(time.monotonic() - begun, 0.05)
        self.assertFalse(library.is_closed)
        library.ping()
        self.assertEqual((subscription.poll(5).seq, str(subscription.cursor)), (7, f"{EPOCH:016x}-7"))
        library.ping()
        self.assertEqual(subscription.poll(None).seq, 8)
        subscription.unsubscribe()
        self.assertFalse(subscription.is_ended)
        self.assertEqual((subscription.poll().seq, subscription.poll(5), subscription.is_ended), (9, None, True))

    def test_stop_ends_a_poll(self):
        library, subscription = self.play([*BEGUN, *ends()])
        threading.Timer(0.05, library.stop).start()
        self.assertIsNone(subscription.poll(10))
        self.assertTrue(subscription.is_ended)

    def test_polling_after_iterating_goes_on_within_the_frame(self):
        script = [*BEGUN, ("send", events(3, 6, 8, run(7, 1, created(7, 7, RAW) + created(8, 7, RAW)))), *ends()]
        _, subscription = self.play(script)
        for event in subscription:
            self.assertEqual(event.seq, 7)
            break
        self.assertEqual(subscription.poll(5).seq, 8)


    def test_polling_while_iterating_loses_nothing(self):
        frames = [events(3, 6, 8, run(7, 1, created(7, 7, RAW) + created(8, 7, RAW))),
                  events(3, 8, 10, run(9, 1, created(9, 9, RAW) + created(10, 9, RAW)))]
        _, subscription = self.play([*BEGUN, ("send", b"".join(frames)), ("send", frame("GOODBYE_HOST", 0, {
            "error": 0, "reason": ""})), ("expect", frame("CREDIT", 3, {"bytes": len(frames[0])})), ("close", None)])
        seen = []
        for event in subscription:
            seen.append(event.seq)
            if event.seq == 7:
                seen += [subscription.poll(5).seq, subscription.poll(5).seq]
        self.assertEqual(seen, [7, 8, 9, 10])


class CreditTests(unittest.TestCase):
    def test_credit_is_owed_once_for_each_byte(self):
        state = SubscriptionState(1, {1: TITLE}, 3, 200, False, False, False)
        state.seq = 0
        given = 0
        for round in range(50):
            for seq in (2 * round + 1, 2 * round + 2):
                state.push("EVENTS", saved(seq)[12:], {})
            if round % 3 == 0:
                given += state.owed_ahead()
            taken = state.drain()
            next(taken)
            if round % 5 == 0:  # in the middle of a frame
                given += state.owed_ahead()
            self.assertEqual(list(taken), [])
            if round % 2:
                list(state.drain())
            given += state.owed()
        while state.has_frames:
            list(state.drain())
        state.credit = 0
        given += state.owed()
        self.assertEqual((given, state.queued_bytes), (sum(len(saved(seq)) for seq in range(1, 101)), 0))

    def test_a_frame_that_is_being_taken_is_paid_for_when_the_answer_depends_on_it(self):
        state = SubscriptionState(1, {1: TITLE}, 3, 100, False, False, False)
        state.push("EVENTS", saved(1)[12:], {})
        taken = state.drain()
        next(taken)
        self.assertEqual((state.owed_ahead(), state.owed_ahead()), (COST, 0))
        self.assertEqual((list(taken), state.owed()), ([], 0))


class AsyncSubscriptionTests(unittest.IsolatedAsyncioTestCase):
    async def play(self, script):
        peer = Peer(script)
        loop = asyncio.get_running_loop()
        peer.client_end.setblocking(False)
        _, client = await loop.create_unix_connection(AsyncClient, sock=peer.client_end)
        await client._greet("test", "0", b"", 0)

        async def finish():
            await client.close()
            await loop.run_in_executor(None, peer.finish)

        self.addAsyncCleanup(finish)
        return client, await client.subscribe(credit=200)

    async def test_a_sync_gives_credit_for_what_it_queues(self):
        library, subscription = await self.play(SYNC)
        self.assertEqual(await subscription.sync(), 11)
        self.assertEqual([(await subscription.poll()).seq for _ in range(5)], [7, 8, 9, 10, 11])
        self.assertIsNone(await subscription.poll())
        await library.ping()
        self.assertEqual((await subscription.poll(5)).seq, 12)
        self.assertIsNone(await subscription.poll())

    async def test_a_sync_that_would_queue_too_much_raises_and_can_be_asked_again(self):
        library, subscription = await self.play(FULL)
        with self.assertRaises(larder.QueueFull):
            await subscription.sync(queue_bytes=COST)
        self.assertEqual([(await subscription.poll()).seq for _ in range(2)], [7, 8])
        self.assertIsNone(await subscription.poll())
        self.assertEqual(await subscription.sync(queue_bytes=COST), 8)
        self.assertEqual(library._replies, {})

    async def test_polling(self):
        library, subscription = await self.play(POLL)
        self.assertIsNone(await subscription.poll())
        self.assertIsNone(await subscription.poll(0.05))
        self.assertFalse(library.is_closed)
        await library.ping()
        self.assertEqual((await subscription.poll(5)).seq, 7)
        await library.ping()
        self.assertEqual((await subscription.poll(None)).seq, 8)
        await subscription.unsubscribe()
        self.assertFalse(subscription.is_ended)
        self.assertEqual((await subscription.poll()).seq, 9)
        self.assertIsNone(await subscription.poll(5))
        self.assertTrue(subscription.is_ended)
