"""Sessions of a real host: many of them, who may have one, how they and the host end, imports, listings."""

import os
import signal
import socket
import stat
import sys
import threading
import time
import unittest

from harness import (BY_NAME, JOKE, NOBODY, PREFACE, RESULTS, TITLE, Closed, Host, HostCase, answer_to_user, as_model, delete,
                     encode_frame, encode_record, entries_of, joke, larder, list_all, read_log, save, shipped_kinds, title,
                     title_key, write_body)

CYCLES = 10_000
WARM_UP_CYCLES = 2_000
# What 8,000 more sessions may leave behind.
FLAT_BYTES = 1 << 20
# SIGTERM to exit, with a client that reads; and with one that does not (the host gives up on it after 5 s).
STOP_SECONDS, STOP_DEAF_SECONDS = 3, 9


def raise_if_wrong(reply, name="WRITTEN"):
    if reply.name != name:
        raise AssertionError(reply)
    return reply


class CycleTests(HostCase):
    def test_ten_thousand_sessions_leave_nothing_behind(self):
        host = self.host()
        with host.wire("writer") as writer:
            writer.saved([save(title(number)) for number in range(1, 200)])
            last, epoch = writer.call("STATUS")["last_seq"], writer.welcome["epoch"]
            hello = PREFACE + encode_frame(1, 1, BY_NAME["HELLO"].encode(
                {"version_min": 1, "version_max": 1, "name": "visitor", "version": "1", "required": [], "optional": []}))

            def subscribe(start, credit):
                fields = {"start": start, "types": 3, "kinds": [], "credit": credit}
                if start == 1:
                    fields.update(epoch=epoch, seq=max(0, last - 20))
                return encode_frame(10, 2, BY_NAME["SUBSCRIBE"].encode(fields))

            endings = [encode_frame(0x11, 0, b"\0\0"), b"", encode_frame(12, 3, b"\2\0\0\0"), encode_frame(5, 4, b"\1\1"), b"\1\2\3"]
            for at in range(CYCLES):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.connect(host.socket)
                    sock.settimeout(30)
                    sock.sendall(hello)
                    self.assertTrue(sock.recv(4096))
                    sock.sendall(subscribe((1, 2, 3)[at % 3], (0, 1 << 16)[at % 2]))
                    self.assertTrue(sock.recv(65536))
                    sock.sendall(endings[at % len(endings)])
                    # What is saved stays in memory for a while: not in the part that is measured.
                    if at % 7 == 0 and at < WARM_UP_CYCLES:
                        writer.saved([save(title(1 + at % 199, f"Changed {at}"))])
                if at == WARM_UP_CYCLES:
                    self.eventually(lambda: host.descriptor_count() < 40, 10, "the end of closed sessions")
                    memory, descriptors = host.anonymous_bytes(), host.descriptor_count()
            self.eventually(lambda: host.descriptor_count() <= descriptors, 10, f"{descriptors} descriptors")
            grown = host.anonymous_bytes() - memory
            self.assertLess(grown, FLAT_BYTES)
            self.assertEqual([session["name"] for session in writer.call("STATUS")["sessions"]], ["writer"])
        print(f"\ncycles: {CYCLES}; from {WARM_UP_CYCLES} on RssAnon grew by {grown // 1024} KiB from {memory // 1024} KiB, "
              f"{descriptors} descriptors before and after", file=sys.stderr)


class AccessTests(HostCase):
    def test_only_the_owner_may_look_at_the_socket(self):
        for mask in (0, 0o022, 0o077):
            old = os.umask(mask)
            try:
                host = self.host(f"host{mask}", f"library{mask}")
            finally:
                os.umask(old)
            self.assertEqual(stat.S_IMODE(os.stat(host.socket).st_mode), 0o600)
            self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(host.socket)).st_mode), 0o700)
            for root, directories, files in os.walk(host.library):
                for name in directories:
                    self.assertEqual(stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode), 0o700, name)
                for name in files:
                    self.assertEqual(stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode), 0o600, name)
            host.kill()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_another_user_is_refused_also_where_the_modes_let_them_in(self):
        host = self.host()
        os.chmod(self.directory, 0o755)
        os.chmod(os.path.dirname(host.socket), 0o755)
        os.chmod(host.socket, 0o666)
        hello = PREFACE + encode_frame(1, 1, BY_NAME["HELLO"].encode(
            {"version_min": 1, "version_max": 1, "name": "x", "version": "1", "required": [], "optional": []}))
        self.assertEqual(answer_to_user(host, hello, NOBODY), 0, "somebody else was answered")
        self.assertIn("another user", host.log())
        self.assertLives(host)
        self.assertEqual(answer_to_user(host, hello, 0), 1)

    def test_a_socket_that_a_dead_host_left_is_replaced(self):
        host = self.host()
        host.kill()
        self.assertTrue(os.path.exists(host.socket))
        host.start()
        self.assertLives(host)

    def test_a_file_that_is_no_socket_is_left_alone(self):
        host = self.host(start=False)
        os.mkdir(os.path.dirname(host.socket), 0o700)
        with open(host.socket, "w") as file:
            file.write("my novel")
        host.start(wait=False)
        self.assertEqual(host.wait(), 1, host.log())
        with open(host.socket) as file:
            self.assertEqual(file.read(), "my novel")
        self.assertIn("socket", host.log())

    def test_a_second_host_of_a_library_is_refused_and_told_by_whom(self):
        first = self.host()
        with first.wire("writer") as wire:
            wire.saved([save(title(1))])
            for name in ("second", "host"):
                second = Host(self.directory, "library", name)
                second.log_path = os.path.join(self.directory, "second.log")
                self.hosts.append(second)
                second.start(wait=False)
                self.assertEqual(second.wait(), 1, second.log())
                self.assertIn(str(first.pid), second.log())
                self.assertFalse(name == "second" and os.path.exists(second.socket))
            # The first has noticed nothing.
            self.assertEqual(raise_if_wrong(wire.call("PING", bytes=b"1"), "PONG").name, "PONG")
        self.assertLives(first)

    def test_a_live_socket_is_never_taken_by_another_library(self):
        first = self.host()
        with first.wire() as wire:
            epoch = wire.welcome["epoch"]
        second = Host(self.directory, "other", "host")
        second.log_path = os.path.join(self.directory, "second.log")
        self.hosts.append(second)
        second.start(wait=False)
        self.assertEqual(second.wait(), 1, second.log())
        self.assertIn(str(first.pid), second.log())
        with first.wire() as wire:
            self.assertEqual(wire.welcome["epoch"], epoch)
        # Its library is free again.
        third = self.host("third", "other")
        self.assertLives(third)


class EndTests(HostCase):
    def test_goodbye_is_answered_after_what_is_owed(self):
        host = self.host()
        wire = host.wire()
        waiting = [wire.write([save(title(number))]) for number in range(1, 21)]
        wire.notice("GOODBYE", error=0, reason="done")
        frames = wire.until_closed()
        self.assertEqual(sorted(frame.id for frame in frames if frame.name == "WRITTEN"), waiting)
        self.assertEqual([frame.name for frame in frames[-1:]], ["GOODBYE_HOST"])
        self.assertEqual((frames[-1]["error"], frames[-1].id), (0, 0))
        self.assertEqual(len([frame for frame in frames if frame.name == "GOODBYE_HOST"]), 1)
        wire.close()
        self.assertLives(host)

    def test_a_client_that_just_closes_loses_nothing_that_was_answered(self):
        host = self.host()
        for number in range(1, 30):
            with host.wire() as wire:
                wire.saved([save(title(number))])
                wire.write([save(title(1000 + number))])
        with host.wire() as wire:
            keys = {record["key"][1] for record in list_all(wire)}
        self.assertLessEqual({title_key(number) for number in range(1, 30)}, keys)

    def stop_while_writing(self, number):
        host = self.host(f"host{number}", f"library{number}")
        writer, idle, subscriber, stranger = host.wire("writer"), host.wire("idle"), host.wire("subscriber"), host.wire(hello=False)
        request_id, reply = subscriber.subscribe(2)
        waiting, answered, refused, goodbyes = {}, set(), set(), []
        told = 0
        began = time.monotonic()
        try:
            while True:
                while len(waiting) < 30:
                    told += 1
                    waiting[writer.write([save(title(told)), save(title(100_000 + told))])] = told
                    if told == 200:
                        host.send(number)
                        began = time.monotonic()
                frame = writer.receive()
                self.take(frame, waiting, answered, refused, goodbyes)
        except (Closed, ConnectionError):
            for frame in writer.until_closed():
                self.take(frame, waiting, answered, refused, goodbyes)
        self.assertEqual(host.wait(STOP_SECONDS), 0, host.log())
        seconds = time.monotonic() - began
        self.assertEqual([(frame["error"], frame.id) for frame in goodbyes], [(40, 0)], "one GOODBYE, shutting_down")
        for other in (idle, subscriber):
            names = [frame.name for frame in other.until_closed() if frame.name != "EVENTS"]
            self.assertEqual(names, ["GOODBYE_HOST"])
        self.assertEqual(stranger.until_closed(), [])
        for wire in (writer, idle, subscriber, stranger):
            wire.close()
        self.assertFalse(os.path.exists(host.socket), "the socket is gone with its host")
        # What was answered is there, and nothing else: a host that ends in order decides nothing that it does not answer.
        host.start()
        with host.wire() as wire:
            found = {record["key"][1] for record in list_all(wire)}
        expected = {title_key(base + number) for number in answered for base in (0, 100_000)}
        self.assertEqual(found, expected)
        self.assertGreater(len(answered), 100)
        self.assertEqual(host.stop(), 0)
        return seconds

    def take(self, frame, waiting, answered, refused, goodbyes):
        if frame.name == "GOODBYE_HOST":
            goodbyes.append(frame)
            return
        number = waiting.pop(frame.id)
        if frame.name == "WRITTEN":
            answered.add(number)
        else:
            self.assertError(frame, "shutting_down")
            self.assertEqual(frame["flags"], 2)
            refused.add(number)

    def test_sigterm_and_sigint_end_it_in_order_with_writes_under_way(self):
        seconds = [self.stop_while_writing(number) for number in (signal.SIGTERM, signal.SIGINT)]
        print(f"\nstop: {max(seconds):.2f} s from the signal to the exit", file=sys.stderr)

    def test_a_client_that_does_not_read_does_not_hold_it_up_for_long(self):
        host = self.host()
        wire = host.wire()
        self.addCleanup(wire.close)
        wire.saved([save(title(1, "x" * 100_000))])
        for _ in range(60):
            wire.send("GET", kind=1, key=title_key(1))
        begun = time.monotonic()
        self.assertEqual(host.stop(STOP_DEAF_SECONDS), 0)
        self.assertLess(time.monotonic() - begun, STOP_DEAF_SECONDS)

    def test_a_clear_under_way_is_finished_and_others_are_told_to_try_again(self):
        host = self.host()
        wire, other = host.wire("clearer"), host.wire("other")
        self.addCleanup(wire.close)
        self.addCleanup(other.close)
        count = 30_000
        for first in range(1, count, 3000):
            wire.saved([save(joke(number), JOKE) for number in range(first, first + 3000)])
        clear = wire.send("CLEAR", kind=JOKE.number)
        self.assertEqual(wire.receive().name, "PROGRESS")
        host.send(signal.SIGTERM)
        frame = wire.receive()
        while frame.name == "PROGRESS":
            frame = wire.receive()
        self.assertEqual((frame.name, frame["error"]), ("GOODBYE_HOST", 40))
        try:
            for name, fields in (("COUNT", {}), ("GET", {"kind": 1, "key": title_key(1)}), ("PING", {}), ("SUBSCRIBE", {
                    "start": 2, "types": 3, "kinds": [], "credit": 1})):
                self.assertError(wire.call(name, **fields), "shutting_down")
            self.assertError(wire.call_body("WRITE", write_body([save(title(1))])), "shutting_down")
        except Closed:
            pass  # the clear was too quick; it ended meanwhile
        frames = wire.until_closed()
        cleared = [frame for frame in [*wire.waiting, *frames] if frame.name == "CLEARED"]
        self.assertEqual([(frame.id, frame["deleted"]) for frame in cleared], [(clear, count)])
        self.assertEqual(host.wait(STOP_DEAF_SECONDS), 0)
        host.start()
        with host.wire() as wire:
            self.assertEqual(list_all(wire), [])

    def test_a_transient_host_gives_way_and_ends_when_idle(self):
        host = self.host("transient", start=False)
        host.start("--transient")
        with host.wire() as wire:
            self.assertEqual(wire.call("STATUS")["mode"], 2)
            self.assertEqual(wire.call("GIVE_WAY").name, "GIVING_WAY")
        self.assertEqual(host.wait(STOP_SECONDS), 0)
        host.start("--transient")
        with host.wire() as wire:
            wire.saved([save(title(1))])
            time.sleep(2.5)  # longer than it waits without a connection
            self.assertTrue(host.is_alive())
        self.assertEqual(host.wait(10), 0)
        self.assertFalse(os.path.exists(host.socket))


class RequestTests(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()

    def wire(self, name="test", **options):
        wire = self.larder.wire(name, **options)
        self.addCleanup(wire.close)
        return wire

    def test_ping_and_many_requests_with_ids_of_any_order(self):
        wire = self.wire()
        ids = self.random.sample(range(1, 1 << 32), 500)
        for request_id in [*ids, 0xFFFFFFFF]:
            wire.frame("PING", request_id, BY_NAME["PING"].encode({"bytes": request_id.to_bytes(4, "little") * 16}))
        for request_id in [*ids, 0xFFFFFFFF]:
            self.assertEqual(wire.reply(request_id)["bytes"], request_id.to_bytes(4, "little") * 16)

    def test_a_cancelled_request_has_exactly_one_final_reply(self):
        wire = self.wire()
        writes = []
        for number in range(1, 200):
            writes.append(wire.write([save(title(number))]))
            wire.frame("CANCEL", writes[-1], b"")
            wire.frame("CANCEL", 1 << 20, b"")
        replies = {}
        while len(replies) < len(writes):
            frame = wire.receive()
            self.assertNotIn(frame.id, replies)
            replies[frame.id] = frame
        self.assertEqual(wire.call("PING", bytes=b"").name, "PONG")
        self.assertEqual(wire.waiting, [])
        written = {number for number, request_id in enumerate(writes, 1) if replies[request_id].name == "WRITTEN"}
        for number, request_id in enumerate(writes, 1):
            if number not in written:
                self.assertError(replies[request_id], "cancelled")
        self.assertEqual({record["key"][1] for record in list_all(wire)}, {title_key(number) for number in written})

    def test_status_says_how_the_host_is(self):
        wire, subscriber = self.wire("asker"), self.wire("bell")
        before = int(time.time() * 1000)
        subscriber.call("REGISTER", roles=4, events=3, kinds=["title"], commands=[])
        subscriber.subscribe(1, credit=0, epoch=wire.welcome["epoch"], seq=0)
        wire.saved([save(title(1)), save(title(2))])
        wire.saved([save(joke(1), JOKE)])
        status = wire.call("STATUS").fields
        self.assertEqual((status["state"], status["reason"], status["mode"], status["pid"]), ("serving", "", 1, self.larder.pid))
        self.assertEqual((status["library"], status["socket"]), (self.larder.library, self.larder.socket))
        self.assertEqual((status["epoch"], status["floor"]), (wire.welcome["epoch"], 1))
        self.assertEqual(status["version"], wire.welcome["host_version"])
        self.assertTrue(before - 60_000 < status["started"] <= before + 1000)
        self.assertEqual(status["segments"], 1)
        size = sum(os.path.getsize(os.path.join(self.larder.library, "log", name)) for name in os.listdir(
            os.path.join(self.larder.library, "log")))
        self.assertTrue(0 < status["log_bytes"] <= size)
        self.assertEqual({item["kind"]: item["records"] for item in status["counts"] if item["records"]}, {1: 2, JOKE.number: 1})
        sessions = {session["name"]: session for session in status["sessions"]}
        self.assertEqual(set(sessions), {"asker", "bell"})
        bell = sessions["bell"]
        self.assertEqual((bell["roles"], bell["events"], bell["subscriptions"], bell["pid"]), (4, 3, 1, os.getpid()))
        self.assertEqual(bell["lag"], status["last_seq"])
        self.assertEqual((sessions["asker"]["subscriptions"], sessions["asker"]["lag"]), (0, 0))
        self.assertEqual(status["plugins"], [])

    def test_kinds_are_those_of_protocol(self):
        kinds = {kind.name: kind for kind in self.wire().call("KINDS")["kinds"]}
        for name, kind in shipped_kinds().items():
            self.assertEqual(kinds[name].encode(), kind.encode())

    def test_a_film_and_a_series_with_one_number_are_two_records(self):
        """Case 002."""
        wire = self.wire("tmdb")
        film = title(900201, "Glass Ferry")
        series = encode_record(TITLE, {"source": "test", "media_type": "tv", "id": 900201, "name": "Winter Clerk"})
        request_id, reply = wire.subscribe(2, types=2)
        written = wire.saved([save(film, mode="merge"), save(series, mode="merge")])
        self.assertEqual(written["created"], 2)
        wire.saved([delete(title_key(900201, media="movie"))])
        frame = wire.receive()
        self.assertEqual([entry.key for entry in entries_of(frame.body)], [(TITLE.number, title_key(900201, media="movie"))])
        self.assertEqual([record["record"] for record in list_all(wire)], [series])


class ListTests(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()

    def test_pages_both_ways_while_records_come_and_go(self):
        """No record that stays is missed or doubled."""
        count = 2000
        with self.larder.wire("writer") as writer:
            for first in range(1, count, 200):
                writer.saved([save(title(number, f"Film {number}")) for number in range(first, first + 200)])
        stays = {title_key(number) for number in range(1, count + 1) if number % 3}
        stop, failures = threading.Event(), []

        def churn(seed):
            rng = type(self.random)(seed)
            try:
                with self.larder.wire(f"churn {seed}") as wire:
                    while not stop.is_set():
                        operations = []
                        for _ in range(5):
                            number = rng.randrange(1, count + 1)
                            if number % 3:
                                # Changed records stay, at their place.
                                operations.append(save(title(number, f"Changed {rng.random()}")))
                            elif rng.random() < 0.5:
                                operations.append(delete(title_key(number)))
                            else:
                                operations.append(save(title(number, f"Back {rng.random()}")))
                        wire.saved(operations)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=churn, args=(seed,), daemon=True) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        with self.larder.wire("lister") as wire:
            for at in range(24):
                reverse, limit = bool(at % 2), self.random.choice((1, 7, 40, 333, 10_000)) if at > 1 else 3
                found = list_all(wire, kind=(0, 1)[at % 3 == 0], reverse=reverse, limit=limit)
                keys = [record["key"][1] for record in found]
                self.assertEqual(len([key for key in keys if key in stays]), len(stays), "missed or doubled")
                self.assertEqual(set(keys) & stays, stays)
                firsts = [record["first_seq"] for record in found]
                self.assertEqual(firsts, sorted(set(firsts), reverse=reverse))
        stop.set()
        for thread in threads:
            thread.join(30)
        self.assertEqual(failures, [])
        with self.larder.wire() as wire:
            # A page token lasts as long as the epoch: also over a restart.
            page = wire.call("LIST", kind=1, limit=100)
            rest = as_model(list_all(wire))
            self.larder.kill()
            self.larder.start()
        with self.larder.wire() as wire:
            keys = [bytes(record["record"]) for record in page["records"]]
            token = page["token"]
            while token:
                page = wire.call("LIST", kind=1, limit=100, token=token)
                keys += [bytes(record["record"]) for record in page["records"]]
                token = page["token"]
            self.assertEqual(keys, [value[2] for value in rest.values()])

    def test_tokens_belong_to_their_kind_and_direction(self):
        with self.larder.wire() as wire:
            wire.saved([save(title(number)) for number in range(1, 20)])
            token = wire.call("LIST", kind=1, limit=5)["token"]
            self.assertTrue(token)
            for fields in ({"kind": 0}, {"kind": 2}, {"kind": 1, "flags": 1}):
                self.assertError(wire.call("LIST", limit=5, token=token, **fields), "bad_token")
            for broken in (token[:-1], token + b"\0", b"x", bytes(len(token))):
                self.assertError(wire.call("LIST", kind=1, limit=5, token=broken), "bad_token")
            page = wire.call("LIST", kind=1, limit=5, token=token)
            self.assertEqual([record["record"] for record in page["records"]], [title(number) for number in range(6, 11)])

    def test_pages_are_bounded_in_bytes_and_the_end_is_said(self):
        with self.larder.wire() as wire:
            self.assertEqual(wire.call("LIST", limit=10).fields, {"is_end": 1, "token": b"", "records": []})
            for first in range(1, 60, 10):
                wire.saved([save(title(number, "x" * 100_000)) for number in range(first, first + 10)])
            for limit in (0, 50_000, 1 << 40):
                page = wire.call("LIST", limit=10_000, bytes_limit=limit)
                self.assertTrue(page["records"])
                self.assertLess(len(page.body), 2_500_000)
                self.assertFalse(page["is_end"])
            page = wire.call("LIST", limit=1, flags=1)
            self.assertEqual((page["is_end"], len(page["records"])), (0, 1))
            self.assertEqual(len(list_all(wire)), 60)


class ImportTests(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()

    def test_the_first_of_a_key_in_one_import_wins(self):
        with self.larder.wire("importer") as wire, self.larder.wire("other") as other:
            begun = raise_if_wrong(wire.call("BEGIN_IMPORT", source="a", token="one"), "IMPORT_BEGUN")
            written = wire.saved([save(title(1, "First"), mode="merge"), save(title(1, "Second"), mode="merge"),
                                  save(title(2), mode="merge")], begun["origin"], 1, RESULTS)
            self.assertEqual((written["created"], written["duplicate"]), (2, 1))
            self.assertEqual([item["outcome"] for item in written["results"]], [0, 3, 0])
            written = wire.saved([save(title(1, "Third"), mode="merge")], begun["origin"], 2)
            self.assertEqual(written["duplicate"], 1)
            # Somebody else changes it: then it is not this import's any more.
            other.saved([save(title(1, "Theirs"), mode="merge")])
            written = wire.saved([save(title(1, "Fourth"), mode="merge"), save(title(2), mode="insert")], begun["origin"], 3)
            self.assertEqual((written["updated"], written["duplicate"]), (1, 1))
            raise_if_wrong(wire.call("END_IMPORT", origin=begun["origin"], outcome=1), "IMPORT_ENDED")
            self.assertError(wire.call_body("WRITE", write_body([save(title(3))], begun["origin"], 4)), "unknown_origin")
            second = raise_if_wrong(wire.call("BEGIN_IMPORT", source="a", token="two"), "IMPORT_BEGUN")
            written = wire.saved([save(title(1, "Fourth"), mode="merge"), save(title(2, "New"), mode="merge"),
                                  save(title(2), mode="insert")], second["origin"], 1)
            self.assertEqual((written["unchanged"], written["updated"], written["duplicate"]), (1, 1, 1))

    def test_a_token_whose_import_has_ended_begins_another(self):
        with self.larder.wire("importer") as wire:
            origins = []
            for _ in range(3):
                begun = wire.call("BEGIN_IMPORT", source="daily", token="daily")
                self.assertEqual((begun["resumed"], begun["last_batch"]), (0, 0))
                # A batch that changes nothing is not noted in the log.
                wire.saved([save(title(1, f"Day {len(origins)}"))], begun["origin"], 1)
                again = wire.call("BEGIN_IMPORT", source="daily", token="daily")
                self.assertEqual((again["resumed"], again["last_batch"], again["origin"]), (1, 1, begun["origin"]))
                origins.append(begun["origin"])
                wire.call("END_IMPORT", origin=begun["origin"], outcome=1)
            self.assertEqual(len(set(origins)), 3)

    def test_a_numbered_import_goes_on_after_the_host_was_killed(self):
        records = [title(number, f"Film {number}") for number in range(1, 4001)]
        counts, durable, kills = None, 0, 0
        while counts is None:
            killer = None
            if kills < 4:
                killer = threading.Timer(self.random.uniform(0.01, 0.12), self.larder.kill)
            try:
                with self.larder.connect("importer") as client:
                    if killer:
                        killer.start()
                    with client.import_session("films", token="films") as session:
                        self.assertTrue(session.is_resumed or session.last_batch == 0)
                        self.assertGreaterEqual(session.last_batch, durable)
                        durable = session.last_batch
                        accounting = session.save_many("title", records, batch_bytes=2000, window_bytes=20_000)
                        if killer:
                            killer.join()
                            raise larder.ConnectionLost("the host is gone")
                        counts = accounting
            except (larder.ConnectionLost, ConnectionError, FileNotFoundError):
                pass
            if killer:
                killer.join()
                kills += 1
                self.larder.start()
        self.assertEqual(counts.duplicate + counts.created + counts.already_durable, len(records))
        self.assertEqual(counts.refused, 0)
        with self.larder.wire() as wire:
            self.assertEqual([record["record"] for record in list_all(wire)], records)
        events = [entry for entry in read_log(self.larder) if entry.type <= 3]
        self.assertEqual([entry.type for entry in events], [1] * len(records), "each film is told once")

    def test_another_connection_may_take_an_import_over(self):
        with self.larder.wire("importer") as first, self.larder.wire("importer") as second:
            begun = first.call("BEGIN_IMPORT", source="s", token="shared")
            first.saved([save(title(1))], begun["origin"], 1)
            taken = second.call("BEGIN_IMPORT", source="s", token="shared")
            self.assertEqual((taken["origin"], taken["last_batch"], taken["resumed"]), (begun["origin"], 1, 1))
            again = second.saved([save(title(1))], taken["origin"], 1)
            self.assertEqual((again["duplicate"], again["created"]), (1, 0))
            second.saved([save(title(2))], taken["origin"], 2)
            self.assertEqual(second.call("BEGIN_IMPORT", source="s", token="shared")["last_batch"], 2)

    def test_the_four_modes_and_the_options(self):
        with self.larder.wire() as wire:
            wire.saved([save(title(1, "One", overview="Long", runtime=90))])
            for mode, fields, outcome, expected in (
                    ("insert", {"overview": "x"}, "already_saved", {"overview": "Long", "runtime": 90}),
                    ("merge", {"overview": "Longer"}, "updated", {"overview": "Longer", "runtime": 90}),
                    ("merge", {}, "unchanged", {"overview": "Longer", "runtime": 90}),
                    ("fill", {"overview": "No", "language": "ko"}, "updated", {"overview": "Longer", "runtime": 90, "language": "ko"}),
                    ("replace", {"runtime": 91}, "updated", {"runtime": 91})):
                written = wire.saved([save(title(1, "One", **fields), mode=mode)])
                self.assertEqual(written[outcome], 1, (mode, fields))
                self.assertEqual(list_all(wire)[0]["record"], title(1, "One", **expected), (mode, fields))
            seq = list_all(wire)[0]["seq"]

            def operation(if_seq, **fields):
                return BY_NAME["WRITE"].encode({"flags": 0, "operations": [
                    {"verb": 1, "mode": 3, "options": 2, "kind": 1, "known": 33, "if_seq": if_seq, "body": title(1, **fields)}]})

            reply = raise_if_wrong(wire.call_body("WRITE", operation(seq + 1, runtime=5)))
            self.assertEqual((reply["refused"], reply["refusals"][0]["error"]), (1, 26))
            self.assertEqual(raise_if_wrong(wire.call_body("WRITE", operation(seq, runtime=5)))["updated"], 1)
            # A dry run decides as if what stands before had been done, and changes nothing.
            dry = wire.saved([save(title(2)), delete(title_key(1)), save(title(1, runtime=7), mode="merge")], flags=2)
            self.assertEqual((dry["created"], dry["deleted"]), (2, 1))
            self.assertEqual([record["key"][1] for record in list_all(wire)], [title_key(1)])


if __name__ == "__main__":
    unittest.main()
