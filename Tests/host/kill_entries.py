"""Entries of the log as a host sends them, and what is broken where they are not what they should be."""

import struct

from harness import BY_KIND
from larder.entries import decode_body, read_frame
from larder.keys import key_text
from larder.varint import read_varint

CREATED, UPDATED, DELETED, KIND, ORIGIN, BEGAN, ENDED, TOKEN, RECOVERED = 1, 2, 3, 16, 17, 18, 19, 20, 21
OUTCOMES = ("created", "updated", "unchanged", "duplicate", "already_saved", "not_found", "deleted", "refused")
RUN = struct.Struct("<QqI")


class Broken(AssertionError):
    """A promise that was not kept. `promise` is lost, half, early, gap or wrong."""

    def __init__(self, promise, text):
        super().__init__(f"{promise}: {text}")
        self.promise = promise


def name_of(place):
    """A key for people."""
    return key_text(BY_KIND[place[0]], place[1])


def cut(body):
    """The entries of an EVENTS body: (seq, bytes, first seq of the commit, its time)."""
    found, at, size = [], 16, len(body)
    while at < size:
        first, time, count = RUN.unpack_from(body, at)
        at += RUN.size
        end = at + count
        while at < end:
            length, inner = read_varint(body, at)
            difference, _ = read_varint(body, inner + 1)
            after = inner + length
            found.append((first + difference, body[at:after], first, time))
            at = after
    return found


class Entry:
    """An entry of the log. `place` is (kind, key) of a change of a record. Its CRC is checked by the independent reader
    when the library has had its last round, which costs less than doing it here."""

    __slots__ = ("seq", "type", "kind", "place", "origin", "record", "first_seq", "fields", "data")

    def __init__(self, seq, data, first, time):
        frame = read_frame(data, 0, len(data), first, False)
        self.fields = fields = decode_body(frame, data, time)
        self.seq, self.type, self.data = seq, frame.type, data
        self.origin, self.record = fields.get("origin", 0), fields.get("record")
        self.first_seq = fields.get("first_seq")
        self.place, self.kind = None, 0
        if self.type <= DELETED:
            self.kind = fields["kind"]
            self.place = self.kind, fields["key"] if self.type == DELETED else key_in(self.kind, self.record)

    def __repr__(self):
        return f"seq {self.seq} ({OUTCOMES[(0, 1, 6)[self.type - 1]]} {name_of(self.place)})" if self.place else \
            f"seq {self.seq} (type {self.type})"


def key_in(kind, record):
    """The key of a record that a writer here made: its fields come first, and their byte count is always the same."""
    start = 1 + record[0]
    return record[start:start + KEY_BYTES[kind]]


#: A title's source of four letters, its media type and an id of two bytes; a joke's uuid.
KEY_BYTES = {1: 8, 3: 16}
