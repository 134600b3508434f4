"""The following itself, with a plugin that plays events from a list."""

import json
import os
import threading
import types
import unittest
from unittest import mock

from support import scratch

from jsonl_mirror import follow
from jsonl_mirror.follow import Mirror, Refused
from jsonl_mirror.scan import published
from larder import CursorExpired, encode_record
from larder.entries import CREATED, DELETED, UPDATED, frame_entry, read_frame
from larder.errors import ERROR_NUMBERS
from larder.events import Event
from larder.keys import encode_key
from larder.kinds import Field, Kind
from larder.results import Cursor
from larder.values import IDENTIFIER, TEXT

ITEM = Kind(64, "item", 1, [Field(1, "id", IDENTIFIER, 1), Field(2, "name", TEXT, 0)], 1, (2,))
EPOCH = 0x9B1F00C2A4D3E5F6
TIME = 1769846400000


def event(type, seq, number, name="", first=None, s0=None):
    record = encode_record(ITEM, {"id": number, "name": name or None})
    first = seq if first is None else first
    body = {"created": b"\x40\x01" + record,
            "updated": b"\x00\x40\x01" + bytes([seq - first, 0, 0, 0]) + record,
            "deleted": b"\x00\x40\x01" + bytes([seq - first, 0]) + encode_key(ITEM, [number])}[type]
    data = frame_entry({"created": CREATED, "updated": UPDATED, "deleted": DELETED}[type], seq, seq, body)
    return Event(type, seq, TIME, EPOCH, s0, read_frame(data, 0, len(data), seq), data, {64: ITEM})


def end(seq):
    return Event("snapshot_end", seq, 0, EPOCH, None)


class Player:
    """As much of a `Plugin` as the mirror uses. `parts`: for each subscription a list of events or an error."""

    def __init__(self, *parts):
        self.parts = list(parts)
        self.asked = []
        self.client = types.SimpleNamespace(stop=lambda: None, stopping=True)
        self.subscription = types.SimpleNamespace(cursor=None, unsubscribe=lambda: self.asked.append("unsubscribed"))

    def follow(self, after, *, snapshot, heartbeats):
        self.asked.append(("snapshot" if snapshot else str(after)))
        part = self.parts.pop(0)
        if isinstance(part, BaseException):
            raise part
        for item in part:
            if isinstance(item, BaseException):
                raise item
            if callable(item):
                item()
                continue
            self.subscription.cursor = item.cursor
            yield item


class FollowTest(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(scratch(self), "deep", "library.jsonl")
        self.said = []

    def play(self, *parts):
        player = Player(*parts)
        mirror = Mirror(self.path, self.said.append)
        try:
            mirror.follow(player)
        finally:
            mirror.published.close()
            mirror.building.close()
            os.close(mirror._lock)
        return player

    def names(self):
        with open(self.path, "rb") as source:
            return {item["record"]["id"]: item["record"].get("name") for item in map(json.loads, source)}

    def cursor(self):
        mirror = published(self.path)
        mirror.close()
        return mirror.state.cursor

    def test_a_snapshot_and_what_follows(self):
        player = self.play([event("created", 5, 1, "a", s0=7), event("updated", 7, 2, "b", 6, s0=7), end(9),
                            event("deleted", 10, 1, first=5), event("created", 11, 3, "ç")])
        self.assertEqual(player.asked, ["snapshot"])
        self.assertEqual(self.names(), {2: "b", 3: "ç"})
        self.assertEqual(self.cursor(), str(Cursor(EPOCH, 11)))
        with open(self.path, encoding="utf-8") as source:
            self.assertEqual(source.read().lstrip(" ").splitlines()[0], (
                '{"kind":"item","key":"item:2","seq":7,"saved_seq":6,"saved_at":"2026-01-31T08:00:00.000Z",'
                '"changed_at":"2026-01-31T08:00:00.000Z","origin":1,"record":{"id":2,"name":"b"}}'))

    def test_it_goes_on_from_its_cursor(self):
        self.play([end(0)])
        player = self.play([event("created", 3, 1, "a")])
        self.assertEqual(player.asked, [str(Cursor(EPOCH, 0))])
        self.assertEqual(self.names(), {1: "a"})

    def test_an_interrupted_snapshot_goes_on_and_is_not_shown_before_its_end(self):
        with self.assertRaises(ConnectionError):
            self.play([event("created", 5, 1, "a", s0=9), event("created", 6, 2, "b", s0=9), ConnectionError()])
        self.assertIsNone(published(self.path))
        player = self.play([event("created", 9, 3, "c", s0=9), event("deleted", 10, 9, s0=9),
                            event("deleted", 11, 1, first=5, s0=9), end(11)])
        self.assertEqual(player.asked, [str(Cursor(EPOCH, 6, 9))])
        self.assertEqual(self.names(), {2: "b", 3: "c"})
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.path))),
                         ["library.jsonl", "library.jsonl.cursor", "library.jsonl.lock"])

    def test_an_expired_cursor_means_a_new_snapshot_behind_the_old_file(self):
        self.play([event("created", 1, 1, "old"), end(1)])
        seen = []
        player = self.play(CursorExpired(ERROR_NUMBERS["cursor_expired"], "gone"),
                           [event("created", 50, 2, "new"), lambda: seen.append(self.names()), end(50)])
        self.assertEqual(player.asked[1:], ["snapshot"])
        self.assertEqual(seen, [{1: "old"}])
        self.assertEqual(self.names(), {2: "new"})

    def test_a_lost_span_means_a_new_snapshot_but_not_inside_one(self):
        lost = Event("lost", 8, 0, EPOCH, None, after=3)
        player = self.play([event("created", 1, 1, "a"), end(1), event("created", 2, 2, "b"), lost],
                           [event("created", 1, 1, "a"), Event("lost", 8, 0, EPOCH, 9, after=3), end(9)])
        self.assertEqual(player.asked, ["snapshot", "unsubscribed", "snapshot"])
        self.assertEqual(self.names(), {1: "a"})

    def test_changes_are_committed_within_a_second_though_nothing_follows(self):
        seen = []

        def wait():
            for _ in range(200):
                if len(self.names()) == 2:
                    seen.append(self.cursor())
                    return
                threading.Event().wait(0.01)

        with mock.patch.object(follow, "GROUP_SECONDS", 0.05):
            self.play([end(1), event("created", 2, 1), event("created", 3, 2), wait])
        self.assertEqual(seen, [str(Cursor(EPOCH, 3))])

    def test_a_failed_commit_ends_it(self):
        with mock.patch.object(follow.Store, "commit", side_effect=OSError("no room")):
            with self.assertRaisesRegex(OSError, "no room"):
                self.play([event("created", 2, 1), end(2)])

    def test_a_file_that_is_not_a_mirror_is_never_replaced(self):
        os.makedirs(os.path.dirname(self.path))
        with open(self.path, "w") as out:
            out.write("my notes\n")
        with self.assertRaises(Refused):
            Mirror(self.path, self.said.append)
        with open(self.path) as source:
            self.assertEqual(source.read(), "my notes\n")

    def test_two_mirrors_do_not_share_a_file(self):
        first = Mirror(self.path, self.said.append)
        with self.assertRaisesRegex(Refused, "another mirror"):
            Mirror(self.path, self.said.append)
        os.close(first._lock)

    def test_a_lost_cursor_means_a_new_snapshot(self):
        self.play([event("created", 1, 1, "a"), end(1)])
        os.unlink(self.path + ".cursor")
        player = self.play([event("created", 1, 1, "b"), end(1)])
        self.assertEqual(player.asked, ["snapshot"])
        self.assertEqual(self.names(), {1: "b"})


if __name__ == "__main__":
    unittest.main()
