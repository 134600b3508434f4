"""Reading by condition, csv, search and own kinds on the command line, on the real program."""

import csv
import io
import json
import os
import subprocess
import unittest

from harness import HostCase, program

FILMS = [
    ("1", "The Matrix", "1999-03-31", "8.2", ["Action", "Science Fiction"], "tt0133093"),
    ("2", "매트릭스, \"둘\"", "2003-05-15", "7.1", ["Action"], "tt0234215"),
    ("3", "Paprika", "2006-11-25", "7.7", ["Animation", "Science Fiction"], "tt0851578"),
    ("4", "Unrated", None, None, [], None),
]


class CommandCase(HostCase):
    def larder(self, *words, code=0, stdin=None):
        run = subprocess.run(
            [program(), "--library", os.path.join(self.directory, "library"), *words], capture_output=True, input=stdin,
            env={**os.environ, "XDG_RUNTIME_DIR": self.directory, "LARDER_SOCKET": "", "NO_COLOR": "1"}, timeout=120)
        self.assertEqual(run.returncode, code, run.stderr.decode() + run.stdout.decode())
        return run

    def objects(self, *words, code=0):
        return [json.loads(line) for line in self.larder(*words, "--json", code=code).stdout.splitlines()]

    def file(self, name, value):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        return path


class ReadingTests(CommandCase):
    def setUp(self):
        super().setUp()
        lines = []
        for number, name, date, vote, genres, imdb in FILMS:
            lines.append(json.dumps({
                "source": "x", "media_type": "movie", "id": number, "title": name, "release_date": date, "vote_average": vote,
                "genres": genres, "imdb_id": imdb}))
        self.larder("import", "--kind", "title", "-", stdin="\n".join(lines).encode())

    def ids(self, *words):
        return [record["record"]["id"] for record in self.objects("list", "title", *words)]

    def test_conditions_and_orders_choose_and_sort(self):
        self.assertEqual(self.ids("--where", "genres = action"), [1, 2])
        self.assertEqual(self.ids("--where", 'not genres = action and title contains "pap"'), [3])
        self.assertEqual(self.ids("--where", "release_date < 2006-11"), [1, 2])
        self.assertEqual(self.ids("--order", "vote_average"), [2, 3, 1, 4])
        self.assertEqual(self.ids("--order", "vote_average:desc"), [1, 3, 2, 4])
        self.assertEqual(self.ids("--order", "vote_average:desc", "--reverse"), [2, 3, 1, 4])
        self.assertEqual(self.ids("--reverse"), [4, 3, 2, 1])

    def test_a_bad_condition_is_shown_where_it_is_bad(self):
        for words in (("list", "title"), ("count", "title"), ("delete", "title", "--yes")):
            run = self.larder(*words, "--where", "title = 매트 and colour = red", code=2)
            lines = run.stderr.decode().splitlines()
            self.assertIn("colour", lines[0])
            self.assertEqual(lines[1], "  title = 매트 and colour = red")
            # A Hangul syllable takes two cells.
            self.assertEqual(lines[2], "  " + " " * len("title = 매트xx and ") + "^")

    def test_counts_by_condition_and_by_value(self):
        self.assertEqual(self.larder("count", "title", "--where", "vote_average >= 7.5").stdout, b"2\n")
        groups = self.objects("count", "title", "--by", "genres")
        self.assertEqual(
            {group["value"]: group["count"] for group in groups},
            {"Action": 2, "Science Fiction": 2, "Animation": 1, None: 1})
        years = self.objects("count", "title", "--by", "release_date", "--where", "release_date > 2000")
        self.assertEqual(sorted(group["value"] for group in years), ["2003-05-15", "2006-11-25"])
        self.assertIn(b"no such field", self.larder("count", "title", "--by", "genre", code=2).stderr)

    def test_csv_is_read_back_by_another_program(self):
        text = self.larder("list", "title", "--csv", "--fields", "id,title,genres,release_date").stdout.decode()
        self.assertTrue(text.endswith("\r\n"))
        rows = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual(rows[0], ["id", "title", "genres", "release_date"])
        self.assertEqual(rows[1:], [[number, name, "; ".join(genres), date or ""] for number, name, date, _, genres, _ in FILMS])
        whole = list(csv.reader(io.StringIO(self.larder("list", "title", "--csv").stdout.decode(), newline="")))
        self.assertEqual({len(row) for row in whole}, {len(whole[0])})
        self.larder("list", "--csv", code=2)
        self.larder("list", "title", "--csv", "--fields", "nothing", code=2)

    def test_get_finds_by_an_indexed_field(self):
        self.assertEqual([found["record"]["id"] for found in self.objects("get", "title", "imdb_id=TT0133093")], [1])
        self.assertIn(b"with that imdb_id", self.larder("get", "title", "imdb_id=tt9", code=1).stderr)
        self.assertIn(b"not indexed", self.larder("get", "title", "director=x", code=2).stderr)

    def test_search_tells_the_best_first_and_goes_on_with_a_token(self):
        found = self.objects("search", "matrix")
        self.assertEqual([match["record"]["id"] for match in found[:-1]], [1])
        self.assertEqual(found[-1], {"is_end": True})
        first = self.objects("search", "science", "fiction", "--limit", "1")
        second = self.objects("search", "science", "fiction", "--limit", "1", "--page", first[-1]["page"])
        self.assertEqual({first[0]["record"]["id"], second[0]["record"]["id"]}, {1, 3})
        self.assertEqual(self.objects("search", "매트릭스", "--kind", "book"), [{"is_end": True}])
        self.larder("search", " ", code=2)

    def test_delete_by_condition_lists_and_needs_a_yes(self):
        self.assertIn(b"--yes", self.larder("delete", "title", "--where", "genres = Action", code=1).stderr)
        plan = self.larder("delete", "title", "--where", "genres = Action", "--dry-run").stdout.decode()
        self.assertIn("The Matrix  title:x/movie/1", plan)
        self.assertIn("2 records would be deleted", plan)
        self.assertEqual(self.ids(), [1, 2, 3, 4])
        self.assertEqual(
            self.objects("delete", "title", "--where", "genres = Action", "--yes")[-1], {"deleted": 2, "left": 0})
        self.assertEqual(self.ids(), [3, 4])
        self.assertEqual(self.objects("delete", "title", "--where", "genres = Action", "--yes"), [{"deleted": 0, "left": 0}])


class KindTests(CommandCase):
    GAME = {"kind": "game", "key": ["platform", "id"], "label": ["name"], "fields": [
        {"name": "name", "type": "text"}, {"name": "id", "type": "int", "required": True},
        {"name": "platform", "type": "text", "required": True, "indexed": True}]}

    def test_a_kind_without_numbers_is_declared_and_shown_and_added_again(self):
        path = self.file("game.json", self.GAME)
        plan = self.objects("kinds", "add", path, "--dry-run")[0]
        self.assertEqual((plan["dry_run"], plan["is_changed"]), (True, True))
        self.assertNotIn("game", [kind["kind"] for kind in self.objects("kinds")])
        self.assertTrue(self.objects("kinds", "add", path)[0]["is_changed"])
        shown = json.loads(self.larder("kinds", "show", "game").stdout)
        self.assertEqual([(field["number"], field["name"]) for field in shown["fields"]], [(1, "platform"), (2, "id"), (3, "name")])
        self.assertFalse(self.objects("kinds", "add", self.file("shown.json", shown))[0]["is_changed"])
        self.larder("save", "game", "platform=pc", "id=5", "name=Tetris")
        self.assertEqual(self.objects("get", "game", "platform=PC")[0]["record"]["name"], "Tetris")

    def test_a_file_with_only_what_is_new_adds_to_a_shipped_kind(self):
        answer = self.objects("kinds", "add", self.file("more.json", {"kind": "book", "fields": [{"name": "shelf", "type": "text"}]}))[0]
        self.assertEqual(answer["changes"], ["field 129, shelf: text"])
        answer = self.objects("kinds", "add", self.file("more.json", {"kind": "book", "fields": [
            {"name": "lent", "type": "bool"}, {"name": "shelf", "indexed": True}]}))[0]
        self.assertEqual(answer["changes"], ["field 129, shelf: indexed", "field 130, lent: bool"])

    def test_a_conflict_is_shown_with_both_sides(self):
        self.larder("kinds", "add", self.file("game.json", self.GAME))
        wrong = {**self.GAME, "fields": [{"name": "name", "type": "int"}]}
        self.assertIn(
            b"field 3, name: its type is text, not int", self.larder("kinds", "add", self.file("wrong.json", wrong), code=1).stderr)
        self.assertIn(
            b"fields[0].type: expected one of bool",
            self.larder("kinds", "add", self.file("bad.json", {"kind": "a", "key": ["b"], "label": [], "fields": [
                {"name": "b", "type": "words"}]}), code=1).stderr)


if __name__ == "__main__":
    unittest.main()
