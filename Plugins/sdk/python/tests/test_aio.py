"""The asyncio client against the same scripts."""

import asyncio
import unittest
from unittest import mock

import larder
from larder.aio import AsyncClient

from . import scripts
from .peer import Peer


class AsyncClientTests(unittest.IsolatedAsyncioTestCase):
    async def play(self, script, recovering=None):
        peer = Peer(script)
        loop = asyncio.get_running_loop()
        peer.client_end.setblocking(False)
        _, client = await loop.create_unix_connection(AsyncClient, sock=peer.client_end)
        await client._greet("test", "0", b"", 0, recovering)

        async def finish():
            await client.close()
            await loop.run_in_executor(None, peer.finish)

        self.addAsyncCleanup(finish)
        return client

    async def test_calls_and_their_exact_bytes(self):
        library = await self.play(scripts.CALLS)
        self.assertEqual((await library.save("title", scripts.MATRIX)).outcome, "created")
        self.assertEqual((await library.get("title:tmdb/movie/603")).record, scripts.MATRIX)
        with self.assertRaises(larder.NotFound):
            await library.get("title", scripts.KEY)
        self.assertEqual([item.seq async for item in library.list("title", newest_first=True, page=1)], [7, 7])
        self.assertEqual(await library.count(), {"title": 5})
        told = []
        self.assertEqual(await library.clear("title", lambda *progress: told.append(progress)), 2)
        self.assertEqual(told, [(1, 2)])
        compacted = await library.compact(dead_share=30, include_last=False)
        self.assertEqual((compacted.dropped, compacted.floor), (7, 12))
        with self.assertRaises(larder.Conflict):
            await library.compact(keep_history="none", purge=["title:tmdb/movie/603"], wait=1.5, bytes_per_second=0)

    async def test_a_host_that_opens_its_library_is_waited_for(self):
        told = []
        with mock.patch("larder.aio.STATUS_SECONDS", 0.03):
            library = await self.play(scripts.LATE, lambda status: told.append(status["reason"]))
        self.assertEqual(told, ["recovering 5 %", "recovering 60 %"])
        await library.ping()
        self.assertEqual(library._replies, {})

    async def test_a_pipeline_accounts_for_every_record(self):
        library = await self.play(scripts.PIPELINE)
        size = len(scripts.operation(scripts.MANY[0]))

        async def records():
            for record in (*scripts.MANY[:2], {"source": "", "id": 1}, *scripts.MANY[3:]):
                yield record

        done = await library.save_many("title", records(), batch_bytes=1, window_bytes=2 * size)
        self.assertEqual((done.created, done.updated, done.unchanged, done.refused, done.read), (1, 1, 1, 2, 5))

    async def test_an_import_goes_on_behind_its_last_batch(self):
        library = await self.play(scripts.IMPORT)
        async with library.import_session("watched.csv", "t") as session:
            await session.save_many("title", scripts.MANY[:2], batch_bytes=1)
            session.skip(2)
        self.assertEqual(session.accounting.read, 3)

    async def test_an_import_that_raises_ends_as_failed(self):
        library = await self.play(scripts.FAILED_IMPORT)
        with self.assertRaises(ZeroDivisionError):
            async with library.import_session("x"):
                raise ZeroDivisionError

    async def test_following_a_snapshot_to_the_hosts_goodbye(self):
        library = await self.play(scripts.FOLLOW)
        subscription = await library.subscribe(snapshot=True, credit=200, heartbeats=True, verify=True)
        seen = [(event.type, event.seq, str(event.cursor)) async for event in subscription]
        self.assertEqual(seen, scripts.SEEN)

    async def test_an_expired_cursor(self):
        library = await self.play(scripts.EXPIRED)
        with self.assertRaises(larder.CursorExpired):
            await library.subscribe(after=f"{scripts.EPOCH:016x}-5")

    async def test_garbage_and_an_end_lose_the_connection(self):
        for script in (scripts.GARBAGE, scripts.CLOSED):
            library = await self.play(script)
            with self.assertRaises(larder.ConnectionLost):
                await library.status()
