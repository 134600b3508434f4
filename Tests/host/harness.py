"""What the tests of a real host share: the program, its directories, raw connections, and records to save.

The program is `LARDER_BIN`, else the one that `swift build` made, debug before release. Random choices come from
`LARDER_SEED` where it is set; a test that fails prints the seed and the host's log.
"""

import atexit
import contextlib
import ctypes
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "Plugins", "sdk", "python"))

import larder  # noqa: E402
from larder.batches import Operations, write_body  # noqa: E402
from larder.entries import decode_body, read_frame, read_runs  # noqa: E402
from larder.errors import ERROR_NAMES  # noqa: E402
from larder.frames import HEADER_BYTES, PREFACE, FrameDecoder, encode_frame  # noqa: E402
from larder.keys import key_of_record  # noqa: E402
from larder.kinds import Kind  # noqa: E402
from larder.messages import BY_NAME, BY_NUMBER  # noqa: E402
from larder.records import decode_record, encode_record, record_to_json  # noqa: E402

READER = os.path.join(ROOT, "Tests", "reader", "read_library.py")
WAIT_SECONDS = 30.0
TYPE_BITS = {1: 1, 2: 1, 3: 2, 16: 4, 17: 8, 18: 16, 19: 16, 20: 16, 21: 32}
ALL_TYPES = 63
RESULTS = 4
#: A user who has nothing.
NOBODY = 65534


def program():
    """Path of the `larder` program."""
    if os.environ.get("LARDER_BIN"):
        return os.path.abspath(os.environ["LARDER_BIN"])
    for configuration in ("debug", "release"):
        path = os.path.join(ROOT, ".build", configuration, "larder")
        if os.path.exists(path):
            return path
    raise unittest.SkipTest("no larder program: run swift build, or set LARDER_BIN")


def has_zstd():
    """Whether a host can compress here."""
    try:
        return ctypes.CDLL("libzstd.so.1") is not None
    except OSError:
        return False


def shipped_kinds():
    """The kinds of Protocol/kinds, by name."""
    kinds = {}
    for path in glob.glob(os.path.join(ROOT, "Protocol", "kinds", "*.json")):
        with open(path, encoding="utf-8") as file:
            kind = Kind.from_json(json.load(file))
        kinds[kind.name] = kind
    return kinds


KINDS = shipped_kinds()
TITLE, BOOK, JOKE = KINDS["title"], KINDS["book"], KINDS["joke"]
BY_KIND = {kind.number: kind for kind in KINDS.values()}


_running = set()
_directories = set()


@atexit.register
def _leave_nothing():
    """Also where the tests were interrupted, no host and no directory stays."""
    for process in _running:
        if process.poll() is None:
            process.kill()
            process.wait()
    for directory in _directories:
        shutil.rmtree(directory, ignore_errors=True)


def _interrupt(*_):
    raise KeyboardInterrupt


if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
    signal.signal(signal.SIGTERM, _interrupt)


class HostDied(AssertionError):
    """The host ended where it should have lived."""


class Host:
    """A host process over a library of its own. `stop` or `kill` reaps it; a context manager does so too."""

    def __init__(self, directory, library="library", name="host"):
        self.directory = directory
        self.library = os.path.join(directory, library)
        self.socket = os.path.join(directory, "run", name + ".sock")
        self.log_path = os.path.join(directory, name + ".log")
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def start(self, *arguments, wait=True, environment=None):
        """Starts it and waits until it takes connections."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program(), "serve", "--library", self.library, "--socket", self.socket, *arguments], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env={**os.environ, **(environment or {})}, start_new_session=True)
        _running.add(self.process)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        """Waits until it is open; it takes connections before, and greets nobody."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                with self.wire("probe"):
                    return
            except (OSError, Closed):
                pass
            if self.process.poll() is not None:
                raise HostDied(f"the host ended with {self.process.returncode} before it greeted anybody:\n{self.log()}")
            if time.monotonic() > deadline:
                raise HostDied(f"the host greets nobody after {WAIT_SECONDS} s:\n{self.log()}")
            time.sleep(0.005)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, and reaps."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            _running.discard(self.process)

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=WAIT_SECONDS):
        """SIGTERM; gives the exit code, and raises where it does not end in time."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=WAIT_SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise HostDied(f"the host did not end within {seconds} s:\n{self.log()}") from None

    def log(self, bytes_max=4000):
        with contextlib.suppress(FileNotFoundError), open(self.log_path, "rb") as file:
            return file.read()[-bytes_max:].decode("utf-8", "replace")
        return ""

    def anonymous_bytes(self):
        """RssAnon of the process."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        raise HostDied("the host is gone")

    def descriptor_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def connect(self, name="test", **options):
        options.setdefault("timeout", WAIT_SECONDS)
        return larder.connect(name, path=self.socket, **options)

    def wire(self, name="test", **options):
        return Wire(self.socket, name, **options)


def answer_to_user(host, data, user):
    """Sends data from a process of that user; 1 if anything came back, 0 if the connection was closed."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(10)
                sock.connect(host.socket)
                try:
                    sock.sendall(data)
                    code = 1 if sock.recv(100) else 0
                except (ConnectionResetError, BrokenPipeError):
                    code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Closed(Exception):
    """The host closed the connection."""


class Frame:
    """A frame of the host: message name, request id, and its fields when they are asked for."""

    __slots__ = ("name", "id", "body", "_fields")

    def __init__(self, name, request_id, body):
        self.name, self.id, self.body, self._fields = name, request_id, body, None

    @property
    def fields(self):
        if self._fields is None:
            self._fields = BY_NAME[self.name].decode(self.body)
        return self._fields

    def __getitem__(self, name):
        return self.fields[name]

    @property
    def error(self):
        """The error's name, or an empty text."""
        return ERROR_NAMES[self["error"]] if self.name == "ERROR" else ""

    @property
    def facts(self):
        return {fact["name"]: fact["value"] for fact in self["facts"]}

    def __repr__(self):
        with contextlib.suppress(Exception):
            return f"<{self.name} id {self.id} {self.error} {self.fields if self.name != 'EVENTS' else len(self.body)}>"
        return f"<{self.name} id {self.id} {self.body[:40]!r}>"


class Wire:
    """A connection whose every byte the test decides. `hello=False` sends nothing at first."""

    def __init__(self, path, name="test", hello=True, deadline=0, timeout=WAIT_SECONDS, receive_bytes=1 << 18):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.receive_bytes = receive_bytes
        self.decoder = FrameDecoder(4 << 20)
        self.waiting = []
        self.last_id = 0
        self.welcome = None
        try:
            self.socket.connect(path)
            if hello:
                self.raw(PREFACE)
                self.welcome = self.call("HELLO", version_min=1, version_max=1, name=name, version="1", required=[],
                                         optional=[], deadline=deadline).fields
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def raw(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from error

    def frame(self, name, request_id, body):
        """Sends a frame with a body made elsewhere; `name` may be a number."""
        self.raw(encode_frame(name if isinstance(name, int) else BY_NAME[name].number, request_id, body))

    def next_id(self):
        self.last_id += 1
        return self.last_id

    def send(self, message, /, **fields):
        """Sends a request; gives its id."""
        return self.send_body(message, BY_NAME[message].encode(fields))

    def send_body(self, name, body):
        request_id = self.next_id()
        self.frame(name, request_id, body)
        return request_id

    def notice(self, message, request_id=0, /, **fields):
        self.frame(message, request_id, BY_NAME[message].encode(fields))

    def receive(self):
        """The next frame. Raises `Closed` at the end of the stream, TimeoutError where nothing comes."""
        while not self.waiting:
            try:
                data = self.socket.recv(self.receive_bytes)
            except ConnectionResetError as error:
                raise Closed(str(error)) from error
            if not data:
                raise Closed("the end of the stream")
            for raw in self.decoder.feed(data):
                name = "GOODBYE_HOST" if raw.type == 0x91 else BY_NUMBER[raw.type].name
                self.waiting.append(Frame(name, raw.id, raw.body))
        return self.waiting.pop(0)

    def reply(self, request_id):
        """The final reply of a request; what comes for others meanwhile is kept in order."""
        kept = []
        try:
            while True:
                frame = self.receive()
                if frame.id == request_id and frame.name not in ("EVENTS", "SNAPSHOT_END", "LOST", "PROGRESS", "PING"):
                    return frame
                kept.append(frame)
        finally:
            self.waiting[:0] = kept

    def call(self, message, /, **fields):
        """A request and its final reply, which may be ERROR."""
        return self.reply(self.send(message, **fields))

    def call_body(self, name, body):
        return self.reply(self.send_body(name, body))

    def write(self, operations, origin=0, batch=0, flags=0):
        """Sends a WRITE; gives its id."""
        return self.send_body("WRITE", write_body(operations, origin, batch, flags))

    def saved(self, operations, origin=0, batch=0, flags=0):
        """A WRITE and its WRITTEN."""
        reply = self.reply(self.write(operations, origin, batch, flags))
        assert reply.name == "WRITTEN", reply
        return reply

    def subscribe(self, start=2, types=3, kinds=(), credit=1 << 20, **fields):
        """SUBSCRIBE; gives the id and the reply."""
        fields["except"] = fields.pop("except_origin", 0)
        request_id = self.send("SUBSCRIBE", start=start, types=types, kinds=list(kinds), credit=credit, **fields)
        return request_id, self.reply(request_id)

    def until_closed(self):
        """All frames up to the end of the stream."""
        frames = []
        with contextlib.suppress(Closed):
            while True:
                frames.append(self.receive())
        return frames

    def text_until_closed(self):
        """All bytes up to the end of the stream, which are no frames."""
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while True:
                chunk = self.socket.recv(65536)
                if not chunk:
                    break
                data += chunk
        return data


class Entry:
    """An entry as a subscription brought it: its whole bytes, and what they say."""

    __slots__ = ("type", "seq", "data", "time", "first_seq_of_run", "_body")

    def __init__(self, type, seq, data, time, first_seq_of_run):
        self.type, self.seq, self.data, self.time, self.first_seq_of_run = type, seq, data, time, first_seq_of_run
        self._body = None

    @property
    def body(self):
        if self._body is None:
            self._body = decode_body(read_frame(self.data, 0, len(self.data), self.first_seq_of_run, False), self.data, self.time)
        return self._body

    @property
    def key(self):
        """(kind number, key bytes) of an entry that has one."""
        body = self.body
        if self.type == 3:
            return body["kind"], bytes(body["key"])
        return body["kind"], bytes(key_of_record(BY_KIND[body["kind"]], bytes(body["record"])))

    @property
    def identity(self):
        return self.type, self.seq, self.data

    def __repr__(self):
        return f"<entry {self.type} seq {self.seq}>"


def span_of(body):
    """(after, through) of an EVENTS body."""
    return int.from_bytes(body[:8], "little"), int.from_bytes(body[8:16], "little")


def entries_of(body):
    """The entries of an EVENTS body."""
    found = []
    for run in read_runs(body, 16):
        at = run.start
        while at < run.end:
            frame = read_frame(body, at, run.end, run.first_seq, False)
            found.append(Entry(frame.type, frame.seq, body[at:frame.end], run.time, run.first_seq))
            at = frame.end
    return found


class Follower:
    """One subscription's account: checks that the spans join, that seqs ascend, and keeps what came."""

    def __init__(self, subscribed, types=3):
        self.epoch, self.seq, self.s0 = subscribed["epoch"], subscribed["after"], subscribed["s0"]
        self.types = types
        self.entries = []
        self.last_entry = self.seq
        self.snapshot_end = None
        self.bytes = 0

    def take(self, frame):
        """Takes EVENTS, SNAPSHOT_END or LOST. Gives the new entries."""
        if frame.name == "SNAPSHOT_END":
            if frame["s1"] != self.seq:
                raise AssertionError(f"SNAPSHOT_END names {frame['s1']}, the cursor is {self.seq}")
            self.snapshot_end = frame["s1"]
            return []
        if frame.name == "LOST":
            raise AssertionError(f"{frame}: nothing was damaged")
        after, through = span_of(frame.body)
        if after != self.seq:
            raise AssertionError(f"a gap: events after {after}, everything up to {self.seq} was here")
        if through < after:
            raise AssertionError(f"a span that goes back, ({after}, {through}]")
        found = entries_of(frame.body)
        for entry in found:
            if not self.last_entry < entry.seq <= through:
                raise AssertionError(f"seq {entry.seq} after {self.last_entry} in ({after}, {through}]")
            if not TYPE_BITS.get(entry.type, 0) & self.types:
                raise AssertionError(f"{entry} was not asked for")
            self.last_entry = entry.seq
        self.seq = through
        self.bytes += HEADER_BYTES + len(frame.body)
        self.entries += found
        return found


def follow(wire, request_id, follower, until, window=1 << 20, on_entry=None, seconds=120):
    """Takes what comes for a subscription, giving all credit back, until `until()` holds."""
    owed, deadline = 0, time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            raise AssertionError(f"not there after {seconds} s, the cursor is {follower.seq}")
        frame = wire.receive()
        if frame.id != request_id or frame.name not in ("EVENTS", "SNAPSHOT_END", "LOST"):
            raise AssertionError(f"unexpected {frame}")
        for entry in follower.take(frame):
            if on_entry:
                on_entry(entry)
        if frame.name == "EVENTS":
            owed += HEADER_BYTES + len(frame.body)
            if owed * 2 >= window:
                wire.notice("CREDIT", request_id, bytes=owed)
                owed = 0
    return follower


def read_log(host, types=ALL_TYPES, until=None, after=0):
    """All entries of the log from the host, up to `until` or its end."""
    with host.wire("log reader") as wire:
        last = wire.welcome["last_seq"] if until is None else until
        request_id, reply = wire.subscribe(1, types, epoch=wire.welcome["epoch"], seq=after, credit=4 << 20)
        if reply.name != "SUBSCRIBED":
            raise AssertionError(reply)
        follower = Follower(reply, types)
        follow(wire, request_id, follower, lambda: follower.seq >= last, window=4 << 20)
        return follower.entries


def list_all(wire, kind=0, reverse=False, limit=10_000):
    """All stored records by LIST, as dicts with the key added."""
    token, found = b"", []
    while True:
        page = wire.call("LIST", kind=kind, flags=int(reverse), limit=limit, token=token)
        if page.name != "PAGE":
            raise AssertionError(page)
        for record in page["records"]:
            record["key"] = (record["kind"], bytes(key_of_record(BY_KIND[record["kind"]], record["record"])))
            found.append(record)
        if page["is_end"]:
            return found
        token = page["token"]


def replay(entries):
    """The library that a stream of entries makes: (kind, key) to (seq, first seq, record bytes), in saved order."""
    model = {}
    apply(model, entries)
    return dict(sorted(model.items(), key=lambda item: item[1][1]))


def apply(model, entries):
    """Applies entries to a model of `replay`, as SPEC.md section 9 says."""
    for entry in entries:
        if entry.type == 3:
            model.pop(entry.key, None)
        elif entry.type in (1, 2):
            body = entry.body
            model[entry.key] = (entry.seq, body["first_seq"] if entry.type == 2 else entry.seq, bytes(body["record"]))


def as_model(listed):
    """LIST's records in the form of `replay`."""
    return {record["key"]: (record["seq"], record["first_seq"], record["record"]) for record in listed}


# Records.

def title(number, name="A film", source="test", media="movie", **fields):
    """A record of kind title."""
    return encode_record(TITLE, {"source": source, "media_type": media, "id": number, "title": name, **fields})


def title_key(number, source="test", media="movie"):
    return bytes(key_of_record(TITLE, title(number, source=source, media=media)))


def joke(number, body="A joke", **fields):
    """A record of kind joke whose id is made of a number."""
    return encode_record(JOKE, {"id": f"00000000-0000-4000-8000-{number:012x}", "body": body, **fields})


_OPERATIONS = {}


def save(record, kind=TITLE, mode="replace"):
    """An operation that saves a record."""
    return _operations(kind, mode).encode(record)


def delete(key, kind=TITLE):
    """An operation that deletes a key."""
    return _operations(kind, "delete").encode(key)


def _operations(kind, mode):
    found = _OPERATIONS.get((kind.number, mode))
    if found is None:
        found = _OPERATIONS[kind.number, mode] = Operations(kind, mode)
    return found


class HostCase(unittest.TestCase):
    """A test with a directory and hosts that are always reaped. Its `random` is seeded."""

    def setUp(self):
        self.seed = int(os.environ.get("LARDER_SEED") or random.SystemRandom().randrange(1 << 32))
        self.random = random.Random(self.seed)
        self.directory = tempfile.mkdtemp(prefix="larder-test-")
        _directories.add(self.directory)
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.hosts = []
        self.addCleanup(self._reap)

    def _reap(self):
        for host in self.hosts:
            host.kill()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            print(f"\n{self.id()}: LARDER_SEED={getattr(self, 'seed', '?')}", file=sys.stderr)
            for text in getattr(self, "logs", []):
                print(text, file=sys.stderr)
        self.logs = []

    def tearDown(self):
        self.logs = [f"-- log of {host.library}\n{host.log()}" for host in self.hosts if host.log()]

    def host(self, name="host", library="library", start=True, **options):
        host = Host(self.directory, library, name)
        self.hosts.append(host)
        if start:
            host.start(**options)
        return host

    def assertLives(self, host):
        """The host answers."""
        if not host.is_alive():
            raise HostDied(f"the host ended with {host.process.returncode}:\n{host.log()}")
        with host.wire("probe", timeout=10) as wire:
            self.assertEqual(wire.call("PING", bytes=b"there?")["bytes"], b"there?")

    def assertError(self, frame, name, request_id=None, place=None, fatal=False):
        """The frame is that ERROR."""
        self.assertEqual(frame.name, "ERROR", frame)
        self.assertEqual(frame.error, name, frame)
        if request_id is not None:
            self.assertEqual(frame.id, request_id, frame)
        if place is not None:
            self.assertEqual(frame["place"], place, frame)
        self.assertEqual(bool(frame["flags"] & 1), fatal, frame)

    def eventually(self, holds, seconds=WAIT_SECONDS, what="it"):
        """Waits until `holds()`."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                self.fail(f"{what} did not come about within {seconds} s")
            time.sleep(0.01)
