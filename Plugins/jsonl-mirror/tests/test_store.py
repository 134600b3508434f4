import json
import os
import random
import unittest
from unittest import mock

from support import identity, line, scratch

from disk import Disk
from jsonl_mirror import scan, state, store
from jsonl_mirror.scan import published
from jsonl_mirror.store import Store


class Cut(BaseException):
    pass


def lines_of(path):
    """What a plain reader sees: every line is one object."""
    with open(path, "rb") as source:
        return [json.loads(text) for text in source]


def content(path):
    with open(path, "rb") as source:
        return source.read()


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(scratch(self), "library.jsonl")
        self.store = Store(self.path)
        self.store.create()
        self.addCleanup(lambda: self.store.close())

    def ids(self):
        return [item["record"]["id"] for item in lines_of(self.path)]

    def put(self, number, seq, saved_seq=None, text=""):
        self.store.put(line(number, seq, saved_seq or seq, text))

    def test_a_dead_line_becomes_part_of_the_next_one(self):
        for number in (1, 2, 3):
            self.put(number, number)
        self.store.commit("c-3")
        self.assertTrue(self.store.remove(identity(2)))
        self.assertFalse(self.store.remove(identity(9)))
        self.store.commit("c-4")
        self.assertEqual(self.ids(), [1, 3])
        self.assertEqual(content(self.path).count(b"\n"), 2)

    def test_dead_lines_at_the_end_are_cut_off_and_those_before_them_too(self):
        for number in (1, 2, 3, 4):
            self.put(number, number)
        self.store.commit("c-4")
        size = os.path.getsize(self.path)
        self.store.remove(identity(3))
        self.store.commit("c-5")
        self.assertEqual(os.path.getsize(self.path), size)
        self.store.remove(identity(2))
        self.store.remove(identity(4))
        self.store.commit("c-6")
        self.assertEqual(content(self.path), line(1, 1, 1).data)
        self.store.remove(identity(1))
        self.store.commit("c-7")
        self.assertEqual(os.path.getsize(self.path), 0)
        self.assertEqual(self.store.state.dead, 0)

    def test_an_updated_record_moves_to_the_end_and_is_exported_in_its_place(self):
        for number in (1, 2, 3):
            self.put(number, number)
        self.store.commit("c-3")
        self.put(1, 4, 1, "new")
        self.store.commit("c-4")
        self.assertEqual(self.ids(), [2, 3, 1])
        mirror = published(self.path)
        self.assertEqual([json.loads(text)["record"]["id"] for text in mirror.sorted_lines()], [1, 2, 3])
        mirror.close()

    def test_what_is_superseded_in_its_own_group_is_never_written(self):
        for seq in range(1, 100):
            self.put(1, seq, 1, "x" * 100)
        self.store.commit("c-99")
        self.store.remove(identity(1))
        self.put(2, 101)
        self.store.remove(identity(2))
        self.store.commit("c-102")
        self.assertEqual(os.path.getsize(self.path), 0)

    def test_opened_again_it_knows_its_lines_and_its_cursor(self):
        for number in (1, 2, 3):
            self.put(number, number, text="ünï")
        self.store.remove(identity(1))
        self.store.commit("c-4")
        self.store.close()
        self.assertTrue(self.store.open())
        self.assertEqual((self.store.state.cursor, self.store.records), ("c-4", 2))
        self.put(2, 5, 2, "again")
        self.store.commit("c-5")
        self.assertEqual(self.ids(), [3, 2])

    def test_a_file_that_contradicts_its_state_is_not_gone_on_with(self):
        for damage in (lambda data: data[:-5], lambda data: data.replace(b'{"kind"', b'["kind"'),
                       lambda data: data.replace(b"\n", b" \n\n", 1)):
            with self.subTest(damage=damage):
                self.store.create()
                for number in (1, 2, 3):
                    self.put(number, number)
                self.store.commit("c-3")
                self.store.close()
                with open(self.path, "rb") as source:
                    data = damage(source.read())
                with open(self.path, "wb") as out:
                    out.write(data)
                self.assertFalse(self.store.open())

    def test_too_many_spaces_are_compacted_into_saved_order(self):
        with mock.patch.object(store, "COMPACT_BYTES", 2000):
            seq = 0
            for number in range(1, 30):
                seq += 1
                self.put(number, seq)
            for _ in range(10):
                for number in range(10, 0, -1):
                    seq += 1
                    self.put(number, seq, number)
                self.store.commit(f"c-{seq}")
                self.assertLess(self.store.state.dead, max(2000, self.store.state.size / 2) + 2000)
        self.store.compact()
        self.assertEqual(self.ids(), list(range(1, 30)))
        self.store.close()
        self.assertTrue(self.store.open())
        self.assertEqual(self.store.state.cursor, f"c-{seq}")

    def test_a_built_file_takes_the_place_of_another(self):
        for order in ((7, 8, 9), (9, 7, 8)):
            built = Store(self.path + ".building")
            built.create()
            for seq, number in enumerate(order, 20):
                built.put(line(number, seq, number))
            built.commit("d-30")
            self.put(1, 1)
            self.store.commit("c-1")
            self.store.publish(built)
            self.assertEqual(self.ids(), [7, 8, 9])
            self.assertEqual(sorted(os.listdir(os.path.dirname(self.path))), ["library.jsonl", "library.jsonl.cursor"])
            self.store.remove(identity(8))
            self.store.commit("d-31")
            self.assertEqual(self.ids(), [7, 9])

    def test_identities_of_one_hash_are_kept_apart(self):
        with mock.patch.object(store.Index, "find", autospec=True, side_effect=store.Index.find), \
                mock.patch("jsonl_mirror.index._MASK", 3):
            for number in range(40):
                self.put(number, number + 1)
            self.store.commit("c-40")
            for number in range(0, 40, 2):
                self.put(number, number + 100, number + 1)
                self.assertTrue(self.store.remove(identity(number + 1)))
            self.store.commit("c-200")
        self.assertEqual(sorted(self.ids()), list(range(0, 40, 2)))

    def test_the_state_begins_anew_when_it_grows(self):
        with mock.patch.object(state, "ROTATE_BYTES", 500):
            for number in range(50):
                self.put(number, number + 1)
                self.store.commit(f"c-{number + 1}")
                self.assertLess(os.path.getsize(self.path + ".cursor"), 501)
        self.assertEqual(state.read_state(self.path + ".cursor").cursor, "c-50")

    def test_a_single_change_writes_only_itself(self):
        for number in range(5000):
            self.put(number, number + 1, text="x" * 200)
        self.store.commit("c-5000")
        before = self.store.bytes_written
        self.put(2500, 6000, 2501, "y" * 200)
        self.store.commit("c-6000")
        self.assertLess(self.store.bytes_written - before, 900)


class PowerCutTest(unittest.TestCase):
    """Random changes, a power cut at a random step, and what is left against a plain model at the cursor."""

    def test_what_is_left_equals_the_library_as_of_the_cursor(self):
        seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
        cuts = 0
        for round_seed in range(seed, seed + int(os.environ.get("ROUNDS", 60))):
            with self.subTest(seed=round_seed):
                cuts += self.round(round_seed)
        self.assertGreater(cuts, 20)

    def test_without_the_sync_before_the_state_it_is_caught(self):
        """The test is worth nothing if it passes for a store that does not sync."""
        class Careless(Disk):
            def fdatasync(self, descriptor):
                pass

        with self.assertRaises((AssertionError, scan.Damaged)):
            for seed in range(200):
                self.round(seed, Careless)

    def round(self, seed, make=Disk):
        chance = random.Random(seed)
        directory = scratch(self)
        path = os.path.join(directory, "library.jsonl")
        disk = make(seed)
        patches = [mock.patch.object(module, "os", disk) for module in (store, state, scan)]
        patches.append(mock.patch.object(store, "COMPACT_BYTES", chance.choice((300, 3000))))
        patches.append(mock.patch.object(state, "ROTATE_BYTES", chance.choice((700, 5000))))
        for patch in patches:
            patch.start()
        try:
            return self.life(chance, path, disk, directory)
        finally:
            for patch in patches:
                patch.stop()

    def life(self, chance, path, disk, directory):
        models = {}  # cursor -> number -> line
        model, seq, cuts, kept = {}, 0, 0, None
        for _ in range(8):
            left = [chance.randrange(1, 40)]

            def step(name):
                left[0] -= 1
                if left[0] == 0:
                    raise Cut(name)

            mirror = Store(path, step=step)
            try:
                if mirror.open():
                    kept = mirror.state.cursor
                else:
                    self.assertIsNone(kept, "what was committed is gone")
                    mirror.create()
                model = dict(models[kept]) if kept else {}
                for _ in range(12):
                    for _ in range(chance.randrange(1, 12)):
                        seq += 1
                        number = chance.randrange(1, 30)
                        if chance.random() < 0.4:
                            self.assertEqual(mirror.remove(identity(number)), model.pop(number, None) is not None)
                        else:
                            saved_seq = json.loads(model[number])["saved_seq"] if number in model else seq
                            item = line(number, seq, saved_seq, "t" * chance.randrange(0, 400))
                            mirror.put(item)
                            model[number] = item.data
                    models[f"c-{seq}"] = dict(model)
                    if chance.random() < 0.05:
                        model.clear()
                        for number in range(1, 30):
                            mirror.remove(identity(number))
                        models[f"c-{seq}"] = {}
                    mirror.commit(f"c-{seq}")
                    kept = f"c-{seq}"
            except Cut:
                cuts += 1
                disk.cut(directory)
            else:
                mirror.close()
            kept = self.compare(path, models, kept)
        return cuts

    def compare(self, path, models, kept):
        """Before any repair a reader of the mirror sees the cursor's lines, and afterwards any reader does."""
        mirror = published(path)
        if mirror is None:
            self.assertIsNone(kept)
            return None
        cursor = mirror.state.cursor
        self.assertEqual(sorted(mirror.lines()), sorted(models[cursor].values()))
        mirror.close()
        if kept is not None:
            self.assertGreaterEqual(int(cursor[2:]), int(kept[2:]))
        again = Store(path)
        self.assertTrue(again.open())
        again.close()
        self.assertEqual(sorted(json.dumps(item) for item in lines_of(path)),
                         sorted(json.dumps(json.loads(text)) for text in models[cursor].values()))
        return cursor


if __name__ == "__main__":
    unittest.main()
