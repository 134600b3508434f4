"""The Python library against a real host: reading by condition, value and text, the log of a record, batches, kinds of
one's own, and waiting for events."""

import asyncio
import unittest

from harness import HostCase, larder, title, title_key
from larder import Delete, Move, Restore, Save
from larder.aio import connect as connect_async

KEY = {"source": "tmdb", "media_type": "movie"}
FILMS = [
    {**KEY, "id": 1, "title": "The Matrix", "imdb_id": "tt0133093", "vote_average": 8.2, "genres": ["Action", "Drama"],
     "release_date": "1999-03-31"},
    {**KEY, "id": 2, "title": "Matrix Reloaded", "imdb_id": "tt0234215", "vote_average": 7.1, "genres": ["Action"]},
    {**KEY, "id": 3, "title": "Heat", "vote_average": 7.9, "release_date": "1995"},
    {"source": "tmdb", "media_type": "tv", "id": 1, "name": "매트릭스", "overview": "the matrix again"},
]
GAME = {"kind": "game", "key": ["id"], "label": ["title"], "fields": [
    {"number": 1, "name": "id", "type": "identifier", "required": True},
    {"number": 2, "name": "title", "type": "text", "required": True, "indexed": True}]}
BIG = 700_000


class LibraryCase(HostCase):
    def library(self, host=None):
        client = (host or self.host()).connect("python")
        self.addCleanup(client.close)
        return client


class WritingTests(LibraryCase):
    def test_options_of_one_record(self):
        library = self.library()
        first = library.save("title", FILMS[0])
        with self.assertRaises(larder.Conflict) as caught:
            library.save("title", {**KEY, "id": 1, "runtime": 136}, if_seq=first.seq - 1)
        self.assertEqual(caught.exception.facts["seq"], str(first.seq))
        library.save("title", {**KEY, "id": 1, "note": "again"})
        self.assertNotIn("note", library.get("title:tmdb/movie/1").record)
        library.save("title", {**KEY, "id": 1, "note": "again"}, personal=True, if_seq=first.seq)
        self.assertEqual(library.get("title:tmdb/movie/1").record["note"], "again")
        library.save("title", {**KEY, "id": 1}, unset=["note"], personal=True)
        self.assertNotIn("note", library.get("title:tmdb/movie/1").record)
        with self.assertRaises(larder.AlreadySaved) as caught:
            library.save("title", {"source": "imdb", "media_type": "movie", "id": 9, "imdb_id": "TT0133093"},
                         unless_exists="imdb_id")
        self.assertEqual(caught.exception.facts["seq"], str(library.get("title:tmdb/movie/1").seq))
        with self.assertRaises(larder.BadRecord) as caught:
            library.save("title", FILMS[1], unless_exists="title")
        self.assertEqual(caught.exception.name, "unknown_field")

    def test_a_dry_run_changes_nothing(self):
        library = self.library()
        before = library.status()["last_seq"]
        self.assertEqual(library.save("title", FILMS[0], dry_run=True).outcome, "created")
        done = library.save_many("title", FILMS, dry_run=True)
        self.assertEqual((done.created, done.read), (4, 4))
        self.assertEqual(library.write([Save("title", FILMS[0]), Delete("title:tmdb/movie/1")], dry_run=True).counts["deleted"], 1)
        with library.import_session("films", "token") as session:
            self.assertEqual(session.save_many("title", FILMS, dry_run=True).created, 4)
            self.assertEqual(session.accounting.read, 0)
            self.assertEqual(session.save_many("title", FILMS).created, 4)
        self.assertEqual(library.count(), {"title": 4})
        self.assertGreater(library.status()["last_seq"], before)
        with library.import_session("films", "token") as session:
            self.assertEqual(session.save_many("title", FILMS).duplicate + session.accounting.unchanged, 4)

    def test_moves_and_restores_keep_their_place(self):
        library = self.library()
        library.save_many("title", FILMS)
        heat = library.get("title:tmdb/movie/3")
        matrix = library.get("title:tmdb/movie/1")
        library.delete("title:tmdb/movie/3", if_seq=heat.seq)
        moved = {**FILMS[0], "source": "imdb", "id": "tt0133093"}
        done = library.write([Move("title:tmdb/movie/1", moved, if_seq=matrix.seq),
                              Restore("title", heat.raw, heat.first_seq, heat.saved_at)], atomic=True)
        self.assertEqual([result.outcome for result in done.results], ["updated", "created"])
        found = list(library.list("title"))
        self.assertEqual([item.key_text for item in found],
                         ["title:imdb/movie/tt0133093", "title:tmdb/movie/2", "title:tmdb/movie/3", "title:tmdb/tv/1"])
        self.assertEqual([(item.first_seq, item.saved_at) for item in (found[0], found[2])],
                         [(matrix.first_seq, matrix.saved_at), (heat.first_seq, heat.saved_at)])
        self.assertEqual([event.type for event in library.history("title:tmdb/movie/3")], ["updated", "deleted", "created"])
        self.assertEqual([event.type for event in library.history("title:tmdb/movie/1")], ["deleted", "created"])

    def test_a_move_or_restore_of_half_a_record_is_refused(self):
        library = self.library()
        library.define(GAME)
        library.save("game", {"id": 7, "title": "Go"})
        game = library.get("game:7")
        half = bytes.fromhex("0101") + game.raw[2:3]  # the id alone, which a merge may send
        self.assertEqual(library.save("game", half).outcome, "unchanged")
        self.assertEqual(library.write([Move("game", half, old_key=(7,))]).refusals[0].error, "missing_field")
        library.delete("game:7")
        done = library.write([Restore("game", half, game.first_seq, game.saved_at)])
        self.assertEqual([refusal.error for refusal in done.refusals], ["missing_field"])
        self.assertEqual(library.count("game"), {"game": 0})

    def test_an_atomic_batch_is_done_whole_or_not_at_all(self):
        library = self.library()
        library.save("title", FILMS[0])
        before = library.status()["last_seq"]
        for failing, error, place in ((Delete("title:tmdb/movie/9"), larder.NotFound, 2),
                                      (Save("title", FILMS[0], "insert"), larder.AlreadySaved, 2),
                                      (Save("title", FILMS[0], if_seq=9_999), larder.Conflict, 2),
                                      (Restore("title", FILMS[2], 9_999_999, 0), larder.BadRecord, 2)):
            with self.subTest(failing), self.assertRaises(error) as caught:
                library.write([Save("title", FILMS[1]), failing], atomic=True)
            self.assertEqual(caught.exception.place, place)
        self.assertEqual((library.count(), library.status()["last_seq"]), ({"title": 1}, before))
        done = library.write([Save("title", FILMS[1]), Delete("title:tmdb/movie/9"), Save("title", FILMS[2], if_seq=7)])
        self.assertEqual([result.outcome for result in done.results], ["created", "not_found", "refused"])
        self.assertEqual(done.refusals[0].error, "conflict")


class ReadingTests(LibraryCase):
    def setUp(self):
        super().setUp()
        self.client = self.library()
        self.client.save_many("title", FILMS)

    def reads(self):
        """Skips where the host does not read by condition."""
        try:
            self.client.count("title", condition="title exists")
        except larder.Unsupported:
            self.skipTest("this host has no conditions")
        return self.client

    def names(self, records):
        return [item.label for item in records]

    def test_an_indexed_value(self):
        found = self.client.find("title", "imdb_id", "TT0133093")
        self.assertEqual((self.names(found), found.is_all), (["The Matrix"], True))
        self.assertEqual(self.client.find("title", "imdb_id", "tt9"), [])
        with self.assertRaises(larder.BadRecord):
            self.client.find("title", "title", "Heat")

    def test_conditions_and_order(self):
        library = self.reads()
        self.assertEqual(self.names(library.list("title", condition="vote_average > 7.5")), ["The Matrix", "Heat"])
        self.assertEqual(self.names(library.list("title", order="vote_average", reverse=True, page=1)),
                         ["The Matrix", "Heat", "Matrix Reloaded", "매트릭스"])
        self.assertEqual(self.names(library.list("title", order="vote_average", page=3)),
                         ["Matrix Reloaded", "Heat", "The Matrix", "매트릭스"])
        self.assertEqual(library.page("title", condition='title = "nothing"', limit=1), ([], b""))
        self.assertEqual(library.count("title", condition="genres = drama"), {"title": 1})
        self.assertEqual(library.count("title", group="media_type"), {"movie": 3, "tv": 1})
        self.assertEqual(library.count("title", group="genres"), {"Action": 2, None: 2, "Drama": 1})
        with self.assertRaises(larder.BadCondition) as caught:
            library.count("title", condition="vote_average > > 7")
        self.assertEqual(caught.exception.place, 16)
        _, token = library.page("title", condition="vote_average > 1", limit=1)
        with self.assertRaises(larder.BadToken):
            library.page("title", condition="vote_average > 2", limit=1, token=token)

    def test_searching(self):
        self.reads()
        try:
            matches = list(self.client.search("matrix", page=1))
        except larder.Unsupported:
            self.skipTest("this host has no search")
        self.assertEqual([(match.rank, match.stored.label) for match in matches],
                         [(1, "Matrix Reloaded"), (2, "The Matrix"), (5, "매트릭스")])

    def test_entries_by_their_seqs_in_more_than_one_frame(self):
        with self.client.import_session("large") as session:
            session.save_many("title", [title(number, overview="a" * BIG) for number in range(10, 16)])
        last = self.client.status()["last_seq"]
        asked = [0, last + 5, *range(last, 0, -1), last]
        events = list(self.client.entries(asked))
        seqs = [event.seq for event in events]
        self.assertEqual(seqs, [seq for seq in asked if seq in set(seqs)])
        self.assertEqual(set(seqs), set(range(1, last + 1)))
        self.assertEqual(sum(len(event.raw) > BIG for event in events if event.type == "created"), 6)

    def test_a_history_of_large_entries_ends_early_and_goes_on_by_previous_seqs(self):
        for letter in "abcdefgh":
            self.client.save("title", {**FILMS[0], "overview": letter * BIG})
        history = self.client.history("title:tmdb/movie/1")
        self.assertEqual(history[0].record["overview"][0], "h")
        self.assertLess(len(history), 9)
        event, seen = history[0], ["h"]
        while event.body.get("previous_seq"):
            event, = self.client.entries([event.body["previous_seq"]])
            seen.append(event.record.get("overview", "-")[0])
        self.assertEqual(seen, list("hgfedcba-"))


class KindTests(LibraryCase):
    def test_a_kind_of_ones_own_and_its_next_version(self):
        library = self.library()
        self.assertEqual(library.define(GAME), (64, 1, True))
        self.assertEqual(library.define(GAME), (64, 1, False))
        library.save("game", {"id": 7, "title": "Go"})
        self.assertEqual(library.get("game:7").record, {"id": 7, "title": "Go"})
        more = {**GAME, "fields": [*GAME["fields"], {"number": 3, "name": "players", "type": "int"}]}
        self.assertEqual(library.define(more), (64, 2, True))
        library.save("game", {"id": 7, "title": "Go", "players": 2})
        with self.assertRaises(larder.KindConflict):
            library.define(GAME)
        self.assertEqual(library.find("game", "title", "GO")[0].record["players"], 2)


class FollowingTests(LibraryCase):
    def test_a_sync_ends_however_little_credit_there_is(self):
        host = self.host()
        writer, library = self.library(host), self.library(host)
        start = f"{library.welcome['epoch']:016x}-0"
        subscription = library.subscribe(after=start, credit=300)
        writer.save_many("title", (title(number) for number in range(1, 2_001)))
        through = subscription.sync()
        self.assertGreaterEqual(through, 2_000)
        seqs = []
        while subscription.cursor.seq < through:
            event = subscription.poll(30)
            self.assertIsNotNone(event)
            seqs.append(event.seq)
        self.assertEqual((len(seqs), seqs), (2_000, sorted(set(seqs))))
        self.assertIsNone(subscription.poll(0.01))
        with self.assertRaises(larder.QueueFull):
            behind = library.subscribe(after=start, credit=300)
            behind.sync(queue_bytes=10_000)
        self.assertEqual(len([behind.poll(30) for _ in range(2_000)]), 2_000)
        writer.save("title", title(5_000))
        self.assertEqual(subscription.poll(30).record["id"], 5_000)

    def test_the_same_awaited(self):
        host = self.host()

        async def follow():
            writer = await connect_async("writer", path=host.socket)
            library = await connect_async("reader", path=host.socket)
            try:
                subscription = await library.subscribe(after=f"{library.welcome['epoch']:016x}-0", credit=300)
                await writer.save_many("title", (title(number) for number in range(1, 501)))
                through = await subscription.sync()
                count = 0
                while subscription.cursor.seq < through:
                    count += (await subscription.poll(30)) is not None
                self.assertEqual(count, 500)
                self.assertIsNone(await subscription.poll(0.01))
                done = await writer.write([Save("title", title(1)), Delete("title", title_key(2))])
                self.assertEqual([result.outcome for result in done.results], ["unchanged", "deleted"])
                self.assertEqual((await subscription.poll(30)).type, "deleted")
            finally:
                await library.close()
                await writer.close()

        asyncio.run(follow())


if __name__ == "__main__":
    unittest.main()
