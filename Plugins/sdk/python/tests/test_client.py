"""The synchronous client against scripts of exact bytes."""

import os
import socket
import threading
import time
import unittest
from unittest import mock

import larder
from larder import discovery
from larder.client import Client

from . import scripts
from .peer import Peer, frame, greeting


class ClientTests(unittest.TestCase):
    def play(self, script, timeout=10, **more):
        peer = Peer(script)
        self.addCleanup(peer.finish)
        client = Client(peer.client_end, "test", timeout=timeout, **more)
        self.addCleanup(client.close)
        return client

    def test_calls_and_their_exact_bytes(self):
        library = self.play(scripts.CALLS)
        saved = library.save("title", scripts.MATRIX)
        self.assertEqual((saved.outcome, saved.seq), ("created", 7))
        stored = library.get("title:tmdb/movie/603")
        self.assertEqual((stored.record, stored.key_text, stored.label),
                         (scripts.MATRIX, "title:tmdb/movie/603", "The Matrix"))
        with self.assertRaises(larder.NotFound) as caught:
            library.get("title", ("tmdb", "movie", 603))
        self.assertEqual((caught.exception.message, caught.exception.facts, caught.exception.may_retry),
                         ("gone", {"a": "b"}, True))
        self.assertEqual([item.seq for item in library.list("title", newest_first=True, page=1)], [7, 7])
        self.assertEqual(library.count(), {"title": 5})
        told = []
        self.assertEqual(library.clear("title", lambda *progress: told.append(progress)), 2)
        self.assertEqual(told, [(1, 2)])
        compacted = library.compact(dead_share=30, include_last=False, progress=lambda *progress: told.append(progress))
        self.assertEqual((compacted.bytes_after, compacted.subscriptions_ended, compacted.history_since), (300, 1, None))
        self.assertEqual(told, [(1, 2), (1, 3)])
        with self.assertRaises(larder.Conflict) as caught:
            library.compact(keep_history="none", purge=["title:tmdb/movie/603"], wait=1.5, bytes_per_second=0)
        self.assertEqual(caught.exception.place, 1)

    def test_a_pipeline_accounts_for_every_record(self):
        library = self.play(scripts.PIPELINE)
        records = [*scripts.MANY[:2], {"source": "", "id": 1}, *scripts.MANY[3:]]
        size = len(scripts.operation(scripts.MANY[0]))
        done = library.save_many("title", records, batch_bytes=1, window_bytes=2 * size)
        self.assertEqual((done.created, done.updated, done.unchanged, done.refused, done.read), (1, 1, 1, 2, 5))
        self.assertEqual(done.seq, 14)
        self.assertEqual([(item.position, item.error, item.local) for item in done.refusals],
                         [(2, "missing_field", True), (1, "missing_field", False)])

    def test_an_import_goes_on_behind_its_last_batch(self):
        library = self.play(scripts.IMPORT)
        with library.import_session("watched.csv", "t") as session:
            self.assertTrue(session.is_resumed)
            done = session.save_many("title", scripts.MANY[:2], batch_bytes=1)
            session.skip(2)
        self.assertEqual((done.created, done.already_durable, session.accounting.read), (1, 1, 3))

    def test_an_import_that_raises_ends_as_failed(self):
        library = self.play(scripts.FAILED_IMPORT)
        with self.assertRaises(ZeroDivisionError), library.import_session("x"):
            raise ZeroDivisionError

    def test_following_a_snapshot_to_the_hosts_goodbye(self):
        library = self.play(scripts.FOLLOW)
        subscription = library.subscribe(snapshot=True, credit=200, heartbeats=True, verify=True)
        seen = []
        for event in subscription:
            seen.append((event.type, event.seq, str(event.cursor)))
            if event.type == "created":
                self.assertEqual((event.record, event.raw, event.kind.name, event.origin, event.saved_at),
                                 (scripts.MATRIX, scripts.RAW, "title", 2, event.time))
        self.assertEqual(seen, scripts.SEEN)
        self.assertTrue(library.is_leaving)

    def test_a_gap_between_events_is_an_error(self):
        library = self.play(scripts.GAP)
        with self.assertRaises(larder.DecodeError):
            list(library.subscribe(snapshot=True, credit=200))

    def test_an_expired_cursor(self):
        library = self.play(scripts.EXPIRED)
        with self.assertRaises(larder.CursorExpired) as caught:
            library.subscribe(after=f"{scripts.EPOCH:016x}-5")
        self.assertEqual(caught.exception.facts, {"floor": "7"})

    def test_garbage_and_an_end_lose_the_connection(self):
        for script in (scripts.GARBAGE, scripts.CLOSED):
            library = self.play(script)
            self.assertRaises(larder.ConnectionLost, library.status)
            self.assertRaises(larder.ConnectionLost, library.status)

    def test_a_refused_hello(self):
        script = [greeting()[0], ("send", frame("ERROR", 1, {"error": 2, "flags": 1})), ("close", None)]
        with self.assertRaises(larder.VersionUnsupported):
            self.play(script)

    def test_a_host_that_opens_its_library_is_waited_for(self):
        told = []
        with mock.patch("larder.client.STATUS_SECONDS", 0.03):
            library = self.play(scripts.LATE, recovering=lambda status: told.append(status["reason"]))
        self.assertEqual(told, ["recovering 5 %", "recovering 60 %"])
        library.ping()

    def test_also_without_a_timeout_and_without_anybody_to_be_told(self):
        with mock.patch("larder.client.STATUS_SECONDS", 0.03):
            self.play(scripts.LATE, timeout=None).ping()

    def test_a_host_that_falls_silent_while_it_opens_its_library_is_given_up(self):
        told = []
        begun = time.monotonic()
        with self.assertRaises(TimeoutError):
            self.play(scripts.SILENT, timeout=0.4, recovering=lambda status: told.append(status["reason"]))
        self.assertEqual(len(told), 3)
        self.assertGreater(time.monotonic() - begun, 0.9)  # the timeout counts anew from each answer

    def test_who_is_told_can_end_the_waiting(self):
        def refuse(status):
            raise InterruptedError(status["reason"])

        with mock.patch("larder.client.STATUS_SECONDS", 0.03), self.assertRaises(InterruptedError):
            self.play([greeting()[0], *scripts.recovering(2, 5)], recovering=refuse)

    def test_stop_ends_a_waiting_iteration(self):
        library = self.play(scripts.STILL)
        subscription = library.subscribe(snapshot=True, credit=200)
        threading.Timer(0.05, library.stop).start()
        self.assertEqual(list(subscription), [])

    def test_silence_is_a_timeout(self):
        peer = Peer([*greeting(), ("expect", frame("STATUS", 2)), ("expect", b"x")])
        library = Client(peer.client_end, "test", timeout=0.05)
        self.assertRaises(TimeoutError, library.status)
        self.assertTrue(library.is_closed)
        self.assertRaises(AssertionError, peer.finish)

    def test_sending_goes_on_while_events_arrive(self):
        ours, theirs = socket.socketpair()
        flood = scripts.frame("PING", 5, {"bytes": b"z" * 64}) * 20_000

        def host():
            theirs.sendall(greeting()[1][1])
            theirs.sendall(flood)  # nothing is read before this is out
            theirs.settimeout(5)
            try:
                while theirs.recv(1 << 20):
                    pass
            except OSError:
                pass

        thread = threading.Thread(target=host, daemon=True)
        thread.start()
        library = Client(ours, "test", timeout=5)
        library._session.outgoing += scripts.frame("READY", 0) * 200_000
        library.close()
        theirs.close()
        thread.join(5)


class PluginTests(unittest.TestCase):
    def test_an_inherited_descriptor_and_settings(self):
        script = [
            *greeting("mirror"),
            ("expect", frame("REGISTER", 2, {"roles": 2, "events": 1, "kinds": ["title"], "commands": []})),
            ("send", frame("REGISTERED", 2, {"name": "my-mirror", "settings": [{"name": "n", "value": "[5]"}]})),
            ("expect", frame("READY", 0)), *scripts.ends()]
        peer = Peer(script)
        with mock.patch.dict(os.environ, {"LARDER_FD": str(peer.client_end.detach())}):
            with larder.Plugin("mirror", roles=["exporter"], events=["downloaded"], kinds=["title"]) as plugin:
                self.assertEqual((plugin.name, plugin.settings), ("my-mirror", {"n": [5]}))
                self.assertNotIn("LARDER_FD", os.environ)
        peer.finish()


class DiscoveryTests(unittest.TestCase):
    def test_where_the_socket_is(self):
        self.assertEqual(discovery.socket_path(environ={"LARDER_SOCKET": "/s"}), "/s")
        self.assertEqual(discovery.library_path({"LARDER_LIBRARY": "/l", "HOME": "/h"}), "/l")
        self.assertEqual(discovery.library_path({"XDG_DATA_HOME": "/d", "HOME": "/h"}), "/d/larder")
        self.assertEqual(discovery.library_path({"HOME": "/h"}), "/h/.local/share/larder")
        found = discovery.socket_path("/", {"XDG_RUNTIME_DIR": "/r"})
        self.assertEqual(found, "/r/larder/8a5edab282632443.sock")
        self.assertEqual(discovery.socket_path("/", {}), f"/tmp/larder-{os.getuid()}/8a5edab282632443.sock")


class SpeedTests(unittest.TestCase):
    def test_a_million_records_would_be_followed_in_reasonable_time(self):
        from larder.events import SubscriptionState
        from .peer import TITLE, created, run
        entries = b"".join(created(seq, 1, scripts.RAW) for seq in range(1, 501))
        body = (0).to_bytes(8, "little") + (500).to_bytes(8, "little") + run(1, 0, entries)
        state = SubscriptionState(1, {1: TITLE}, 3, 1 << 20, False, False, False)
        begun, count = time.perf_counter(), 0
        for _ in range(20):
            state.seq = 0
            state.push("EVENTS", body, {})
            for event in state.drain():
                count += len(event.raw) > 0
        rate = count / (time.perf_counter() - begun)
        self.assertEqual(count, 10_000)
        self.assertGreater(rate, 5_000, f"{rate:.0f} events/s")  # far below what an idle machine makes
