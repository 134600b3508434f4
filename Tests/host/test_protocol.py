"""What is not the protocol gets the typed error of SPEC.md, at worst a closed connection; the host lives on."""

import json
import os
import socket
import struct
import unittest

from harness import (BY_NAME, JOKE, PREFACE, RESULTS, ROOT, TITLE, HostCase, Wire, delete, encode_frame, list_all, save, title,
                     title_key, write_body)
from larder.errors import DecodeError, ERROR_NAMES

with open(os.path.join(ROOT, "Protocol", "vectors", "messages.json"), encoding="utf-8") as file:
    VECTORS = json.load(file)
HELLO = BY_NAME["HELLO"].encode({"version_min": 1, "version_max": 1, "name": "raw", "version": "1", "required": [], "optional": []})
CLIENTS = ["HELLO", "REGISTER", "READY", "WRITE", "GET", "LIST", "COUNT", "CLEAR", "KINDS", "SUBSCRIBE", "CREDIT", "SYNC",
           "UNSUBSCRIBE", "PING", "CANCEL", "STATUS", "GOODBYE", "ORIGINS", "PLUGIN", "GIVE_WAY", "BEGIN_IMPORT", "END_IMPORT",
           "FIND", "SEARCH", "HISTORY", "ENTRIES", "DEFINE", "COMPACT"]
NOTICES = {"READY", "CREDIT", "CANCEL", "GOODBYE"}
FILM = title(603, "The Matrix")
# A body for each message that is right in itself.
EVERY_OPERATION = BY_NAME["WRITE"].encode({"flags": 6, "operations": [
    {"verb": 1, "mode": 1, "options": 0, "kind": 1, "known": 33, "body": FILM},
    {"verb": 1, "mode": 3, "options": 11, "kind": 1, "known": 33, "if_seq": 300, "unset": [7, 8, 200], "body": FILM},
    {"verb": 3, "mode": 0, "options": 7, "kind": 1, "known": 33, "if_seq": 300, "unless_exists": 14, "old_key": title_key(5),
     "body": FILM},
    {"verb": 4, "mode": 0, "options": 0, "kind": 1, "known": 0, "first_seq": 300, "saved_at": -1, "body": FILM},
    {"verb": 2, "mode": 0, "options": 2, "kind": 1, "known": 0, "if_seq": 0, "body": title_key(603)}]})
BODIES = {
    "HELLO": HELLO, "REGISTER": BY_NAME["REGISTER"].encode({"roles": 1, "events": 0, "kinds": [], "commands": []}),
    "WRITE": write_body([save(FILM)]), "GET": BY_NAME["GET"].encode({"kind": 1, "key": title_key(603)}),
    "LIST": BY_NAME["LIST"].encode({"limit": 1}), "COUNT": BY_NAME["COUNT"].encode({}),
    "CLEAR": BY_NAME["CLEAR"].encode({"kind": JOKE.number}),
    "SUBSCRIBE": BY_NAME["SUBSCRIBE"].encode({"start": 2, "types": 3, "kinds": [], "credit": 1000}),
    "CREDIT": BY_NAME["CREDIT"].encode({"bytes": 1}), "SYNC": BY_NAME["SYNC"].encode({"subscription": 9}),
    "UNSUBSCRIBE": BY_NAME["UNSUBSCRIBE"].encode({"subscription": 9}), "PING": BY_NAME["PING"].encode({"bytes": b"x"}),
    "GOODBYE": BY_NAME["GOODBYE"].encode({"error": 0, "reason": ""}), "ORIGINS": BY_NAME["ORIGINS"].encode({"limit": 1}),
    "PLUGIN": BY_NAME["PLUGIN"].encode({"name": "none", "action": 2}),
    "BEGIN_IMPORT": BY_NAME["BEGIN_IMPORT"].encode({"source": "s"}), "END_IMPORT": BY_NAME["END_IMPORT"].encode(
        {"origin": 77, "outcome": 1}),
    "FIND": BY_NAME["FIND"].encode({"kind": 1, "field": 14, "value": b"\3tt1", "limit": 5}),
    "SEARCH": BY_NAME["SEARCH"].encode({"query": "matrix", "limit": 5}),
    "HISTORY": BY_NAME["HISTORY"].encode({"kind": 1, "key": title_key(603), "limit": 5}),
    "COMPACT": BY_NAME["COMPACT"].encode({
        "history_since": 1, "dead_share": 50, "wait": 300, "purged": [{"kind": 1, "key": title_key(9_603)}]}),
    "ENTRIES": BY_NAME["ENTRIES"].encode({"seqs": [1, 300]}), "DEFINE": BY_NAME["DEFINE"].encode({"declaration": JOKE}),
}


def body_of(name):
    return BODIES.get(name, b"")


class ProtocolCase(HostCase):
    """One host, and a connection that must live through everything."""

    def setUp(self):
        super().setUp()
        self.larder = self.host()
        self.bystander = self.larder.wire("bystander")
        self.addCleanup(self.bystander.close)

    def tearDown(self):
        try:
            self.check()
        finally:
            super().tearDown()

    def check(self):
        """The host, and the other connection, live on."""
        self.assertLives(self.larder)
        self.assertEqual(self.bystander.call("PING", bytes=b"still")["bytes"], b"still")

    def raw(self, data=b"", hello=False):
        wire = self.larder.wire("raw", hello=hello)
        self.addCleanup(wire.close)
        if data:
            wire.raw(data)
        return wire

    def assertRefusedWithALine(self, data, saying):
        wire = self.raw(data)
        text = wire.text_until_closed().decode("utf-8")
        self.assertRegex(text, r"\Alarder: [^\n]*\n\Z")
        self.assertIn(saying, text)

    def assertStillOpen(self, wire):
        self.assertEqual(wire.call("PING", bytes=b"open")["bytes"], b"open")


class StrangerTests(ProtocolCase):
    def test_a_web_client_gets_one_readable_line(self):
        self.assertRefusedWithALine(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP")
        self.assertRefusedWithALine(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP")
        self.assertRefusedWithALine(b"POST /save HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "HTTP")

    def test_a_tls_client_gets_one_readable_line(self):
        hello = bytes.fromhex("160301") + struct.pack(">H", 200) + bytes.fromhex("010000c40303") + bytes(194)
        self.assertRefusedWithALine(hello, "TLS")

    def test_text_and_another_major_version_get_one_readable_line(self):
        self.assertRefusedWithALine(b"hello?\n", "text")
        self.assertRefusedWithALine(b"LARDER\x02\n", "version 2")
        self.assertRefusedWithALine(b"LARDER\x01\r\n", "")
        self.assertRefusedWithALine(b"{}\n", "text")

    def test_a_preface_that_is_too_long_is_a_bad_frame(self):
        wire = self.raw(PREFACE + PREFACE + PREFACE)
        self.assertError(wire.receive(), "bad_frame", 0, fatal=True)
        self.assertEqual(wire.until_closed(), [])

    def test_two_thousand_connections_of_random_bytes(self):
        for at in range(2000):
            size = self.random.choice((1, 3, 8, 12, 20, 64, 300))
            data = self.random.randbytes(size)
            style = at % 4
            if style == 1:
                data = PREFACE[:self.random.randrange(9)] + data
            elif style == 2:
                data = PREFACE + encode_frame(1, 1, HELLO) + data
            elif style == 3:
                data = PREFACE + encode_frame(1, 1, HELLO) + b"".join(
                    encode_frame(self.random.choice((2, 4, 5, 6, 7, 9, 10, 12, 13, 14, 18, 20, 22, 23, self.random.randrange(256))),
                                 self.random.randrange(1, 50), self.random.randbytes(self.random.randrange(40)))
                    for _ in range(6))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.connect(self.larder.socket)
                try:
                    sock.sendall(data)
                    if at % 8 < 4:
                        sock.shutdown(socket.SHUT_WR)
                        sock.settimeout(10)
                        while sock.recv(65536):
                            pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
            if at % 500 == 499:
                self.check()
        self.eventually(lambda: self.larder.descriptor_count() < 60, 10, "the end of the closed connections")

    def test_half_a_frame_and_a_close_cost_nothing(self):
        whole = PREFACE + encode_frame(1, 1, HELLO) + encode_frame(4, 2, write_body([save(FILM)]))
        for cut in range(len(whole)):
            self.raw(whole[:cut]).close()
        self.check()
        self.assertEqual(self.bystander.call("COUNT", kind=1)["counts"], [{"kind": 1, "records": 0}])


class HeaderTests(ProtocolCase):
    def test_a_frame_over_the_limit_is_refused_before_it_is_sent(self):
        before = self.larder.anonymous_bytes()
        for greeted, limit in ((False, 65_536), (True, 4_194_304)):
            for length in (limit + 1, 0x7FFFFFFF, 0xFFFFFFFF):
                wire = self.raw(b"" if greeted else PREFACE, hello=greeted)
                wire.raw(struct.pack("<IBBHI", length, 4 if greeted else 1, 0, 0, 9))
                reply = wire.receive()
                self.assertError(reply, "frame_too_large", 0, place=0, fatal=True)
                self.assertEqual(reply.facts, {"length": str(length), "limit": str(limit)})
                self.assertEqual(wire.until_closed(), [])
        self.assertLess(self.larder.anonymous_bytes() - before, 4 << 20)

    def test_flags_and_the_zero_field_must_be_zero(self):
        for flags, zero in ((1, 0), (128, 0), (0, 1), (0, 0x8000)):
            for greeted in (False, True):
                wire = self.raw(b"" if greeted else PREFACE, hello=greeted)
                wire.raw(struct.pack("<IBBHI", 0, 9, flags, zero, 5))
                self.assertError(wire.receive(), "bad_frame", 0, fatal=True)
                self.assertEqual(wire.until_closed(), [])

    def test_a_request_with_id_0_ends_the_connection(self):
        for name in CLIENTS:
            if name in NOTICES:
                continue
            wire = self.raw(b"" if name != "HELLO" else PREFACE, hello=name != "HELLO")
            wire.frame(name, 0, body_of(name))
            self.assertError(wire.receive(), "bad_frame", 0, fatal=True)
            self.assertEqual(wire.until_closed(), [])

    def test_an_id_in_use_is_told_with_id_0_and_the_first_lives(self):
        wire = self.raw(hello=True)
        wire.saved([save(FILM)])
        subscription, _ = wire.subscribe(1, epoch=wire.welcome["epoch"], seq=0, credit=0)
        sync = wire.send("SYNC", subscription=subscription)
        for taken in (subscription, sync):
            for name in ("COUNT", "PING", "SUBSCRIBE", "WRITE", "GET"):
                wire.frame(name, taken, body_of(name))
                reply = wire.receive()
                self.assertError(reply, "request_in_use", 0)
                self.assertEqual(reply.facts, {"id": str(taken)})
        wire.notice("CREDIT", subscription, bytes=10_000)
        self.assertEqual([wire.receive().name for _ in range(2)], ["EVENTS", "SYNCED"])
        wire.frame("PING", sync, body_of("PING"))
        self.assertEqual(wire.receive().name, "PONG", "an answered id is free again")

    def test_open_requests_are_limited(self):
        wire = self.raw(hello=True)
        limit = wire.welcome["open_requests_limit"]
        wire.saved([save(FILM)])
        subscription, _ = wire.subscribe(1, epoch=wire.welcome["epoch"], seq=0, credit=0)
        syncs = [wire.send("SYNC", subscription=subscription) for _ in range(limit - 1)]
        over = wire.call("SYNC", subscription=subscription)
        self.assertError(over, "too_many_requests")
        self.assertEqual(over["flags"], 2, "it may be tried again")
        wire.notice("CREDIT", subscription, bytes=10_000)
        self.assertEqual(wire.receive().name, "EVENTS")
        self.assertEqual(sorted(wire.reply(sync).id for sync in syncs), syncs)
        self.assertStillOpen(wire)


class StateTests(ProtocolCase):
    """SPEC.md section 3, row by row."""

    def test_before_hello_everything_else_is_the_wrong_state_and_the_end(self):
        for name in [*CLIENTS, "PONG"]:
            if name == "HELLO":
                continue
            request_id = 0 if name in NOTICES else 7
            wire = self.raw(PREFACE)
            wire.frame(name, request_id, BY_NAME["PING"].encode({"bytes": b""}) if name == "PONG" else body_of(name))
            self.assertError(wire.receive(), "wrong_state", request_id, fatal=True)
            self.assertEqual(wire.until_closed(), [], name)

    def test_a_type_that_no_client_sends_is_unknown(self):
        ours = {BY_NAME[name].number for name in CLIENTS} | {BY_NAME["PONG"].number}
        opened = self.raw(hello=True)
        for number in range(256):
            if number in ours:
                continue
            if number < 0x20 or number >= 0x78:
                wire = self.raw(PREFACE)
                wire.frame(number, 7, b"abc")
                self.assertError(wire.receive(), "unknown_message", 7, fatal=True)
                self.assertEqual(wire.until_closed(), [])
            opened.frame(number, 7, b"abc")
            self.assertError(opened.receive(), "unknown_message", 7)
        self.assertStillOpen(opened)

    def test_hello_and_register_come_once_and_ready_after_register(self):
        wire = self.raw(hello=True)
        wire.frame("HELLO", 70, HELLO)
        self.assertError(wire.receive(), "wrong_state", 70)
        wire.frame("READY", 0, b"")
        self.assertError(wire.receive(), "wrong_state", 0)
        wire.frame("REGISTER", 71, body_of("REGISTER"))
        self.assertEqual(wire.receive().name, "REGISTERED")
        wire.frame("READY", 0, b"")
        wire.frame("REGISTER", 72, body_of("REGISTER"))
        self.assertError(wire.receive(), "wrong_state", 72)
        self.assertStillOpen(wire)

    def test_a_register_that_names_no_kind_may_be_said_again(self):
        wire = self.raw(hello=True)
        self.assertError(wire.call("REGISTER", roles=4, events=3, kinds=["nonesuch"], commands=[]), "unknown_kind")
        self.assertEqual(wire.call("REGISTER", roles=4, events=3, kinds=["title"], commands=[]).name, "REGISTERED")

    def test_notices_for_unknown_ids_are_ignored(self):
        wire = self.raw(hello=True)
        for request_id in (0, 1, 500, 0xFFFFFFFF):
            wire.notice("CREDIT", request_id, bytes=10)
            wire.frame("CANCEL", request_id, b"")
            wire.frame("PONG", request_id, BY_NAME["PONG"].encode({"bytes": b""}))
        self.assertStillOpen(wire)

    def test_after_its_goodbye_a_client_is_owed_replies_and_asks_nothing(self):
        for name in [*CLIENTS, "PONG", 0x60, 0x84]:
            wire = self.raw(hello=True)
            # In one write, so that the save is under way when the rest is read.
            data = encode_frame(4, 2, write_body([save(title(self.random.randrange(1, 1 << 40)))])) + encode_frame(0x11, 0, b"\0\0")
            request_id = 0 if name in NOTICES else 9
            number = name if isinstance(name, int) else BY_NAME[name].number
            body = BY_NAME["PING"].encode({"bytes": b""}) if name == "PONG" else b"" if isinstance(name, int) else body_of(name)
            wire.raw(data + encode_frame(number, request_id, body))
            frames = wire.until_closed()
            self.assertEqual(frames[-1].name, "GOODBYE_HOST", frames)
            self.assertEqual(frames[-1]["error"], 0)
            self.assertIn("WRITTEN", [frame.name for frame in frames[:-1]], name)
            others = [frame for frame in frames[:-1] if frame.name != "WRITTEN"]
            if name in ("CREDIT", "CANCEL", "PONG", "GOODBYE"):
                self.assertEqual(others, [], name)
            else:
                expected = "unknown_message" if isinstance(name, int) else "wrong_state"
                self.assertEqual([(frame.error, frame.id) for frame in others], [(expected, request_id)], name)

    def test_hello_is_refused_for_versions_capabilities_and_tokens(self):
        good = {"version_min": 1, "version_max": 1, "name": "x", "version": "1", "required": [], "optional": []}
        for change, error, facts in (
                ({"version_min": 2, "version_max": 9}, "version_unsupported", {"min": "1", "max": "1"}),
                ({"version_min": 0, "version_max": 0}, "version_unsupported", {"min": "1", "max": "1"}),
                ({"version_min": 3, "version_max": 1}, "version_unsupported", {"min": "1", "max": "1"}),
                ({"required": ["teleport"]}, "capability_unsupported", None), ({"token": b"guess"}, "bad_token", None)):
            wire = self.raw(PREFACE)
            reply = wire.call("HELLO", **{**good, **change})
            self.assertError(reply, error, fatal=True)
            if facts is not None:
                self.assertEqual(reply.facts, facts)
            self.assertEqual(wire.until_closed(), [])
        wire = self.raw(PREFACE)
        reply = wire.call("HELLO", **{**good, "version_max": 99, "optional": ["teleport"]})
        self.assertEqual((reply.name, reply["version"], reply["capabilities"]), ("WELCOME", 1, []))


class BodyTests(ProtocolCase):
    def refusal_expected(self, name, body):
        """Where our own decoder refuses a body, or None where it does not."""
        try:
            BY_NAME[name].decode(body)
        except DecodeError as error:
            return error.offset
        return None

    def send_all(self, bodies):
        """Sends requests on one connection; gives each one's first answer."""
        wire = self.raw(hello=True)
        for request_id, (name, body) in enumerate(bodies, 1000):
            wire.frame(name, request_id, body)
        for request_id in range(1000, 1000 + len(bodies)):
            yield wire.reply(request_id)
        self.assertStillOpen(wire)

    def test_every_message_cut_at_every_byte_is_refused_at_its_place(self):
        cuts = []
        for vector in VECTORS["valid"]:
            name, body = vector["message"], bytes.fromhex(vector["hex"])
            if name not in NOTICES and name in CLIENTS and name not in ("HELLO", "WRITE"):
                cuts += [(name, body[:length]) for length in range(len(body))]
        for body in (body_of("WRITE"), EVERY_OPERATION):
            cuts += [("WRITE", body[:length]) for length in range(len(body))]
        checked = 0
        for (name, body), reply in zip(cuts, self.send_all(cuts)):
            offset = self.refusal_expected(name, body)
            if offset is None:
                continue
            with self.subTest(message=name, body=body.hex()):
                self.assertError(reply, "bad_message")
                # The host holds a count of operations against the least that they have, not against a byte each.
                self.assertIn(reply["place"], (offset + 1, 4) if name == "WRITE" else (offset + 1,), reply)
                checked += 1
        self.assertGreater(checked, 250)

    def test_hello_cut_at_every_byte_ends_the_connection(self):
        for length in range(len(HELLO)):
            wire = self.raw(PREFACE)
            wire.frame("HELLO", 7, HELLO[:length])
            self.assertError(wire.receive(), "bad_message", 7, place=self.refusal_expected("HELLO", HELLO[:length]) + 1, fatal=True)
            self.assertEqual(wire.until_closed(), [])

    def test_a_byte_too_many_is_refused_at_its_place(self):
        names = [name for name in CLIENTS if name not in NOTICES and name != "HELLO"]
        requests = [(name, body_of(name) + b"\0") for name in names]
        for (name, body), reply in zip(requests, self.send_all(requests)):
            with self.subTest(message=name):
                self.assertError(reply, "bad_message", place=len(body))
        self.assertEqual(self.bystander.call("COUNT", kind=1)["counts"], [{"kind": 1, "records": 0}])

    def test_notices_with_bad_bodies_are_told_with_id_0(self):
        wire = self.larder.wire("raw", timeout=5)
        self.addCleanup(wire.close)
        wire.call("REGISTER", roles=4, events=3, kinds=[], commands=[])
        subscription, _ = wire.subscribe(2, credit=0)
        for name, request_id, body in (("READY", 0, b"\0"), ("CREDIT", subscription, b""), ("CREDIT", subscription, b"\x80\0"),
                                       ("GOODBYE", 0, b""), ("GOODBYE", 0, b"\0"), ("GOODBYE", 0, b"\0\0\0")):
            with self.subTest(message=name, body=body.hex()):
                wire.frame(name, request_id, body)
                self.assertError(wire.receive(), "bad_message", 0)
                self.assertStillOpen(wire)
        self.assertEqual(wire.call("COUNT", kind=0).name, "COUNTED", "a GOODBYE that does not parse is none")

    def test_the_invalid_vectors_are_refused_at_their_places(self):
        vectors = [v for v in VECTORS["invalid"] if v["message"] in CLIENTS and v["message"] not in NOTICES and v["message"] != "HELLO"]
        # Those of WRITE name origin 2: an import that is open.
        for token in ("a", "b"):
            self.bystander.call("BEGIN_IMPORT", source="vectors", token=token)
        requests = [(v["message"], bytes.fromhex(v["hex"])) for v in vectors]
        for vector, reply in zip(vectors, self.send_all(requests)):
            with self.subTest(vector=vector["name"]):
                self.assertError(reply, "bad_message", place=vector["offset"] + 1)
        self.assertGreater(len(vectors), 40)

    def test_counts_that_lie_cost_nothing(self):
        before = self.larder.anonymous_bytes()
        huge = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
        requests = [("WRITE", b"\0\0\0" + huge), ("WRITE", b"\0\0\0" + huge + save(FILM)), ("WRITE", b"\0\0\0\x02" + save(FILM)),
                    ("WRITE", b"\0\0\0\0"), ("SUBSCRIBE", b"\x02\x03" + huge), ("SUBSCRIBE", b"\x02\x03\x05\x01"),
                    ("REGISTER", b"\x01\0" + huge), ("GET", b"\x01" + huge), ("GET", b"\x01\x7fabc"), ("PING", b"\x41" + bytes(65)),
                    ("PING", huge)]
        for (name, body), reply in zip(requests, self.send_all(requests)):
            with self.subTest(message=name, body=body[:20].hex()):
                self.assertError(reply, "bad_message", place=self.refusal_expected(name, body) + 1)
        self.assertLess(self.larder.anonymous_bytes() - before, 4 << 20)

    def test_text_that_is_not_utf_8_is_refused(self):
        requests = [("BEGIN_IMPORT", b"\x02\xc3\x28\0"), ("BEGIN_IMPORT", b"\x01\0\0"), ("BEGIN_IMPORT", b"\x03\xed\xa0\x80\0"),
                    ("PLUGIN", b"\x01\xff\x01"), ("REGISTER", b"\x01\0\x01\x01\xff\0\0")]
        for (name, body), reply in zip(requests, self.send_all(requests)):
            with self.subTest(message=name, body=body.hex()):
                self.assertError(reply, "bad_message", place=self.refusal_expected(name, body) + 1)
        wire = self.raw(PREFACE)
        wire.frame("HELLO", 1, b"\x01\x01\x02\xc3\x28" + HELLO[6:])
        self.assertError(wire.receive(), "bad_message", 1, place=3, fatal=True)

    def test_one_bad_record_is_refused_alone(self):
        wire = self.raw(hello=True)
        good = title(1, "One")
        at = good.index(b"One")
        operations = [save(title(1, "One")), save(good[:at] + b"\xff\xfe\xfd"), save(good[:at] + b"\0ne"), save(good + b"\0"),
                      save(b"\x01\x01"), delete(b"\x04tmdb"), save(title(2, "Two")), delete(title_key(99))]
        kindless = bytearray(save(title(3)))
        kindless[3] = 60
        operations.append(bytes(kindless))
        written = wire.saved(operations, flags=RESULTS)
        self.assertEqual((written["created"], written["refused"], written["not_found"]), (2, 6, 1))
        found = {item["position"]: ERROR_NAMES[item["error"]] for item in written["refusals"]}
        self.assertEqual([found[1], found[2], found[5], found[8]], ["bad_text", "bad_text", "bad_key", "unknown_kind"])
        self.assertEqual(sorted(found), [1, 2, 3, 4, 5, 8])
        self.assertEqual([item["outcome"] for item in written["results"]], [0, 7, 7, 7, 7, 7, 0, 5, 7])
        bad_title = next(item for item in written["refusals"] if item["position"] == 1)
        self.assertEqual((bad_title["field"], bad_title["offset"]), (4, at - 1))
        self.assertEqual([record["key"][1] for record in list_all(wire)], [title_key(1), title_key(2)])

    def test_what_is_asked_for_and_is_not_there(self):
        wire = self.raw(hello=True)
        for name, fields, error in (
                ("GET", {"kind": 1, "key": title_key(5)}, "not_found"), ("GET", {"kind": 44, "key": b"x"}, "unknown_kind"),
                ("GET", {"kind": 1, "key": b"\x04tmdb"}, "bad_key"), ("COUNT", {"kind": 44}, "unknown_kind"),
                ("CLEAR", {"kind": 44}, "unknown_kind"), ("LIST", {"kind": 44, "limit": 1}, "unknown_kind"),
                ("LIST", {"limit": 1, "token": b"nonsense"}, "bad_token"), ("SYNC", {"subscription": 5}, "unknown_subscription"),
                ("UNSUBSCRIBE", {"subscription": 5}, "unknown_subscription"), ("PLUGIN", {"name": "none", "action": 1}, "unknown_plugin"),
                ("END_IMPORT", {"origin": 9, "outcome": 1}, "unknown_origin"), ("GIVE_WAY", {}, "not_permitted")):
            with self.subTest(message=name, error=error):
                self.assertError(wire.call(name, **fields), error)
        for body, error in ((write_body([save(FILM)], 9), "unknown_origin"), (write_body([delete(title_key(5))], 0, 0, 1), "not_found"),
                            (write_body([save(FILM)], 0, 3), "bad_message")):
            self.assertError(wire.call_body("WRITE", body), error)
        self.assertError(wire.subscribe(2, kinds=[44])[1], "unknown_kind")
        self.assertError(wire.subscribe(2, flags=1)[1], "unsupported")
        self.assertError(wire.subscribe(2, condition="year > 1999")[1], "unsupported")
        self.assertStillOpen(wire)


class CutTests(ProtocolCase):
    films = [(905_000 + number, f"청크 {number} 🛶 chunk") for number in range(1, 6)]
    offsets = [1, 2, 3, 76, 77, 78, 97, 389]

    def test_five_saves_however_they_are_cut(self):
        """Case 055: each way of cutting gives the same five records."""
        films = self.films
        stream = b"".join(encode_frame(4, at, write_body([save(title(number, name, "case055"))]))
                          for at, (number, name) in enumerate(films, 10))
        offsets = self.offsets
        ways = [[stream], [stream[:len(stream) // 2], stream[len(stream) // 2:]], [bytes([byte]) for byte in stream]]
        ways += [[stream[:at], stream[at:]] for at in offsets if at < len(stream)]
        edges = [0, *[at for at in offsets if at < len(stream)], len(stream)]
        ways.append([stream[a:b] for a, b in zip(edges, edges[1:])])
        ways += [[stream[:at], stream[at:]] for at in range(1, len(stream), 7)]
        for pieces in ways:
            wire = self.raw(hello=True)
            for at, piece in enumerate(pieces):
                wire.raw(piece)
                if at < len(pieces) - 1 and at % 16 == 0:
                    self.bystander.call("PING", bytes=b"")  # the host has had its turn
            replies = [wire.reply(at) for at in range(10, 15)]
            self.assertEqual([reply["refused"] for reply in replies], [0] * 5)
            listed = list_all(wire)
            self.assertEqual([record["record"] for record in listed], [title(number, name, "case055") for number, name in films])
            wire.call("CLEAR", kind=TITLE.number)
            wire.close()

    def test_the_last_save_without_its_last_byte_is_never_stored(self):
        films = self.films
        stream = b"".join(encode_frame(4, at, write_body([save(title(number, name, "case055"))]))
                          for at, (number, name) in enumerate(films, 10))
        wire = self.raw(hello=True)
        wire.raw(stream[:-1])
        for at in range(10, 14):
            self.assertEqual(wire.reply(at)["created"], 1)
        wire.close()
        self.check()
        self.assertEqual(len(list_all(self.bystander)), 4)

    def test_hello_byte_by_byte(self):
        wire = self.raw()
        for byte in PREFACE + encode_frame(1, 7, HELLO):
            wire.raw(bytes([byte]))
        self.assertEqual(wire.receive().name, "WELCOME")

    def test_bad_frames_between_good_ones(self):
        """Case 057: each bad one is answered, the good ones are done, the connection lives."""
        wire = self.raw(hello=True)
        good, late = title(905101, "Good", "case057"), title(905107, "Good Too", "case057")
        at = good.index(b"Good")
        wrong_type = title("abc", "x", "case057")
        wire.frame("WRITE", 1, write_body([save(good)]))
        wire.frame("WRITE", 2, b"}{not json\n")
        wire.frame("WRITE", 3, write_body([save(good[:at] + b"\xff\xfe\xfd\xfc")]))
        wire.frame(0x7E, 4, b"")
        wire.frame("WRITE", 5, write_body([save(wrong_type[:-2] + b"\x07")]))
        wire.frame("WRITE", 7, write_body([save(late)]))
        replies = {request_id: wire.reply(request_id) for request_id in (1, 2, 3, 4, 5, 7)}
        self.assertEqual((replies[1]["created"], replies[7]["created"]), (1, 1))
        self.assertError(replies[2], "bad_message")
        self.assertEqual([ERROR_NAMES[item["error"]] for item in replies[3]["refusals"]], ["bad_text"])
        self.assertError(replies[4], "unknown_message")
        self.assertEqual((replies[5]["refused"], len(replies[5]["refusals"])), (1, 1))
        self.assertEqual([record["record"] for record in list_all(wire)], [good, late])
        self.assertStillOpen(wire)

    def test_a_client_that_never_reads_its_replies_is_bounded(self):
        wire = Wire(self.larder.socket, "deaf", timeout=3)
        self.addCleanup(wire.close)
        wire.saved([save(title(1, "x" * 60_000))])
        before = self.larder.anonymous_bytes()
        ask = b"".join(encode_frame(5, at, BY_NAME["GET"].encode({"kind": 1, "key": title_key(1)})) for at in range(100, 600))
        sent = 0
        with self.assertRaises((TimeoutError, socket.timeout)):
            while sent < 64 << 20:
                wire.raw(ask)
                sent += len(ask)
        self.assertLess(self.larder.anonymous_bytes() - before, 12 << 20)
        self.check()


if __name__ == "__main__":
    unittest.main()
