"""Rows and files, without a host. The inputs in cases/ are invented."""

import gzip
import json
import os
import unittest

from support import CASES, scratch

from larder import PartialDate
from tmdb.rows import Choices, Refused, Skipped, record_of
from tmdb.sources import digest_of, files_of, parsed, rows_of


class Taken:
    """What became of the rows of some files."""

    def __init__(self, *paths, choices=None):
        self.records, self.refused, self.skipped, self.warnings = [], [], [], []
        for file, path in enumerate(map(str, paths)):
            name = os.path.basename(path)
            for row in rows_of(path, file):
                try:
                    if row.wrong:
                        raise row.wrong
                    self.records.append(record_of(
                        row.value, choices or Choices(),
                        lambda field, reason: self.warnings.append((row.place.at, field, reason)), row.hint))
                except Refused as refused:
                    self.refused.append((row.place.at or name, refused.reason))
                except Skipped as skipped:
                    self.skipped.append((row.place.at, str(skipped)))
        self.by_id = {record["id"]: record for record in self.records}
        self.ids = [record["id"] for record in self.records]


def case(number, *names):
    return Taken(*(CASES / number / name for name in names))


def record(row, **choices):
    return record_of(row, Choices(**choices), lambda field, reason: None)


class CaseTest(unittest.TestCase):
    def test_001_a_person_is_skipped_and_a_series_keeps_its_names(self):
        taken = case("001", "page.json")
        self.assertEqual(taken.skipped, [("results[2]", "person")])
        film, series = taken.records
        self.assertEqual((film["media_type"], film["id"], film["title"], film["release_date"]),
                         ("movie", 900101, "Paper Lighthouse", PartialDate(2021, 5, 4)))
        self.assertNotIn("backdrop_path", film)
        self.assertEqual((series["media_type"], series["id"], series["name"], series["original_name"]),
                         ("tv", 900102, "Slow Tram", "느린 전차"))
        self.assertEqual(series["release_date"], PartialDate(2024, 3, 2))
        self.assertFalse(series.keys() & {"title", "original_title", "overview", "poster_path"})
        self.assertEqual(series["country"], "KR")

    def test_002_a_film_and_a_series_share_a_number(self):
        self.assertEqual([(item["media_type"], item["id"]) for item in case("002", "page.json").records],
                         [("movie", 900201), ("tv", 900201)])

    def test_003_dates_that_are_not_there_are_absent(self):
        taken = case("003", "page.json")
        self.assertEqual([item.get("release_date") for item in taken.records], [None, None, None, PartialDate(2021, 5, 4)])
        self.assertEqual((taken.refused, taken.warnings), ([], []))

    def test_005_a_repeated_row_is_left_for_the_host_to_count(self):
        self.assertEqual(case("005", "page1.json", "page2.json").ids, [900501, 900502, 900503, 900503, 900504])

    def test_006_numbers_as_texts(self):
        taken = case("006", "page.json")
        self.assertEqual(taken.ids, [900601, 900602, 900602, 900603])
        self.assertEqual((taken.records[0]["popularity"], taken.records[0]["vote_average"]), (93.4917224393659, 8.6))
        self.assertEqual(taken.records[1]["vote_count"], 46)
        self.assertNotIn("vote_count", taken.records[3])
        self.assertEqual([warning[:2] for warning in taken.warnings], [("results[3]", "vote_count")])

    def test_007_ids_are_exact_or_refused(self):
        taken = case("007", "movies.jsonl")
        self.assertEqual(taken.ids, [3000000000, 12669814169816, 9007199254740993, 900705])
        self.assertEqual(taken.by_id[900705]["revenue"], 2781505847)
        self.assertEqual(taken.refused, [(f"line {line}", "bad-id") for line in range(5, 12)])

    def test_009_empty_is_said_and_an_empty_list_is_fine(self):
        taken = case("009", "empty.json", "noresults.json", "zero.json", "bom.json")
        self.assertEqual(taken.records, [])
        self.assertEqual(taken.refused, [("noresults.json", "no-results-array"), ("zero.json", "empty"),
                                         ("bom.json", "empty")])

    def test_014_a_nul_is_taken_out_and_a_raw_one_refused(self):
        taken = case("014", "titles.jsonl")
        self.assertEqual([item["title"] for item in taken.records][0], "Broken Lamp")
        self.assertEqual((len(taken.records), taken.refused), (2, [("line 2", "bad-json")]))

    def test_015_half_a_character_refuses_its_row_alone(self):
        taken = case("015", "titles.jsonl")
        self.assertEqual(taken.refused, [("line 5", "bad-unicode")])
        self.assertEqual(len(taken.records), 5)
        self.assertEqual(taken.records[0]["title"], taken.records[1]["title"])

    def test_019_titles_that_are_none(self):
        taken = case("019", "titles.jsonl")
        self.assertEqual([item["title"] for item in taken.records], ["1776", "9"])
        self.assertEqual(taken.refused, [("line 3", "missing-title"), ("line 4", "missing-title"),
                                         ("line 5", "missing-title"), ("line 6", "bad-title"), ("line 7", "missing-title")])


class RowTest(unittest.TestCase):
    def refused(self, row, **choices):
        with self.assertRaises(Refused) as caught:
            record(row, **choices)
        return caught.exception.reason

    def test_the_media_type_is_that_of_the_row_or_of_its_list_or_told_or_plain_from_its_keys(self):
        self.assertEqual(record({"id": 1, "title": "A"})["media_type"], "movie")
        self.assertEqual(record({"id": 1, "original_name": "A", "popularity": 1})["media_type"], "tv")
        self.assertEqual(record({"id": 1, "name": "A", "media_type": "tv"})["media_type"], "tv")
        self.assertEqual(record({"id": 1, "name": "A"}, media_type="tv")["media_type"], "tv")
        self.assertEqual(record({"id": 1, "title": "A", "media_type": "movie"}, media_type="tv")["media_type"], "movie")
        self.assertEqual(self.refused({"id": 1, "name": "A"}), "no-media-type")
        self.assertEqual(self.refused({"id": 1, "title": "A", "first_air_date": "2020-01-01"}), "no-media-type")
        self.assertEqual(self.refused({"id": 1, "title": "A", "media_type": "opera"}), "bad-media-type")

    def test_what_is_no_title_is_skipped(self):
        for row, reason in (({"id": 1, "name": "A", "known_for": []}, "person"), ({"media_type": "person"}, "person"),
                            ({"id": 1, "name": "A", "media_type": "collection"}, "collection"),
                            ({"id": 1, "name": "A", "original_name": "A", "poster_path": None}, "collection"),
                            ({"id": "50a6", "name": "A", "list_type": "movie", "item_count": 3}, "list")):
            with self.assertRaises(Skipped) as caught:
                record(row)
            self.assertEqual(str(caught.exception), reason)

    def test_an_id_as_text_is_the_same_id(self):
        self.assertEqual(record({"id": "42", "title": "A"})["id"], 42)
        for wrong in ("", "4x", "-1", "0", "٤٢", 9223372036854775808, [], 1e3):
            self.assertEqual(self.refused({"id": wrong, "title": "A"}), "bad-id")
        self.assertEqual(record({"id": 9223372036854775807, "title": "A"})["id"], 9223372036854775807)

    def test_a_row_of_details(self):
        found = record(json.loads(
            '{"id":7,"title":"A","genres":[{"id":1,"name":"Drama"},{"id":2,"name":""}],"genre_ids":[1],"runtime":0,'
            '"budget":5,"revenue":0,"imdb_id":"tt1","production_countries":[{"iso_3166_1":"KR"},{"iso_3166_1":"FR"}],'
            '"rating":9,"release_date":"1999-03-31T00:00:00.000Z"}'))
        self.assertEqual(found, {"source": "tmdb", "media_type": "movie", "id": 7, "title": "A", "genres": ["Drama"],
                                 "budget": 5, "imdb_id": "tt1", "country": "KR, FR",
                                 "release_date": PartialDate(1999, 3, 31)})

    def test_what_a_field_cannot_hold_is_dropped_with_a_warning(self):
        said = []
        found = record_of({"id": 7, "title": "A", "overview": 5, "vote_count": 1.5, "release_date": "soon",
                           "adult": "maybe", "popularity": "1e999", "genres": "Drama", "tagline": "\ud83d"},
                          Choices(), lambda field, reason: said.append(field))
        self.assertEqual(found, {"source": "tmdb", "media_type": "movie", "id": 7, "title": "A"})
        self.assertEqual(sorted(said), ["adult", "genres", "overview", "popularity", "release_date", "tagline",
                                        "vote_count"])

    def test_presets_are_for_absent_fields(self):
        row = {"id": 1, "title": "A", "original_language": "ko"}
        found = record(row, preset={"language": "en", "quality": "4K"}, source="mine")
        self.assertEqual((found["language"], found["quality"], found["source"]), ("ko", "4K", "mine"))


class FileTest(unittest.TestCase):
    def setUp(self):
        self.directory = scratch(self)

    def write(self, name, data):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as out:
            out.write(data if isinstance(data, bytes) else data.encode())
        return path

    def test_an_export_packed_or_not_and_its_name_says_what_it_is(self):
        lines = b'{"id":1,"original_name":"A","popularity":1.5}\r\n\r\n{"id":2,"original_name":"B","popularity":0}'
        for name, data in (("a.json", lines), ("b.json.gz", gzip.compress(lines))):
            self.assertEqual([item["media_type"] for item in Taken(self.write(name, data)).records], ["tv", "tv"])
        people = self.write("person_ids_05_15_2024.json.gz", gzip.compress(
            b'{"adult":false,"id":1,"name":"A","popularity":1}\n{"adult":false,"id":2,"name":"B","popularity":1}\n'))
        self.assertEqual(Taken(people).skipped, [("line 1", "person"), ("line 2", "person")])
        one = self.write("movie_ids_05_15_2024.json", '{"adult":false,"id":1,"original_title":"A","popularity":1,"video":false}')
        self.assertEqual(Taken(one).by_id[1]["media_type"], "movie")

    def test_lines_that_are_broken_are_refused_alone(self):
        path = self.write("a.jsonl", '{"id":1,"title":"A"\n{"id":2,"title":"B"}\nno\n{"id":3,"title":"C"}\n[1]\n')
        taken = Taken(path)
        self.assertEqual(taken.ids, [2, 3])
        self.assertEqual(taken.refused, [("line 1", "bad-json"), ("line 3", "bad-json"), ("line 5", "not-a-row")])

    def test_pages_in_lines_lists_and_finds(self):
        pages = self.write("a.jsonl", '{"page":1,"results":[{"id":1,"title":"A"}]}\n{"page":2,"results":[{"id":0}]}\n')
        self.assertEqual((Taken(pages).ids, Taken(pages).refused), ([1], [("line 2 results[0]", "bad-id")]))
        listed = self.write("b.json", '{"id":"x","items":[{"id":1,"title":"A"}],"item_count":1}')
        self.assertEqual(Taken(listed).ids, [1])
        found = self.write("c.json", '{"movie_results":[{"id":1,"title":"A"}],"tv_results":[{"id":2,"name":"B"}],'
                                     '"person_results":[{"id":3,"name":"C"}]}')
        self.assertEqual(([item["media_type"] for item in Taken(found).records], Taken(found).skipped),
                         (["movie", "tv"], [("person_results[0]", "person")]))

    def test_what_is_no_file_of_the_service(self):
        for data, reason in (("{", "bad-json"), ("[]x", "bad-json"), ("5", "no-results-array"), (b"\xff{}", "bad-unicode"),
                             ('{"page":1,"results":null}', "no-results-array"), ('{"results":[NaN]}', "bad-json"),
                             ('{"success":false,"status_code":7,"status_message":"Invalid API key"}', "tmdb-error"),
                             ("[" * 100000, "bad-json"), (b"\x1f\x8bxx", "damaged"),
                             (gzip.compress(b'{"id":1,"title":"A"}\n' * 9999)[:-40], "damaged")):
            path = self.write("a.json", data)
            self.assertEqual(Taken(path).refused[-1], ("a.json", reason), data[:40])
        self.assertEqual(Taken(os.path.join(self.directory, "none")).refused, [("none", "unreadable")])

    def test_a_page_with_a_byte_order_mark(self):
        path = self.write("a.json", b"\xef\xbb\xbf\n" + b'{"page":1,\n"results":[{"id":1,"title":"A"}]}')
        self.assertEqual(Taken(path).ids, [1])

    def test_a_directory_is_its_files_in_order(self):
        os.mkdir(os.path.join(self.directory, "x"))
        for name in ("b.json", "a.JSON", "x/c.jsonl.gz", "notes.txt"):
            self.write(name, b"{}")
        self.assertEqual([os.path.relpath(path, self.directory) for path in files_of([self.directory])],
                         ["a.JSON", "b.json", "x/c.jsonl.gz"])

    def test_the_digest_is_that_of_content_and_options(self):
        first, second = self.write("a.json", b"1"), self.write("b.json", b"1")
        self.assertEqual(digest_of([first], "merge"), digest_of([second], "merge"))
        self.assertNotEqual(digest_of([first], "merge"), digest_of([first], "fill"))
        self.assertNotEqual(digest_of([first]), digest_of([first, second]))

    def test_numbers_are_read_exactly(self):
        self.assertEqual(parsed(b'{"id":9007199254740993}')["id"], 9007199254740993)


if __name__ == "__main__":
    unittest.main()
