"""Channels, labels, the worker; and the program beside a host."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from support import PLUGIN, Host, larder_program, scratch

from larder import encode_record
from larder.entries import CREATED, DELETED, frame_entry, read_frame
from larder.events import Event
from larder.keys import encode_key
from larder.kinds import Field, Kind
from larder.values import IDENTIFIER, TEXT
from notify.channel import Program, command_of
from notify.labels import Labels
from notify.summary import SAVED
from notify.worker import Worker

PROGRAM = larder_program()
REASON = "no larder program: build it or set LARDER_BIN"
if PROGRAM is None:
    print(f"tests with a host are skipped: {REASON}", file=sys.stderr)
ITEM = Kind(64, "item", 1, [Field(1, "id", IDENTIFIER, 1), Field(2, "name", TEXT, 0)], 1, (2,))


def event(type, seq, number, name=None):
    body = (b"\x40\x01" + encode_record(ITEM, {"id": number, "name": name}) if type == "created"
            else b"\x00\x40\x01\x00\x00" + encode_key(ITEM, [number]))
    data = frame_entry(CREATED if type == "created" else DELETED, seq, seq, body)
    return Event(type, seq, 0, 1, None, read_frame(data, 0, len(data), seq), data, {64: ITEM})


def script(directory, name, body):
    path = os.path.join(directory, name)
    with open(path, "w") as out:
        out.write("#!/bin/sh\n" + body)
    os.chmod(path, 0o700)
    return path


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def read(path):
    try:
        with open(path, encoding="utf-8") as source:
            return source.read().splitlines()
    except FileNotFoundError:
        return []


class LabelsTest(unittest.TestCase):
    def test_a_deleted_record_is_called_what_it_was(self):
        labels = Labels()
        self.assertEqual(labels.saved(event("created", 1, 7, "Slow Tram")), "Slow Tram")
        self.assertEqual(labels.deleted(event("deleted", 2, 7)), "Slow Tram")

    def test_without_a_label_it_is_unknown_and_unseen_it_is_its_key(self):
        labels = Labels()
        self.assertEqual(labels.saved(event("created", 1, 7)), "Unknown")
        self.assertEqual(labels.deleted(event("deleted", 2, 8)), "item:8")

    def test_only_the_last_ones_are_remembered(self):
        labels = Labels(2)
        for number in (1, 2, 1, 3):
            labels.saved(event("created", number, number, f"N{number}"))
        self.assertEqual(len(labels), 2)
        self.assertEqual([labels.deleted(event("deleted", 9, number)) for number in (1, 2, 3)], ["N1", "item:2", "N3"])


class ChannelTest(unittest.TestCase):
    def setUp(self):
        self.directory = scratch(self)
        self.said = []

    def test_the_command_is_the_setting_or_notify_send_with_a_display(self):
        self.assertEqual(command_of("/bin/say"), ["/bin/say"])
        self.assertEqual(command_of(["/bin/say", "-v"]), ["/bin/say", "-v"])
        for wrong in (5, ["a", 1], {"a": 1}):
            with self.assertRaises(ValueError):
                command_of(wrong)
        path = script(self.directory, "notify-send", "exit 0\n")
        for environment, found in (({}, []), ({"DISPLAY": ":0"}, [path, "--app-name=Larder", "--"]),
                                   ({"WAYLAND_DISPLAY": "w"}, [path, "--app-name=Larder", "--"])):
            self.assertEqual(command_of(None, {"PATH": self.directory, **environment}), found)
        self.assertEqual(command_of(None, {"PATH": "/nowhere", "DISPLAY": ":0"}), [])

    def show(self, channel, text):
        shown = []
        channel._instead.show = shown.append
        channel.show(text)
        return shown

    def test_the_text_is_the_last_argument(self):
        out = os.path.join(self.directory, "out")
        channel = Program([script(self.directory, "say", f'printf "%s|" "$@" > {out}\n'), "-x"], self.said.append)
        self.assertEqual(self.show(channel, "‘a b’ saved; $HOME"), [])
        self.assertEqual(read(out), ["-x|‘a b’ saved; $HOME|"])

    def test_a_program_that_fails_or_is_not_there_is_told_and_the_text_printed(self):
        self.assertEqual(self.show(Program([script(self.directory, "no", "exit 3\n")], self.said.append), "x"), ["x"])
        self.assertEqual(self.show(Program([self.directory + "/none"], self.said.append), "y"), ["y"])
        self.assertIn("ended with 3", self.said[0])
        self.assertIn("No such file", self.said[1])

    def test_a_program_that_hangs_is_killed_with_what_it_started(self):
        pid = os.path.join(self.directory, "pid")
        hangs = script(self.directory, "hang", f"trap '' TERM\nsleep 1000 &\necho $! > {pid}\nwait\nsleep 1000\n")
        begun = time.monotonic()
        self.assertEqual(self.show(Program([hangs], self.said.append, seconds=0.5), "x"), ["x"])
        self.assertLess(time.monotonic() - begun, 5)
        self.assertIn("killed", self.said[0])

        def is_gone():
            try:
                with open(f"/proc/{read(pid)[0]}/stat") as source:
                    return source.read().rpartition(")")[2].split()[0] == "Z"
            except FileNotFoundError:
                return True

        self.assertTrue(until(is_gone))


class WorkerTest(unittest.TestCase):
    def test_events_never_wait_and_what_came_meanwhile_is_one_line(self):
        busy, go, shown, now = threading.Event(), threading.Event(), [], [0.0]

        class Slow:
            def show(self, text):
                busy.set()
                go.wait(20)
                shown.append(text)

        worker = Worker(Slow(), shown.append, clock=lambda: now[0])
        worker.add(SAVED, "first")
        now[0] = 1.0
        with worker._changed:
            worker._changed.notify()
        self.assertTrue(busy.wait(20))
        begun = time.monotonic()
        for number in range(10_000):
            now[0] += 0.01
            worker.add(SAVED, f"N{number}")
        self.assertLess(time.monotonic() - begun, 5)
        go.set()
        worker.end(20)
        self.assertEqual(shown, ["‘first’ saved", "10,000 saved"])

    def test_a_channel_that_fails_does_not_end_it(self):
        said = []

        class Broken:
            def show(self, text):
                raise OSError("broken")

        worker = Worker(Broken(), said.append)
        worker.add(SAVED, "A")
        worker.end(20)
        self.assertEqual(said, ["not shown: broken"])


@unittest.skipUnless(PROGRAM, REASON)
class HostTest(unittest.TestCase):
    def setUp(self):
        self.directory = scratch(self)
        self.host = Host(self.directory)
        self.addCleanup(self.host.stop)
        self.client = self.host.start()
        self.addCleanup(lambda: self.client.close())
        self.out = os.path.join(self.directory, "out")

    def begin(self):
        environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.addCleanup(self.log.close)
        with open(self.out, "wb") as out:
            self.notifier = subprocess.Popen([sys.executable, str(PLUGIN / "desktop_notify.py")], stdout=out,
                                             stderr=self.log, env={**environment, "LARDER_SOCKET": self.host.socket})
        self.addCleanup(self.notifier.wait, 20)
        self.addCleanup(self.notifier.kill)
        self.assertTrue(until(self.is_there))
        time.sleep(0.2)

    def is_there(self):
        return any(session["name"] == "desktop-notify" and session["subscriptions"]
                   for session in self.client.status()["sessions"])

    def save(self, *numbers, title="Film"):
        self.client.save_many("title", [{"source": "tmdb", "media_type": "movie", "id": number, "title": f"{title} {number}"}
                                        for number in numbers])

    def shows(self, *lines):
        until(lambda: len(read(self.out)) >= len(lines))
        self.assertEqual(read(self.out), list(lines))

    def test_saved_deleted_many_and_nothing_for_unchanged(self):
        self.save(1, 2)
        self.begin()
        self.save(1, 2)  # unchanged
        self.client.save("title", {"source": "tmdb", "media_type": "movie", "id": 3, "name": "느린 전차"})
        self.client.delete("title:tmdb/movie/1")
        self.shows("‘느린 전차’ saved", "‘Film 1’ deleted")
        self.save(*range(10, 60))
        self.client.delete("title:tmdb/movie/2")
        self.shows("‘느린 전차’ saved", "‘Film 1’ deleted", "50 saved, 1 deleted")
        self.client.save("title", {"source": "tmdb", "media_type": "movie", "id": 99})
        self.shows("‘느린 전차’ saved", "‘Film 1’ deleted", "50 saved, 1 deleted", "‘Unknown’ saved")
        self.notifier.send_signal(signal.SIGTERM)
        self.assertEqual(self.notifier.wait(20), 0)

    def test_after_the_host_was_killed_it_tells_what_it_missed(self):
        self.begin()
        self.client.close()
        self.host.kill()
        self.client = self.host.start()
        self.save(1)
        self.assertTrue(until(self.is_there))
        self.shows("‘Film 1’ saved")


if __name__ == "__main__":
    unittest.main()
