"""What undo is made of: operations that move and restore, batches that are atomic, histories, entries, values found."""

import unittest

from harness import (BY_NAME, RESULTS, TITLE, Follower, HostCase, decode_record, delete, follow, list_all, read_log, save, title,
                     title_key)
from larder.entries import decode_body, read_frame, read_runs

ATOMIC, DRY_RUN = 1, 2
PERSONAL, IF_SEQ, UNLESS_EXISTS = 1, 2, 4
IMDB = 14


def operation(**fields):
    """One operation, encoded."""
    fields = {"mode": 0, "options": 0, "kind": TITLE.number, "known": 0, **fields}
    whole = BY_NAME["WRITE"].encode({"operations": [fields]})
    return whole[4:]


def move(old, record, **fields):
    return operation(verb=3, known=TITLE.highest, old_key=old, body=record, **fields)


def restore(record, first_seq, saved_at, **fields):
    return operation(verb=4, first_seq=first_seq, saved_at=saved_at, body=record, **fields)


def insert(record, **fields):
    return operation(verb=1, mode=1, known=TITLE.highest, body=record, **fields)


def histories(body):
    """(type, seq, name) of the runs of HISTORY_IS or ENTRIES_ARE."""
    found = []
    for run in read_runs(body, 0):
        frame = read_frame(body, run.start, run.end, run.first_seq, True)
        fields = decode_body(frame, body, run.time)
        name = decode_record(TITLE, bytes(fields["record"]))["title"] if frame.type in (1, 2) else None
        found.append((frame.type, frame.seq, name))
    return found


class Lookups(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()
        self.wire = self.larder.wire()
        self.addCleanup(self.wire.close)

    def again(self, kill=False):
        """The host, after a stop or a kill."""
        self.wire.close()
        self.larder.kill() if kill else self.larder.stop()
        self.larder.start()
        self.wire = self.larder.wire()
        self.addCleanup(self.wire.close)

    def ids(self):
        return [decode_record(TITLE, record["record"])["id"] for record in list_all(self.wire, TITLE.number)]

    def outcomes(self, operations, flags=0):
        return [result["outcome"] for result in self.wire.saved(operations, flags=flags | RESULTS)["results"]]

    def test_answers_with_large_records_stay_within_a_frame(self):
        for number in range(1, 8):
            self.wire.saved([save(title(number, f"film {number}", overview=f"{number}" + "x" * 900_000, imdb_id="tt1"))])
        found = self.wire.call("FIND", kind=TITLE.number, field=IMDB, value=b"\x03tt1", limit=100)
        self.assertEqual((found["is_end"], [decode_record(TITLE, record["record"])["id"] for record in found["records"]]), (0, [1, 2, 3]))
        self.assertEqual(self.wire.call("COUNT", kind=TITLE.number, condition="", group=8).error, "too_many_groups")
        few = self.wire.call("COUNT", kind=TITLE.number, condition="id <= 2", group=8)
        self.assertEqual([group["records"] for group in few["groups"]], [1, 1])

    def test_a_batch_about_many_records_with_one_value_is_decided_at_once(self):
        numbers = range(1, 4001)
        self.wire.saved([save(title(number, f"film {number}", imdb_id="n/a")) for number in numbers])
        alone = {"verb": 1, "mode": 3, "known": TITLE.highest, "options": UNLESS_EXISTS, "unless_exists": IMDB}
        again = [operation(body=title(number, f"new {number}", imdb_id="N/A"), **alone) for number in numbers]
        self.assertEqual(set(self.outcomes(again)), {4})
        self.wire.saved([save(title(number, f"film {number}", imdb_id=f"tt{number}")) for number in numbers])
        self.assertEqual(self.outcomes(again), [1] + [4] * 3999)
        taken = []
        for number in range(1, 2001):
            taken += [operation(body=title(number, source="b", imdb_id="tt"), **alone), delete(title_key(number, source="b"))]
        self.assertEqual(set(zip(*[iter(self.outcomes(taken))] * 2)), {(0, 6)})

    def test_a_connection_that_said_goodbye_ends_with_its_last_answer(self):
        for number in range(1, 60):
            self.wire.saved([save(title(number, f"film {number}", overview=f"{number}" + "é" * 400_000))])
        for ends in ("cancel", "deadline"):
            wire = self.larder.wire(deadline=300 if ends == "deadline" else 0)
            self.addCleanup(wire.close)
            condition = " or ".join(f'overview contains "{number}x" or title contains "{number}y"' for number in range(60))
            request = wire.send("COUNT", kind=TITLE.number, condition=condition, group=0)
            wire.notice("GOODBYE", 0, error=0, reason="")
            if ends == "cancel":
                wire.notice("CANCEL", request)
            frames = wire.until_closed()
            self.assertEqual([frame.error for frame in frames if frame.id == request],
                             ["cancelled" if ends == "cancel" else "deadline_exceeded"])

    def test_a_moved_record_keeps_its_place_and_subscribers_see_both_keys(self):
        self.wire.saved([save(title(number, f"film {number}")) for number in (1, 2, 3)])
        request, reply = self.wire.subscribe()
        follower = Follower(reply)
        self.assertEqual(self.outcomes([move(title_key(2), title(20, "moved"))]), [1])
        follow(self.wire, request, follower, lambda: len(follower.entries) == 2)
        first, second = follower.entries
        self.assertEqual((first.type, first.key), (3, (1, title_key(2))))
        self.assertEqual((second.type, second.key, second.body["flags"], second.body["first_seq"]),
                         (2, (1, title_key(20)), 1, list_all(self.wire)[1]["first_seq"]))
        for kill in (None, False, True):
            if kill is not None:
                self.again(kill)
            self.assertEqual(self.ids(), [1, 20, 3])
        self.assertEqual(self.outcomes([move(title_key(9), title(10)), move(title_key(1), title(3))]), [5, 4])
        self.assertEqual(self.ids(), [1, 20, 3])

    def test_a_deleted_record_comes_back_to_its_place(self):
        self.wire.saved([save(title(number, f"film {number}")) for number in range(1, 6)])
        before = list_all(self.wire)
        self.wire.saved([delete(title_key(2)), delete(title_key(4))])
        wanted = before[3]
        again = restore(wanted["record"], wanted["first_seq"], wanted["saved_at"])
        self.assertEqual(self.outcomes([again, again]), [0, 4])
        self.assertEqual(self.ids(), [1, 3, 4, 5])
        self.again(kill=True)
        self.assertEqual(self.ids(), [1, 3, 4, 5])
        back = list_all(self.wire)[2]
        self.assertEqual((back["first_seq"], back["saved_at"], back["record"]),
                         (wanted["first_seq"], wanted["saved_at"], wanted["record"]))
        # A first seq that is another's, or is not there yet.
        lost = before[1]
        for first_seq in (before[0]["first_seq"], 1 << 40):
            refused = self.wire.saved([restore(lost["record"], first_seq, lost["saved_at"])], flags=RESULTS)
            self.assertEqual(refused["results"][0]["outcome"], 7)
        self.assertEqual(self.ids(), [1, 3, 4, 5])

    def test_an_atomic_batch_is_done_whole_or_not_at_all(self):
        self.wire.saved([save(title(1, "one")), save(title(2, "two"))])
        before = list_all(self.wire)
        for operations, error, place in (
                ([insert(title(3)), delete(title_key(1)), insert(title(2))], "already_saved", 3),
                ([delete(title_key(1)), delete(title_key(9))], "not_found", 2),
                ([insert(title(3)), insert(title(3))], "already_saved", 2),
                ([delete(title_key(1)), operation(verb=2, options=IF_SEQ, if_seq=1, body=title_key(2))], "conflict", 2),
                ([insert(title(3)), insert(b"\xff")], "bad_record", 2)):
            with self.subTest(error=error):
                reply = self.wire.reply(self.wire.write(operations, flags=ATOMIC))
                self.assertError(reply, error, place=place)
                self.assertEqual(list_all(self.wire), before)
        self.assertEqual(self.outcomes([delete(title_key(1)), insert(title(3)), move(title_key(2), title(4, "two"))], ATOMIC),
                         [6, 0, 1])
        self.again(kill=True)
        self.assertEqual(self.ids(), [4, 3])

    def test_a_dry_run_decides_as_if_and_changes_nothing(self):
        self.wire.saved([save(title(1, "one"))])
        before = list_all(self.wire)
        operations = [insert(title(2)), insert(title(2)), delete(title_key(1)), delete(title_key(1)),
                      insert(title(5, imdb_id="tt5")), insert(title(6, imdb_id="TT5"), options=UNLESS_EXISTS, unless_exists=IMDB),
                      move(title_key(2), title(7))]
        self.assertEqual(self.outcomes(operations, DRY_RUN), [0, 4, 6, 5, 0, 4, 1])
        self.assertEqual(list_all(self.wire), before)
        self.assertEqual(self.outcomes(operations), [0, 4, 6, 5, 0, 4, 1])

    def test_values_are_found_folded_and_no_other_record_may_have_them(self):
        self.wire.saved([save(title(number, imdb_id=value)) for number, value in
                         ((1, "tt1"), (2, "한글"), (3, "Ｔｔ1"), (4, None), (5, "")) if value is not None] + [save(title(9))])

        def found(value):
            reply = self.wire.call("FIND", kind=1, field=IMDB, value=bytes([len(value.encode())]) + value.encode(), limit=10)
            return [decode_record(TITLE, record["record"])["id"] for record in reply["records"]]

        for _ in range(2):
            self.assertEqual(found("TT1"), [1, 3])
            self.assertEqual(found("\u1112\u1161\u11ab\u1100\u1173\u11af"), [2])
            self.assertEqual(found("none"), [])
            self.again()
        unless = {"options": UNLESS_EXISTS, "unless_exists": IMDB}
        self.assertEqual(self.outcomes([
            insert(title(20, imdb_id="tt1"), **unless), insert(title(21, imdb_id="new"), **unless),
            insert(title(22, imdb_id="NEW"), **unless), insert(title(23), **unless), insert(title(24), **unless),
            operation(verb=1, mode=2, known=TITLE.highest, body=title(21, "again", imdb_id="new"), **unless)]),
            [4, 0, 4, 0, 0, 1])
        self.assertError(self.wire.call("FIND", kind=1, field=4, value=b"\x01x", limit=1), "unknown_field")
        self.assertError(self.wire.call("FIND", kind=77, field=4, value=b"\x01x", limit=1), "unknown_kind")
        self.assertError(self.wire.call("FIND", kind=1, field=IMDB, value=b"\x09x", limit=1), "bad_record")

    def test_values_stay_found_while_records_change(self):
        held = {}
        for step in range(600):
            number = self.random.randrange(1, 60)
            if self.random.random() < 0.25:
                self.wire.saved([delete(title_key(number))])
                held.pop(number, None)
            else:
                held[number] = f"tt{self.random.randrange(12)}"
                self.wire.saved([save(title(number, f"step {step}", imdb_id=held[number]))])
            if step % 7 == 0:
                value = f"TT{self.random.randrange(12)}"
                reply = self.wire.call("FIND", kind=1, field=IMDB, value=bytes([len(value)]) + value.encode(), limit=1000)
                self.assertEqual(sorted(decode_record(TITLE, record["record"])["id"] for record in reply["records"]),
                                 sorted(number for number, of in held.items() if of == value.lower()))
                self.assertEqual(reply["is_end"], 1)

    def test_the_history_of_a_key_newest_first_also_when_it_is_gone(self):
        for name in ("first", "second"):
            self.wire.saved([save(title(1, name)), save(title(2, f"not {name}"))])
        self.wire.saved([delete(title_key(1))])
        self.wire.saved([save(title(1, "third"))])
        for _ in range(2):
            history = histories(self.wire.call("HISTORY", kind=1, key=title_key(1), limit=10).body)
            self.assertEqual([(type, name) for type, _, name in history],
                             [(1, "third"), (3, None), (2, "second"), (1, "first")])
            self.assertEqual(histories(self.wire.call("HISTORY", kind=1, key=title_key(1), limit=2).body), history[:2])
            seqs = [seq for _, seq, _ in history]
            asked = [seqs[2], 1 << 50, seqs[0], seqs[0]]
            self.assertEqual(histories(self.wire.call("ENTRIES", seqs=asked).body), [history[2], history[0], history[0]])
            self.again(kill=True)
        self.assertEqual(histories(self.wire.call("HISTORY", kind=1, key=title_key(99), limit=10).body), [])
        self.assertError(self.wire.call("HISTORY", kind=1, key=b"\xff", limit=10), "bad_key")
        self.assertError(self.wire.call("HISTORY", kind=99, key=b"\xff", limit=10), "unknown_kind")

    def test_two_that_race_for_one_key_or_value_make_one_record(self):
        with self.larder.wire("other") as other:
            for round in range(50):
                number = 1_000 + round
                sent = [(wire, wire.write([insert(title(number, imdb_id=f"r{round}")),
                                           insert(title(number * 10 + at, imdb_id=f"v{round}"), options=UNLESS_EXISTS,
                                                  unless_exists=IMDB)], flags=RESULTS))
                        for at, wire in enumerate((self.wire, other))]
                outcomes = [[result["outcome"] for result in wire.reply(id)["results"]] for wire, id in sent]
                self.assertEqual(sorted(outcomes), [[0, 0], [4, 4]], f"round {round}")

    def test_an_answer_that_was_lost_and_a_retry_make_one_record(self):
        """A webhook delivered twice: the second changes nothing, a real second download is an update."""
        def download(token):
            return [save(title(904_001, "Tin Boat", source="tmdb", imdb_id="tt9904001", quality="WEBRip-1080p",
                               download_id=token))]
        request, reply = self.wire.subscribe()
        follower = Follower(reply)
        with self.larder.wire("sender") as sender:
            sender.write(download("8DAE0002"))  # Its answer is never read.
        for token, outcome in (("8DAE0002", 2), ("8DAE0002", 2), ("8DAE0003", 1)):
            self.eventually(lambda: self.wire.call("COUNT", kind=1)["counts"][0]["records"] == 1)
            self.assertEqual(self.outcomes(download(token)), [outcome])
        follow(self.wire, request, follower, lambda: len(follower.entries) == 2)
        self.assertEqual([entry.type for entry in follower.entries], [1, 2])
        with self.larder.wire("importer") as importer:
            origin = importer.call("BEGIN_IMPORT", source="webhooks")["origin"]
            importer.saved(download("8DAE0004"), origin, 1)
        again = self.wire.saved(download("8DAE0004"), origin, 1)
        self.assertEqual(again["unchanged"] + again["duplicate"], 1)

    def test_a_run_that_failed_deletes_nothing(self):
        """A mirror that gets one page of two must not take the rest away."""
        self.wire.saved([save(title(number, source="tmdb")) for number in range(901_001, 901_006)])
        with self.larder.wire("mirror") as mirror:
            origin = mirror.call("BEGIN_IMPORT", source="watchlist")["origin"]
            mirror.saved([save(title(number, source="tmdb"), mode="merge") for number in (901_001, 901_002)], origin, 1)
        self.eventually(lambda: any(entry.type == 19 or entry.type == 18 for entry in read_log(self.larder)))
        self.assertEqual(self.ids(), list(range(901_001, 901_006)))
        self.assertEqual([entry for entry in read_log(self.larder) if entry.type == 3], [])

    def test_words_that_are_no_messages_of_these_get_an_error(self):
        key = bytes([len(title_key(1))]) + title_key(1)
        # As the library would not send them: limits of 0 and 1,001, no seqs and too many, queries of 0 and 257 bytes.
        for name, body in (("FIND", b"\x01\x0e\x02\x01x\x00"), ("FIND", b"\x01\x0e\x02\x01x\xe9\x07"), ("ENTRIES", b"\x00"),
                           ("ENTRIES", b"\xe9\x07" + b"\x01" * 1001), ("HISTORY", b"\x01" + key + b"\x00"),
                           ("SEARCH", b"\x00\x00\x01\x00"), ("SEARCH", b"\x00\x02 \t\x01\x00"),
                           ("SEARCH", b"\x00\x81\x02" + b"x" * 257 + b"\x01\x00"), ("SEARCH", b"\x00\x01x\x00\x00")):
            with self.subTest(name=name, body=body):
                self.assertError(self.wire.call_body(name, body), "bad_message")
        for name in ("FIND", "SEARCH", "HISTORY", "ENTRIES", "DEFINE", "LIST", "COUNT"):
            for _ in range(100):
                body = self.random.randbytes(self.random.randrange(0, 40))
                reply = self.wire.call_body(name, body)
                self.assertIn(reply.name, ("ERROR", "PAGE", "COUNTED", "FOUND", "MATCHES", "HISTORY_IS", "ENTRIES_ARE", "DEFINED"))
        self.assertLives(self.larder)


if __name__ == "__main__":
    unittest.main()
