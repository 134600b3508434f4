"""The writers beside a host that will be killed: importers, deleters, and one that clears.

Each keeps an account of what it sent, what was answered and what it was told. Nothing is compared here.
"""

import selectors
import socket
import time

from harness import JOKE, TITLE
from kill_entries import Broken
from kill_log import DELETE, INSERT, SAVE, Sent
from kill_pool import operation
from larder.batches import ATOMIC, RESULTS, write_body
from larder.errors import ERROR_NAMES
from larder.frames import PREFACE, FrameDecoder, encode_frame
from larder.messages import BY_NAME, BY_NUMBER
from larder.varint import read_varint

ATOMIC_ERRORS = ("not_found", "already_saved")


class Peer:
    """A connection that says HELLO and then what its kind says. Bytes that the host does not take yet wait in `out`."""

    def __init__(self, name):
        self.name = name
        self.socket = None

    def open(self, path, selector):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.decoder, self.out, self.last_id = FrameDecoder(4 << 20), bytearray(), 0
        self.selector, self.is_writing = selector, False
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.socket.setblocking(False)
        selector.register(self.socket, selectors.EVENT_READ, self)
        self.out += PREFACE
        self.send("HELLO", version_min=1, version_max=1, name=self.name, version="1")

    def close(self):
        if self.socket:
            self.socket.close()
            self.socket = None

    def send(self, message, /, request_id=None, **fields):
        return self.send_body(message, BY_NAME[message].encode(fields), request_id)

    def send_body(self, message, body, request_id=None):
        if request_id is None:
            self.last_id += 1
            request_id = self.last_id
        self.out += encode_frame(BY_NAME[message].number, request_id, body)
        self.flush()
        return request_id

    def flush(self):
        try:
            while self.out:
                del self.out[:self.socket.send(self.out)]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self.out.clear()
        if self.is_writing != bool(self.out) and self.socket.fileno() in self.selector.get_map():
            self.is_writing = bool(self.out)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.out else 0)
            self.selector.modify(self.socket, events, self)

    def receive(self):
        """Takes what is there. False at the end of the stream."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        for raw in self.decoder.feed(data):
            self.take(BY_NUMBER[raw.type].name, raw.id, raw.body)
        return bool(data)

    def drain(self):
        """After the host's end: takes what it had sent."""
        self.socket.setblocking(True)
        while self.receive():
            pass
        self.leave()

    def leave(self):
        """Closes the connection."""
        if self.socket.fileno() in self.selector.get_map():
            self.selector.unregister(self.socket)
        self.close()

    def take(self, name, request_id, body):
        raise NotImplementedError

    def tick(self, now):
        """Called at every turn."""


class Writer(Peer):
    """Keeps `depth` batches under way. Each begins with a record of the writer's own, by which it is known."""

    def __init__(self, name, pool, random):
        super().__init__(name)
        self.pool, self.random, self.mark = pool, random, pool.mark(name)
        self.batch_count = self.acked = self.acked_operations = 0
        self.sent = []

    def open(self, path, selector):
        self.sent, self.waiting, self.depth, self.is_ready = [], {}, self.random.randrange(1, 6), False
        self.large = self.random.random() < 0.01
        super().open(path, selector)

    def take(self, name, request_id, body):
        if name == "WELCOME":
            self.welcomed()
            return
        if name == "PING":
            return
        sent = self.waiting.pop(request_id, None)
        if sent is None or name not in ("WRITTEN", "ERROR"):
            raise Broken("wrong", f"{self.name}: an unexpected {name}")
        if name == "ERROR":
            fields = BY_NAME[name].decode(body)
            sent.error = ERROR_NAMES[fields["error"]]
            if not sent.is_atomic or sent.error not in ATOMIC_ERRORS:
                raise Broken("wrong", f"{self.name}, batch {sent.label}: {sent.error}, {fields['message']}")
        else:
            sent.results = results_in(body)
            self.acked_operations += len(sent.results)
        self.acked += 1
        self.pump()

    def welcomed(self):
        self.is_ready = True
        self.pump()

    def pump(self):
        while self.is_ready and len(self.waiting) < self.depth:
            self.write(self.next_batch())

    def write(self, sent, origin=0):
        flags = RESULTS | (ATOMIC if sent.is_atomic else 0)
        self.sent.append(sent)
        body = write_body([operation(*item) for item in sent.operations], origin, sent.number, flags)
        self.waiting[self.send_body("WRITE", body)] = sent

    def next_batch(self):
        self.batch_count += 1
        is_atomic = self.random.random() < self.atomic_share
        first = SAVE, self.mark, self.pool.record(self.mark, 40)
        return Sent((self.name, self.batch_count), [first, *self.operations(is_atomic)], is_atomic)


class Importer(Writer):
    """Saves records at any places; now and then so large ones that a batch becomes a run of blocks."""

    atomic_share = 0.5

    def operations(self, is_atomic):
        rng = self.random
        count, byte_count = rng.choice((1, 10, 20, 40)), rng.choice((12, 60, 300))
        if self.large:
            self.large, count, byte_count = False, 60, 64_000
        verb = INSERT if not is_atomic and rng.random() < 0.2 else SAVE
        return [(verb, place, self.pool.record(place, byte_count)) for place in rng.sample(self.pool.places, count)]


class NumberedImporter(Importer):
    """Numbers its batches. After a crash it continues the import and sends again what was not answered."""

    def __init__(self, name, pool, random):
        super().__init__(name, pool, random)
        self.import_count, self.token, self.again = 0, None, []
        self.begins, self.ended = [], []

    def open(self, path, selector):
        unanswered = [sent for sent in self.sent if not sent.is_answered]
        seen = {sent.number for sent in unanswered}
        # What the last life did not get to send again is still owed.
        owed = [sent for sent in self.again if sent.number not in seen and sent.label[0] == self.token]
        self.again = sorted(owed + unanswered, key=lambda sent: sent.number)
        self.begins, self.ended = [], []
        self.origin = self.request = self.ending = None
        super().open(path, selector)

    def welcomed(self):
        if self.token is None:
            self.import_count += 1
            self.token, self.number = f"{self.name}-{self.import_count}", 0
            self.left = self.random.randrange(3, 30)
        self.request = self.send("BEGIN_IMPORT", source="films", token=self.token)

    def take(self, name, request_id, body):
        if name == "IMPORT_BEGUN" and request_id == self.request:
            self.begun(BY_NAME[name].decode(body))
        elif name == "IMPORT_ENDED" and request_id == self.ending:
            self.ended.append(self.origin)
            self.token, self.ending, self.is_ready = None, None, False
            self.welcomed()
        else:
            super().take(name, request_id, body)

    def begun(self, reply):
        self.origin = reply["origin"]
        self.begins.append((self.origin, self.token, reply["resumed"], reply["last_batch"]))
        self.is_ready = True
        self.pump()

    def check_begun(self, ledger):
        """What it was told of its imports, against the log as it was before this life."""
        for origin, token, resumed, last in self.begins:
            mine = self.name, token
            known = next((number for number in ledger.open_imports if ledger.origins[number] == mine), None)
            if bool(resumed) != (known is not None) or resumed and origin != known:
                raise Broken("lost", f"{self.name}: import {token} is {origin}, resumed {resumed}; the log has {known}")
            if last != (ledger.last_token.get(origin, 0) if resumed else 0):
                raise Broken("lost", f"{self.name}, import {token}: the last batch is {last}, the log has "
                                     f"{ledger.last_token.get(origin, 0)}")

    def check_imports(self, ledger):
        """What it was told of its imports, against the log as it is after this life."""
        for origin, token, _, _ in self.begins:
            if ledger.origins.get(origin) != (self.name, token):
                raise Broken("lost", f"{self.name}: the import {token} was begun as {origin}, the log does not have it")
        for origin in self.ended:
            if origin in ledger.open_imports:
                raise Broken("lost", f"{self.name}: the end of import {origin} was answered, the log does not have it")

    def pump(self):
        while self.is_ready and len(self.waiting) < self.depth:
            if self.again:
                again = self.again.pop(0)
                self.write(Sent(again.label, again.operations, again.is_atomic, again.number), self.origin)
            elif self.left > 0:
                self.left -= 1
                self.number += 1
                is_atomic = self.random.random() < 0.2
                operations = self.operations(is_atomic)
                self.write(Sent((self.token, self.number), operations, is_atomic, self.number), self.origin)
            else:
                if not self.waiting and self.ending is None:
                    self.ending = self.send("END_IMPORT", origin=self.origin, outcome=1)
                return


class Deleter(Writer):
    """Deletes records at any places, also where there is none."""

    atomic_share = 0.2

    def operations(self, is_atomic):
        count = 2 if is_atomic else self.random.choice((1, 5, 25))
        return [(DELETE, place, None) for place in self.random.sample(self.pool.places, count)]


class Clearer(Writer):
    """Clears a kind, or everything, once at a random moment."""

    def __init__(self, name, pool, random):
        super().__init__(name, pool, random)
        self.moment = None

    def open(self, path, selector):
        self.moment = time.monotonic() + self.random.uniform(0, 0.1)
        super().open(path, selector)

    def tick(self, now):
        if self.is_ready and self.moment and now >= self.moment:
            self.moment = None
            sent = Sent((self.name, 0), [], clears=self.random.choice((0, TITLE.number, JOKE.number)))
            self.sent.append(sent)
            self.waiting[self.send("CLEAR", kind=sent.clears)] = sent

    def take(self, name, request_id, body):
        if name == "CLEARED":
            fields, sent = BY_NAME[name].decode(body), self.waiting.pop(request_id)
            sent.results = [(6, fields["seq"])] if fields["deleted"] else []
            self.acked += 1
        elif name == "WELCOME":
            self.is_ready = True
        elif name != "PROGRESS":
            super().take(name, request_id, body)


def results_in(body):
    """(outcome, seq) of each operation of a WRITTEN."""
    at = 9
    for _ in range(9):
        value, at = read_varint(body, at)
    if value:
        raise Broken("wrong", f"{value} operations were refused: {BY_NAME['WRITTEN'].decode(body)['refusals'][:2]}")
    count, at = read_varint(body, at)
    return [(body[at + 10 * n], int.from_bytes(body[at + 10 * n + 1:at + 10 * n + 9], "little")) for n in range(count)]
