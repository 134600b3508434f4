"""Lookups, declarations and batches of both clients, against scripts of exact bytes."""

import asyncio
import unittest

import larder
from larder.aio import AsyncClient
from larder.client import Client

from . import lookup_scripts as scripts
from .peer import Peer
from .scripts import MATRIX


class LookupTests(unittest.TestCase):
    def play(self, script):
        peer = Peer(script)
        self.addCleanup(peer.finish)
        client = Client(peer.client_end, "test", timeout=10)
        self.addCleanup(client.close)
        return client

    def test_reading_by_condition_value_and_text(self):
        library = self.play(scripts.READING)
        found = library.list("title", condition=scripts.WHERE, order="vote_average", reverse=True, page=1)
        self.assertEqual([item.record for item in found], [MATRIX, MATRIX])
        self.assertEqual(library.count("title", condition=scripts.WHERE), {"title": 7})
        self.assertEqual(library.count("title", group="media_type"), {"movie": 5, None: 4})
        self.assertEqual(library.count("title", group="genres"), {"Drama": 2})
        records = library.find("title", "imdb_id", "tt1", limit=2)
        self.assertEqual((len(records), records.is_all, records[0].seq), (2, False, 7))
        matches = list(library.search("the matrix", page=1))
        self.assertEqual([(match.rank, match.stored.label) for match in matches], [(0, "The Matrix"), (5, "The Matrix")])
        with self.assertRaises(larder.BadCondition) as caught:
            library.page("title", condition=scripts.WHERE, order="vote_average", newest_first=True, limit=1)
        self.assertEqual(caught.exception.place, 7)

    def test_a_field_needs_its_kind(self):
        library = self.play([*scripts.greeting(), *scripts.kinds(2), *scripts.ends()])
        for call in (lambda: library.page(order="title"), lambda: library.count(group="title"),
                     lambda: library.page("title", order="isbn"), lambda: library.find("title", "isbn", "1")):
            with self.assertRaises(larder.EncodeError) as caught:
                call()
            self.assertEqual(caught.exception.name, "unknown_field")
        with self.assertRaises(larder.EncodeError):
            list(library.search("  "))

    def test_the_log_of_a_key_and_entries_in_as_many_answers_as_it_takes(self):
        library = self.play(scripts.HISTORY)
        seen = [(event.type, event.seq, event.time, event.key_text) for event in library.history("title:tmdb/movie/603")]
        self.assertEqual(seen, scripts.HISTORY_SEEN)
        self.assertEqual([event.seq for event in library.entries(scripts.ENTRIES_ASKED)], scripts.ENTRIES_SEEN)
        self.assertEqual(list(library.entries([])), [])

    def test_declaring_a_kind(self):
        library = self.play(scripts.DEFINING)
        self.assertEqual(library.define(scripts.GAME), (64, 1, True))
        self.assertEqual(library._session.kinds[64].name, "game")
        with self.assertRaises(larder.KindConflict):
            library.define(larder.Kind.from_json(scripts.GAME))

    def test_batches_and_their_results(self):
        library = self.play(scripts.WRITING)
        done = library.write(scripts.OPERATIONS, atomic=True)
        self.assertEqual([(result.outcome, result.seq) for result in done.results],
                         [("updated", 10), ("deleted", 11), ("updated", 13), ("created", 14)])
        self.assertEqual((done.seq, done.counts["updated"], done.refusals), (14, 2, []))
        done = library.write(scripts.OPERATIONS[1:2], dry_run=True)
        self.assertEqual((done.results[0].outcome, done.results[0].seq, done.refusals[0].error), ("refused", 14, "conflict"))
        with self.assertRaises(larder.NotFound) as caught:
            library.write(scripts.OPERATIONS, atomic=True)
        self.assertEqual(caught.exception.place, 3)
        with self.assertRaises(larder.AlreadySaved) as caught:
            library.save("title", MATRIX, mode="insert", if_seq=0, unless_exists="imdb_id", dry_run=True)
        self.assertEqual(caught.exception.facts, {"seq": "12"})
        with self.assertRaises(larder.Conflict) as caught:
            library.delete("title:tmdb/movie/603", if_seq=3)
        self.assertEqual(caught.exception.facts, {"seq": "14"})
        self.assertEqual(library.save_many("title", [MATRIX], personal=True, dry_run=True).created, 1)

    def test_batches_that_cannot_be_sent(self):
        library = self.play([*scripts.greeting(), *scripts.kinds(2), *scripts.ends()])
        self.assertEqual(library.write([]).results, [])
        with self.assertRaises(larder.EncodeError) as caught:
            library.write([*scripts.OPERATIONS, larder.Save("title", {"id": "x"})])
        self.assertIn("operation 5", str(caught.exception))
        with self.assertRaises(larder.EncodeError) as caught:
            library.write([larder.Save("title", {**MATRIX, "overview": "a" * 900_000})] * 5)
        self.assertEqual(caught.exception.name, "batch_too_large")


class AsyncLookupTests(unittest.IsolatedAsyncioTestCase):
    async def play(self, script):
        peer = Peer(script)
        loop = asyncio.get_running_loop()
        peer.client_end.setblocking(False)
        _, client = await loop.create_unix_connection(AsyncClient, sock=peer.client_end)
        await client._greet("test", "0", b"", 0)

        async def finish():
            await client.close()
            await loop.run_in_executor(None, peer.finish)

        self.addAsyncCleanup(finish)
        return client

    async def test_reading_by_condition_value_and_text(self):
        library = await self.play(scripts.READING)
        found = library.list("title", condition=scripts.WHERE, order="vote_average", reverse=True, page=1)
        self.assertEqual([item.seq async for item in found], [7, 7])
        self.assertEqual(await library.count("title", condition=scripts.WHERE), {"title": 7})
        self.assertEqual(await library.count("title", group="media_type"), {"movie": 5, None: 4})
        self.assertEqual(await library.count("title", group="genres"), {"Drama": 2})
        self.assertFalse((await library.find("title", "imdb_id", "tt1", limit=2)).is_all)
        self.assertEqual([match.rank async for match in library.search("the matrix", page=1)], [0, 5])
        with self.assertRaises(larder.BadCondition):
            await library.page("title", condition=scripts.WHERE, order="vote_average", reverse=True, limit=1)

    async def test_the_log_of_a_key_and_entries_in_as_many_answers_as_it_takes(self):
        library = await self.play(scripts.HISTORY)
        seen = [(event.type, event.seq, event.time, event.key_text)
                for event in await library.history("title:tmdb/movie/603")]
        self.assertEqual(seen, scripts.HISTORY_SEEN)
        self.assertEqual([event.seq async for event in library.entries(scripts.ENTRIES_ASKED)], scripts.ENTRIES_SEEN)

    async def test_declaring_a_kind(self):
        library = await self.play(scripts.DEFINING)
        self.assertEqual(await library.define(scripts.GAME), (64, 1, True))
        with self.assertRaises(larder.KindConflict):
            await library.define(scripts.GAME)

    async def test_batches_and_their_results(self):
        library = await self.play(scripts.WRITING)
        done = await library.write(scripts.OPERATIONS, atomic=True)
        self.assertEqual([result.seq for result in done.results], [10, 11, 13, 14])
        self.assertEqual((await library.write(scripts.OPERATIONS[1:2], dry_run=True)).refusals[0].error, "conflict")
        with self.assertRaises(larder.NotFound):
            await library.write(scripts.OPERATIONS, atomic=True)
        with self.assertRaises(larder.AlreadySaved):
            await library.save("title", MATRIX, mode="insert", if_seq=0, unless_exists="imdb_id", dry_run=True)
        with self.assertRaises(larder.Conflict):
            await library.delete("title", scripts.KEY, if_seq=3)
        self.assertEqual((await library.save_many("title", [MATRIX], personal=True, dry_run=True)).created, 1)
