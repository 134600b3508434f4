"""Some rounds of the campaign of kill_campaign.py, and that it finds what it is there to find.

`LARDER_KILL_ROUNDS` (12) rounds; the whole campaign is `.ci/long crash`.
"""

import os
import subprocess
import unittest

from harness import HostCase, program
from kill_campaign import Campaign
from kill_entries import OUTCOMES, Broken, Entry
from kill_log import DELETE, ENTRY_OF, SAVE, Ledger, Sent
from kill_pool import Pool
from larder.entries import WRITTEN_COUNTS, encode_entry


class KillCase(HostCase):
    def campaign(self, **options):
        campaign = Campaign(self.directory, self.seed, **options)
        self.addCleanup(lambda: campaign.host and campaign.host.kill())
        return campaign


class KillTests(KillCase):
    def test_nothing_that_was_answered_or_told_is_lost(self):
        said = []
        campaign = self.campaign(say=said.append)
        campaign.run(int(os.environ.get("LARDER_KILL_ROUNDS") or 12))
        print(f"\nkill: {said[-1]}", flush=True)
        self.assertGreater(campaign.acked, 0)
        self.assertGreater(campaign.events, 0)
        self.assertGreater(campaign.unanswered, 0)


class CanaryTests(KillCase):
    """The library, or the account of a peer, is tampered with behind a kill: the next round must tell."""

    def lives(self, campaign):
        """Lives until one in which every writer changed something and was answered, and the first subscriber heard."""
        campaign.begin_library()
        for _ in range(20):
            campaign.round()
            if (all(any(sent.has_changes for sent in writer.sent) for writer in campaign.writers)
                    and any(len(body) > 60 for body in campaign.subscribers[0].frames)):
                return
        self.fail("in 20 lives nothing was answered")

    def assertFound(self, campaign, *promises):
        with self.assertRaises(Broken) as found:
            campaign.host.start(*campaign.arguments)
            campaign.check()
        self.assertIn(found.exception.promise, promises, str(found.exception))

    def is_there(self, library, seq):
        words = [program(), "inspect", "--library", library, "--seq", str(seq)]
        return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def test_the_end_of_the_log_is_cut_off(self):
        campaign = self.campaign()
        self.lives(campaign)
        log = os.path.join(campaign.host.library, "log")
        answered = sorted((seq for writer in campaign.writers for sent in writer.sent if sent.has_changes
                           for outcome, seq in sent.results if OUTCOMES[outcome] in ENTRY_OF), reverse=True)
        # The last that is there: a compaction takes what was superseded, and ends the segment that is written.
        last = next(seq for seq in answered if self.is_there(campaign.host.library, seq))
        while self.is_there(campaign.host.library, last):
            os.remove(os.path.join(log, max(name for name in os.listdir(log) if name.endswith(".seg"))))
        self.assertFound(campaign, "lost", "early")

    def test_an_answered_batch_is_not_there(self):
        campaign = self.campaign()
        self.lives(campaign)
        writer = campaign.writers[2]
        place = writer.pool.places[0]
        absent = Sent((writer.name, 0), [(SAVE, place, writer.pool.record(place, 20))])
        absent.results = [(0, 1)]
        writer.sent.append(absent)
        self.assertFound(campaign, "lost")

    def test_a_batch_is_there_in_part(self):
        campaign = self.campaign()
        self.lives(campaign)
        writer = campaign.writers[2]
        sent = next(sent for sent in writer.sent if sent.has_changes)
        place = writer.pool.mark("none")
        sent.operations.append((SAVE, place, writer.pool.record(place, 20)))
        self.assertFound(campaign, "half")

    def test_a_record_has_other_content_than_was_sent(self):
        campaign = self.campaign()
        self.lives(campaign)
        writer = campaign.writers[2]
        sent = next(sent for sent in writer.sent if sent.has_changes and len(sent.operations) > 1)
        place = sent.operations[1][1]
        sent.operations[1] = (SAVE, place, writer.pool.record(place, 20))
        self.assertFound(campaign, "wrong", "half")

    def test_a_delete_has_gone_to_another_record(self):
        campaign = self.campaign()
        self.lives(campaign)
        sent = next(sent for sent in campaign.writers[4].sent if sent.has_changes and (6 in dict(sent.results)))
        at = next(at for at, result in enumerate(sent.results) if result[0] == 6)
        sent.operations[at] = (DELETE, campaign.writers[4].pool.mark("none"), None)
        self.assertFound(campaign, "half", "wrong")

    def test_a_batch_that_was_sent_again_is_applied_twice(self):
        pool, ledger, token = Pool(1, 0), Ledger(), "imp1-1"
        ledger.origins[7] = "imp1", token
        record = pool.record(pool.places[0], 20)

        def entries(first, kind, **fields):
            counts = dict.fromkeys(WRITTEN_COUNTS, 0)
            return [Entry(seq, encode_entry({"seq": seq, "origin": 7, **entry}, first), first, 0) for seq, entry in (
                (first, {"type": kind, "kind": 1, "record": record, **fields}),
                (first + 1, {"type": "token", "batch": 1, "counts": counts}))]

        def sent():
            return {"imp1": [Sent((token, 1), [(SAVE, pool.places[0], record)], number=1)]}

        ledger.account(entries(10, "created"), sent())
        self.assertEqual(ledger.last_token, {7: 1})
        again = entries(12, "updated", flags=0, first_seq=10, saved_at=0, previous_seq=10, changed=[])
        with self.assertRaises(Broken) as found:
            ledger.account(again, sent())
        self.assertEqual(found.exception.promise, "half")

    def test_an_event_was_told_that_is_not_in_the_log(self):
        campaign = self.campaign()
        self.lives(campaign)
        subscriber = campaign.subscribers[0]
        at = next(at for at, body in enumerate(subscriber.frames) if len(body) > 60)
        body = bytearray(subscriber.frames[at])
        body[-6] ^= 1
        subscriber.frames[at] = bytes(body)
        self.assertFound(campaign, "early")

    def test_events_were_left_out_or_came_twice(self):
        campaign = self.campaign()
        for copies in (0, 2):
            self.lives(campaign)
            frames = campaign.subscribers[0].frames
            at = next(at for at, body in enumerate(frames) if len(body) > 60)
            frames[at:at + 1] = [frames[at]] * copies
            self.assertFound(campaign, "gap")
            campaign.host.kill()


if __name__ == "__main__":
    unittest.main()
