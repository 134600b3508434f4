"""A host that is opening its library: who comes meanwhile is told how far it is, and is served when it is open.

The library has many small segments and was left by a host that was killed, so that all of its log is read, and the host
is told to take its time over that.
"""

import asyncio
import atexit
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from harness import (BY_NAME, NOBODY, PREFACE, TITLE, Closed, Host, HostCase, HostDied, Wire, answer_to_user, encode_frame,
                     larder, program, save, title, title_key)
from larder import aio
from larder.crc32c import crc32c

RECORDS = 6_000
SECONDS = 0.8
CLIENTS_MAX = 256
HELLO = PREFACE + encode_frame(1, 1, BY_NAME["HELLO"].encode(
    {"version_min": 1, "version_max": 1, "name": "early", "version": "1", "required": [], "optional": []}))
GET = BY_NAME["GET"].encode({"kind": TITLE.number, "key": title_key(7)})


def status_frame(request_id):
    return encode_frame(0x10, request_id, b"")


def percent_of(status):
    words = status["reason"].split()
    assert words[0] == "recovering" and words[2] == "%", status["reason"]
    return int(words[1])


class OpeningCase(HostCase):
    _template = None

    @classmethod
    def template(cls):
        """A directory with such a library, made once."""
        if OpeningCase._template is None:
            directory = tempfile.mkdtemp(prefix="larder-test-opening-")
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            host = Host(directory)
            try:
                host.start("--segment", "16", "--no-compact")
                with host.wire("writer") as wire:
                    for first in range(1, RECORDS + 1, 200):
                        wire.saved([save(title(number)) for number in range(first, first + 200)])
            finally:
                host.kill()
            OpeningCase._template = host.library
        return OpeningCase._template

    def opening(self, seconds=SECONDS, *arguments):
        """A host that has begun to open a copy of the library, and listens."""
        host = self.host(start=False)
        if not os.path.exists(host.library):
            shutil.copytree(self.template(), host.library)
        self.begun = time.monotonic()
        host.start("--slow-opening", str(int(seconds * 1000)), "--no-compact", *arguments, wait=False)
        self.wait_listening(host)
        return host

    def wait_listening(self, host):
        def listens():
            if not host.is_alive():
                raise HostDied(host.log())
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                return probe.connect_ex(host.socket) == 0
        self.eventually(listens, 10, "a socket that listens")

    def early(self, host, data=HELLO):
        """A connection that has said HELLO, and was not greeted yet."""
        while True:
            try:
                wire = Wire(host.socket, hello=False)
                break
            except BlockingIOError:
                time.sleep(0.001)  # the backlog is full
        self.addCleanup(wire.close)
        wire.last_id = 1
        wire.raw(data)
        return wire

    def status(self, wire):
        """STATUS_IS, whether or not WELCOME has come."""
        reply = wire.call("STATUS")
        self.assertEqual(reply.name, "STATUS_IS", reply)
        return reply.fields

    def assertWelcome(self, wire):
        frame = wire.receive()
        self.assertEqual((frame.name, frame.id), ("WELCOME", 1), frame)
        return frame

    def assertRecovering(self, wire):
        status = self.status(wire)
        self.assertEqual(status["state"], "recovering")
        return percent_of(status)

    def larder(self, host, *words):
        return subprocess.run([program(), *words, "--library", host.library, "--socket", host.socket], text=True,
                              capture_output=True, timeout=60)


class StatusTests(OpeningCase):
    def test_two_clients_are_told_how_far_it_is_until_they_are_welcome(self):
        host = self.opening()
        wires = [self.early(host), self.early(host)]
        seen = [[], []]
        first = self.status(wires[0])
        self.assertEqual((first["state"], first["mode"], first["pid"], first["library"], first["socket"]),
                         ("recovering", 1, host.pid, host.library, host.socket))
        self.assertEqual([first[name] for name in ("last_seq", "floor", "segments", "log_bytes", "reclaimable")], [0] * 5)
        self.assertEqual([first[name] for name in ("counts", "sessions", "plugins")], [[]] * 3)
        while (statuses := [self.status(wire) for wire in wires])[0]["state"] == "recovering":
            for percents, status in zip(seen, statuses):
                if status["state"] == "recovering":
                    percents.append(percent_of(status))
            time.sleep(0.05)
        for wire, percents in zip(wires, seen):
            self.assertEqual(percents, sorted(percents))
            self.assertGreater(len(set(percents)), 5, percents)
            welcome = self.assertWelcome(wire)
            self.assertEqual((welcome["epoch"], welcome["last_seq"] >= RECORDS), (first["epoch"], True))
            self.assertEqual(self.status(wire)["state"], "serving")
        self.assertEqual(self.status(wires[0])["started"], first["started"])
        self.assertGreater(time.monotonic() - self.begun, SECONDS * 0.9)

    def test_in_single_bytes_and_many_at_once(self):
        host = self.opening()
        slow = self.early(host, b"")
        for byte in HELLO + status_frame(2):
            slow.raw(bytes([byte]))
        self.assertEqual(slow.reply(2)["state"], "recovering")
        many = self.early(host, HELLO + b"".join(status_frame(number) for number in range(2, 102)))
        for number in range(2, 102):
            self.assertEqual(many.receive().id, number)
        for wire in (slow, many):
            self.assertWelcome(wire)

    def test_who_asks_and_does_not_read_gets_every_answer_in_the_end(self):
        host = self.opening(1.5)
        wire = self.early(host)
        asked = 5_000
        wire.socket.settimeout(0.5)
        for number in range(2, 2 + asked):
            try:
                wire.raw(status_frame(number))
            except TimeoutError:
                asked = number - 2
                break
        with self.early(host) as other:
            self.assertRecovering(other)
        wire.socket.settimeout(20)
        sender = threading.Thread(target=wire.raw, args=(status_frame(2 + asked),))
        sender.start()
        ids, states = [], []
        while len(ids) < asked + 1:
            frame = wire.receive()
            if frame.name == "STATUS_IS":
                ids.append(frame.id)
                states.append(frame["state"])
            else:
                self.assertEqual((frame.name, frame.id), ("WELCOME", 1))
        sender.join(10)
        self.assertEqual(ids, list(range(2, asked + 3)))
        self.assertEqual(sorted(states, reverse=True), ["serving"] * states.count("serving") + ["recovering"] * states.count(
            "recovering"))
        self.assertEqual(states[0], "recovering")

    def test_the_commands(self):
        host = self.opening(3)
        shown = self.larder(host, "status")
        self.assertRegex(shown.stdout, r"^state    recovering \d+ %\n")
        self.assertIn(f"process {host.pid}", shown.stdout)
        self.assertNotIn("records", shown.stdout)
        found = json.loads(self.larder(host, "status", "--json").stdout)
        self.assertEqual((found["state"], found["pid"], found["records"]), ("recovering", host.pid, {}))
        self.assertRegex(found["reason"], r"^recovering \d+ %$")
        doctor = self.larder(host, "doctor")
        self.assertRegex(doctor.stdout, r"warn\s+host\s+it opens its library: recovering \d+ %")
        second = self.larder(host, "serve")
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"process {host.pid} serves", second.stderr)
        counted = self.larder(host, "count", "title")
        self.assertEqual((counted.returncode, counted.stdout.split()[-1]), (0, str(RECORDS)), counted)
        self.assertIn("serving", self.larder(host, "status").stdout)

    def test_a_command_says_what_it_waits_for_when_it_waits_long(self):
        host = self.opening(2.5)
        shown = self.larder(host, "status", "--wait")
        self.assertIn("serving", shown.stdout)
        self.assertRegex(shown.stderr, rf"process {host.pid} opens the library: recovering \d+ %")


class WaitingTests(OpeningCase):
    def test_what_was_asked_early_is_answered_when_it_is_open(self):
        host = self.opening(0.7)
        wire = self.early(host, HELLO + status_frame(2) + encode_frame(5, 3, GET) + status_frame(4))
        self.assertEqual((wire.receive().id, wire.receive().name), (2, "WELCOME"))
        self.assertEqual([wire.receive().name, wire.receive().name], ["RECORD", "STATUS_IS"])
        wire.last_id = 4
        wire.saved([save(title(RECORDS + 1))])
        self.assertLives(host)

    def test_wrong_bytes_are_refused_when_it_is_open_and_hurt_nobody_else(self):
        host = self.opening(0.7)
        long_header = (1 << 20).to_bytes(4, "little") + b"\x10\0\0\0\2\0\0\0"
        http = self.early(host, b"GET / HTTP/1.1\r\n\r\n")
        before = self.early(host, PREFACE + status_frame(2))
        broken_hello = self.early(host, PREFACE + encode_frame(1, 1, b"\1"))
        broken_status = self.early(host, HELLO + encode_frame(0x10, 2, b"\0"))
        # Once it is welcome so long a body is allowed: it is waited for.
        too_long = self.early(host, HELLO + long_header)
        flagged = self.early(host, HELLO + b"\0\0\0\0\x10\1\0\0\2\0\0\0")
        noise = [self.early(host, self.random.randbytes(self.random.randrange(1, 90_000))) for _ in range(20)]
        with self.early(host) as fine:
            self.assertRecovering(fine)
            self.assertWelcome(fine)
        self.assertIn(b"HTTP", http.text_until_closed())
        self.assertError(before.receive(), "wrong_state", 2, fatal=True)
        self.assertError(broken_hello.receive(), "bad_message", 1, fatal=True)
        self.assertWelcome(broken_status)
        self.assertError(broken_status.receive(), "bad_message", 2)
        self.assertWelcome(too_long)
        too_long.raw(b"\0" * (1 << 20))
        self.assertError(too_long.receive(), "bad_message", 2)
        self.assertWelcome(flagged)
        self.assertError(flagged.receive(), "bad_frame", fatal=True)
        for wire in noise:
            wire.text_until_closed()
        self.assertLives(host)

    def test_who_leaves_leaves_room(self):
        host = self.opening()
        for number in range(CLIENTS_MAX + 40):
            self.early(host, (HELLO, b"", HELLO + encode_frame(5, 3, GET), b"garbage")[number % 4]).close()
        with self.early(host) as wire:
            self.assertRecovering(wire)
            self.eventually(lambda: host.descriptor_count() < 40, 5, "the end of closed connections")
            self.assertWelcome(wire)
        self.assertLives(host)

    def test_more_than_can_be_held_wait_in_the_backlog(self):
        host = self.opening()
        held = [self.early(host) for _ in range(CLIENTS_MAX)]
        late = [self.early(host, HELLO + status_frame(2)) for _ in range(20)]
        self.assertRecovering(held[-1])
        for wire in late:
            wire.socket.setblocking(False)
            self.assertRaises(BlockingIOError, wire.receive)
            wire.socket.settimeout(20)
        held[0].close()
        late[0].last_id = 2
        self.assertEqual(late[0].reply(2)["state"], "recovering")
        for wire in held[1:] + late:
            self.assertWelcome(wire)
        self.assertEqual({wire.reply(2)["state"] for wire in late[1:]}, {"serving"})

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_another_user_is_refused_also_before_it_is_open(self):
        host = self.opening()
        os.chmod(self.directory, 0o755)
        os.chmod(os.path.dirname(host.socket), 0o755)
        self.assertEqual(stat.S_IMODE(os.stat(host.socket).st_mode), 0o600)
        os.chmod(host.socket, 0o666)
        self.assertEqual(answer_to_user(host, HELLO + status_frame(2), NOBODY), 0, "somebody else was answered")
        self.assertEqual(answer_to_user(host, HELLO + status_frame(2), 0), 1)
        with self.early(host) as wire:
            self.assertRecovering(wire)
            self.assertWelcome(wire)
        self.assertIn("another user", host.log())

    def test_the_python_library_waits_and_passes_on_what_it_is_told(self):
        host = self.opening(1.7)
        told, told_async = [], []

        async def count():
            async with await aio.connect("test", path=host.socket, recovering=told_async.append) as library:
                return await library.count("title")

        counted = []
        thread = threading.Thread(target=lambda: counted.append(asyncio.run(count())))
        thread.start()
        # Far less than it takes: each answer is a sign of life.
        with larder.connect("test", path=host.socket, timeout=0.8, recovering=told.append) as library:
            self.assertEqual(library.count("title"), {"title": RECORDS})
        thread.join(20)
        self.assertEqual(counted, [{"title": RECORDS}])
        for statuses in (told, told_async):
            self.assertTrue(statuses)
            self.assertEqual({status["state"] for status in statuses}, {"recovering"})


class EndTests(OpeningCase):
    def test_sigterm_and_sigint_end_it_at_once_and_leave_no_socket(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            host = self.opening(20)
            with self.early(host) as wire:
                self.assertRecovering(wire)
                host.send(number)
                self.assertEqual(host.wait(3), -number)
                self.assertRaises(Closed, wire.receive)
            self.assertFalse(os.path.exists(host.socket))

    def test_sigterm_in_the_first_moments_leaves_no_socket_either(self):
        host = self.opening(20)
        time.sleep(0.03)  # nobody would be answered yet
        host.send(signal.SIGTERM)
        self.assertEqual(host.wait(3), -signal.SIGTERM)
        self.assertFalse(os.path.exists(host.socket))

    def test_a_socket_of_one_that_was_killed_is_replaced(self):
        host = self.opening(20)
        with self.early(host) as wire:
            self.assertRecovering(wire)
            host.kill()
            self.assertRaises(Closed, wire.receive)
        self.assertTrue(os.path.exists(host.socket))
        host.start()
        with host.connect() as library:
            self.assertEqual(library.count("title"), {"title": RECORDS})

    def test_a_signal_behind_the_opening_ends_it_in_order(self):
        host = self.opening(0.5)
        with self.early(host) as wire:
            self.assertWelcome(wire)
            self.assertEqual(host.stop(), 0)
            self.assertEqual(wire.until_closed()[-1].name, "GOODBYE_HOST")
        self.assertFalse(os.path.exists(host.socket))

    def test_a_host_that_a_command_started_gives_way_when_it_is_open(self):
        first = self.opening(0.8, "--transient")
        second = Host(self.directory)
        second.log_path = os.path.join(self.directory, "second.log")
        self.hosts.append(second)
        second.start(wait=False)
        self.assertEqual(first.wait(10), 0)
        second.wait_ready()
        with second.connect() as library:
            self.assertEqual((library.status()["pid"], library.count("title")), (second.pid, {"title": RECORDS}))

    def test_an_opening_that_fails_closes_every_connection_and_leaves_no_socket(self):
        host = self.host(start=False)
        shutil.copytree(self.template(), host.library)
        self.make_newer(host)
        host = self.opening(0.7)
        waiting, asking = self.early(host), self.early(host)
        self.assertRecovering(asking)
        self.assertRaises(Closed, waiting.receive)
        self.assertRaises(Closed, asking.receive)
        self.assertEqual(host.wait(), 1)
        self.assertIn("newer larder", host.log())
        self.assertFalse(os.path.exists(host.socket))

    def make_newer(self, host):
        """The last block is one that a newer program wrote: that is seen when all before it was read."""
        log = os.path.join(host.library, "log")
        path = os.path.join(log, max(name for name in os.listdir(log) if name.endswith(".seg")))
        with open(path, "rb") as file:
            data = bytearray(file.read())
        at = max(at for at in range(0, len(data), 4096) if data[at:at + 4] == b"LRDB")
        data[at + 4] = 9
        end = at + 64 + 24 * int.from_bytes(data[at + 6:at + 8], "little")
        data[at + 60:at + 64] = crc32c(bytes(data[at + 64:end]), crc32c(bytes(data[at:at + 60]))).to_bytes(4, "little")
        with open(path, "wb") as file:
            file.write(data)
