import unittest

import support  # noqa: F401

from notify.summary import DELETED, LABEL_LENGTH_MAX, SAVED, WINDOW_SECONDS_MAX, Tally, Window, shown


def tally(*events):
    found = Tally()
    for what, label in events:
        found.add(what, label)
    return found


class TallyTest(unittest.TestCase):
    def test_a_few_are_told_one_by_one(self):
        self.assertEqual(tally((SAVED, "A"), (DELETED, "B"), (SAVED, "느린 전차")).texts(),
                         ["‘A’ saved", "‘B’ deleted", "‘느린 전차’ saved"])

    def test_many_become_one_line(self):
        self.assertEqual(tally(*[(SAVED, "A")] * 12, *[(DELETED, "B")] * 2).texts(), ["12 saved, 2 deleted"])
        self.assertEqual(tally(*[(SAVED, "A")] * 4000).texts(), ["4,000 saved"])
        self.assertEqual(tally(*[(DELETED, "A")] * 4).texts(), ["4 deleted"])

    def test_a_label_stays_one_plain_line(self):
        self.assertEqual(shown("a\nb\x1b[31mc\u202ed\u2028e"), "a b [31mcd e")
        self.assertEqual(shown(" \n "), "Unknown")
        self.assertEqual(len(shown("x" * 500)), LABEL_LENGTH_MAX)
        self.assertEqual(shown("عربي 👩‍👩‍👧"), "عربي 👩‍👩‍👧")


class WindowTest(unittest.TestCase):
    """The clock is a number."""

    def setUp(self):
        self.window = Window()

    def fill(self, count, now):
        for _ in range(count):
            self.window.add(SAVED, "A", now)

    def test_what_comes_within_a_second_is_told_together(self):
        self.assertIsNone(self.window.due)
        self.window.add(SAVED, "A", 10.0)
        self.window.add(DELETED, "B", 10.9)
        self.assertEqual(self.window.due, 11.0)
        self.assertIsNone(self.window.take(10.99))
        self.assertEqual(self.window.take(11.0).texts(), ["‘A’ saved", "‘B’ deleted"])
        self.assertIsNone(self.window.take(20.0))
        self.window.add(SAVED, "C", 30.0)
        self.assertEqual(self.window.take(31.0).texts(), ["‘C’ saved"])

    def test_three_are_few_and_four_are_many(self):
        self.fill(3, 0.0)
        self.assertEqual(len(self.window.take(1.0).texts()), 3)
        self.fill(4, 5.0)
        self.assertEqual(self.window.take(6.0).texts(), ["4 saved"])

    def test_a_long_import_is_told_less_and_less_often_and_a_pause_ends_that(self):
        now, waits = 0.0, []
        for _ in range(6):
            self.fill(100, now)
            waits.append(self.window.due - now)
            now = self.window.due
            self.assertEqual(self.window.take(now).texts(), ["100 saved"])
        self.assertEqual(waits, [1, 2, 4, 8, 8, 8])
        self.assertEqual(waits[-1], WINDOW_SECONDS_MAX)
        self.fill(1, now + 1.5)
        self.assertEqual(self.window.due, now + 2.5)

    def test_the_rest_is_given_though_it_is_not_due(self):
        self.fill(2, 0.0)
        self.assertEqual(self.window.rest().saved, 2)
        self.assertFalse(self.window.rest())


if __name__ == "__main__":
    unittest.main()
