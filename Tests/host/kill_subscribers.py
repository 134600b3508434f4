"""Subscribers of a host that will be killed: each goes on from its cursor, and what it was told is held against the
log.
"""

from harness import ALL_TYPES, ERROR_NAMES, HEADER_BYTES, JOKE, TITLE, TYPE_BITS, span_of
from kill_entries import DELETED, Broken, cut, key_in
from kill_peers import Peer
from larder.entries import decode_body, read_frame
from larder.messages import BY_NAME

AFTER, NOW, SNAPSHOT, RESUMED = 1, 2, 3, 4


class Subscriber(Peer):
    """Follows what its filter lets through. `pause` is how long it waits before it gives credit, in seconds; one that
    `sleeps` reads nothing before the host is gone; one that `rewinds` forgets now and then what it had last."""

    def __init__(self, name, random, start=AFTER, types=ALL_TYPES, kinds=(), window=1 << 18, pause=0.0, sleeps=False,
                 rewinds=False, without=""):
        super().__init__(name)
        self.random, self.first_start, self.types, self.kinds = random, start, types, kinds
        self.window, self.pause, self.sleeps, self.rewinds = window, pause, sleeps, rewinds
        #: The program whose entries are left out, and its origin once it is known.
        self.without, self.without_origin = without, 0
        self.event_count = self.snapshot_count = self.expired_count = 0
        self.forget()

    def forget(self):
        """Begins anew."""
        self.epoch, self.cursor, self.s0, self.snapshot_end, self.model = 0, None, 0, None, {}
        self.previous = None
        self.frames, self.begin = [], None
        self.is_refused = False

    def wants(self, entry):
        """Its filter, on an entry of the log."""
        return (TYPE_BITS.get(entry.type, 0) & self.types
                and not (self.kinds and entry.kind and entry.kind not in self.kinds)
                and not (self.without_origin and entry.origin == self.without_origin))

    def prepare(self, ledger, epoch, floor=1, goal=None):
        """Before it connects: where it begins, and the seq up to which it is to come, if any."""
        self.goal, self.is_synced = goal, False
        if self.is_refused or self.cursor is not None and self.cursor + 1 < floor:
            # A compaction has taken what is behind its cursor.
            self.expired_count += 1
            self.forget()
        self.start = NOW if floor > 1 and self.first_start == AFTER else self.first_start
        if self.cursor is None:
            self.epoch = epoch
            if self.without:
                self.without_origin = next(
                    (number for number, origin in ledger.origins.items() if origin[0] == self.without), 0)
        elif self.first_start == SNAPSHOT and self.random.random() < 0.3:
            self.forget()
            self.epoch = epoch
        elif self.rewinds and self.previous is not None and self.random.random() < 0.2:
            self.cursor = self.previous
        self.previous = self.cursor
        self.begin, self.frames = self.cursor, []

    def open(self, path, selector):
        self.subscription, self.owed, self.due = None, 0, None
        super().open(path, selector)
        if self.cursor is None:
            start, seq = self.start, 0
        elif self.first_start == SNAPSHOT and self.snapshot_end is None:
            start, seq = RESUMED, self.cursor
        else:
            start, seq = AFTER, self.cursor
        fields = {"except": self.without_origin}
        if start in (AFTER, RESUMED):
            fields.update(epoch=self.epoch, seq=seq)
        if start == RESUMED:
            fields["s0"] = self.s0
        # HELLO is on its way: requests may follow it at once.
        self.subscription = self.send("SUBSCRIBE", start=start, types=self.types, kinds=list(self.kinds),
                                      credit=self.window, **fields)
        if self.goal is not None:
            self.send("SYNC", subscription=self.subscription)
        elif self.sleeps:
            selector.unregister(self.socket)

    def take(self, name, request_id, body):
        if name == "EVENTS":
            after, through = span_of(body)
            if after != self.cursor or through < after:
                raise Broken("gap", f"{self.name}: events of ({after}, {through}], all up to {self.cursor} was here")
            self.cursor = through
            self.frames.append(body)
            self.owed += HEADER_BYTES + len(body)
        elif name == "SUBSCRIBED":
            self.subscribed(BY_NAME[name].decode(body))
        elif name == "SNAPSHOT_END":
            self.snapshot_end = BY_NAME[name].decode(body)["s1"]
            self.frames.append(None)
            if self.snapshot_end != self.cursor:
                raise Broken("gap", f"{self.name}: a snapshot ends at {self.snapshot_end}, the cursor is {self.cursor}")
        elif name == "SYNCED":
            # Also what the filter leaves out is behind it now.
            self.is_synced = True
            self.cursor = max(self.cursor, BY_NAME[name].decode(body)["through"])
        elif name == "ERROR" and self.is_behind(BY_NAME[name].decode(body)):
            # A compaction of this round was quicker than its SUBSCRIBE.
            self.is_refused = True
        elif name not in ("WELCOME", "PING"):
            raise Broken("early", f"{self.name}, at {self.cursor}: {name} {BY_NAME[name].decode(body)}")

    def is_behind(self, error):
        """Whether the error says that its cursor has expired, and that is so."""
        floor = next((int(fact["value"]) for fact in error["facts"] if fact["name"] == "floor"), 0)
        needed = max(self.cursor or 0, (self.s0 or 0) if self.snapshot_end is None else 0)
        return ERROR_NAMES[error["error"]] == "cursor_expired" and self.cursor is not None and needed + 1 < floor

    def subscribed(self, reply):
        if self.cursor is None:
            self.cursor, self.s0 = reply["after"], reply["s0"]
            self.begin = self.cursor
        elif reply["after"] != self.cursor:
            raise Broken("gap", f"{self.name}: goes on behind {reply['after']}, all up to {self.cursor} was here")

    def tick(self, now):
        if self.owed * 2 < self.window or not self.socket:
            return
        if self.due is None:
            self.due = now + (self.pause if self.goal is None else 0)
        if now >= self.due:
            self.send("CREDIT", request_id=self.subscription, bytes=self.owed)
            self.owed, self.due = 0, None

    @property
    def is_there(self):
        """It has reached its goal."""
        return self.is_synced and self.cursor >= self.goal and (
            self.first_start != SNAPSHOT or self.snapshot_end is not None)

    def check(self, ledger, last_seq):
        """What it was told since `prepare` against the log of the host that runs now."""
        if self.cursor is None:
            return
        if self.cursor > last_seq:
            raise Broken("early", f"{self.name}: was told of seq {self.cursor}, the log ends at {last_seq}")
        exact_from, told = self.begin, []
        if self.first_start == SNAPSHOT:
            exact_from = max(self.begin, self.s0)
        for body in self.frames:
            if body is None:
                self._check_snapshot(ledger)
                continue
            for seq, data, first, time in cut(body):
                self.event_count += 1
                if not ledger.has(seq, data):
                    raise Broken("early", f"{self.name}: was told of seq {seq}, which the log does not have as it was")
                if seq > exact_from:
                    told.append(seq)
                if self.first_start == SNAPSHOT:
                    self._apply(read_frame(data, 0, len(data), first, False), data, time)
        owed = [entry.seq for entry in ledger.between(exact_from, self.cursor) if self.wants(entry)]
        if told != owed:
            at = next((at for at, pair in enumerate(zip(told, owed)) if pair[0] != pair[1]), min(len(told), len(owed)))
            raise Broken("gap", f"{self.name}, from {exact_from} to {self.cursor}: {len(told)} events, {len(owed)} "
                                f"entries; they part at {told[at:at + 1]}, {owed[at:at + 1]}")
        self.frames, self.begin = [], self.cursor

    def _apply(self, frame, data, time):
        if frame.type > DELETED:
            return
        fields = decode_body(frame, data, time)
        if frame.type == DELETED:
            self.model.pop((fields["kind"], fields["key"]), None)
        else:
            self.model[fields["kind"], key_in(fields["kind"], fields["record"])] = frame.seq

    def _check_snapshot(self, ledger):
        self.snapshot_count += 1
        state = ledger.state_at(self.snapshot_end, self.wants)
        if state != self.model:
            raise Broken("gap", f"{self.name}: the snapshot at {self.snapshot_end} has {len(self.model)} records, the "
                                f"library had {len(state)}, {len(state.items() ^ self.model.items())} differ")


class Anchor(Subscriber):
    """Stands where everybody's account ends, and takes nothing: so a compaction leaves what is still to be compared."""

    def __init__(self, name, random):
        super().__init__(name, random, window=0)

    def prepare(self, ledger, epoch):
        self.forget()
        self.goal, self.start, self.epoch, self.cursor = None, AFTER, epoch, ledger.last_seq


def eight(random):
    """The subscribers of the campaign."""
    return [
        Subscriber("all", random),
        Subscriber("all, slow", random, window=6_000, pause=0.01),
        Subscriber("all, asleep", random, window=100_000, sleeps=True),
        Subscriber("titles", random, types=3, kinds=(TITLE.number,), rewinds=True),
        Subscriber("jokes, slow", random, types=3, kinds=(JOKE.number,), window=3_000, pause=0.004),
        Subscriber("snapshot", random, start=SNAPSHOT, window=16_000, pause=0.002),
        Subscriber("snapshot of jokes", random, start=SNAPSHOT, types=3, kinds=(JOKE.number,), window=1 << 16),
        Subscriber("from now, but one", random, start=NOW, types=3, without="del2", rewinds=True),
    ]
