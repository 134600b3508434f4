"""Second thoughts on the command line, with the real program: log, history, undelete, undo, duplicates and join."""

import json
import os
import pty
import subprocess
import unittest

from harness import BOOK, TITLE, HostCase, encode_record, program, save, title


class SecondThoughts(HostCase):
    """A host, and commands against it."""

    def setUp(self):
        super().setUp()
        self.on = self.host()

    def larder(self, *words, input=None, code=0, on=None):
        """Runs a command; gives what it printed."""
        done = subprocess.run(
            [program(), "--library", self.on.library, "--socket", self.on.socket, *words], input=input or "",
            capture_output=True, text=True, timeout=120)
        self.errors = done.stderr
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def objects(self, *words, **options):
        return [json.loads(line) for line in self.larder(*words, "--json", **options).splitlines()]

    def library(self):
        """All records in the order of saving: key, record, and when and as what it was first saved."""
        return [(r["key"], r["record"], r["saved_seq"], r["saved_at"]) for r in self.objects("list", "--all")]

    def keys(self):
        return [key for key, *_ in self.library()]

    def save(self, *words):
        return self.objects("save", *words)[0]

    def film(self, number, *words):
        return self.save("title", "source=t", "media_type=movie", f"id={number}", f"title=Film {number}", *words)

    def bring(self, lines, *words):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self.larder("import", "--kind", "title", "--set", "source=t", "--set", "media_type=movie", *words, "-", input=text)
        began = next(row for row in self.objects("log") if row["change"] == "import_began")
        return f"import:{began['origin']}"

    def terminal(self, words, answer):
        """Runs a command on a terminal and types an answer; gives the exit code and what was shown."""
        pid, descriptor = pty.fork()
        if pid == 0:
            os.execv(program(), [program(), "--library", self.on.library, "--socket", self.on.socket, *words])
        shown = b""
        os.write(descriptor, answer.encode() + b"\n")
        while True:
            try:
                data = os.read(descriptor, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        os.close(descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode("utf-8", "replace")


class Log(SecondThoughts):
    def test_the_log_tells_what_changed_newest_first(self):
        self.film(1)
        self.film(1, "overview=x", "tags=a")
        self.larder("delete", "title:t/movie/1")
        rows = self.objects("log", "--limit", "3")
        self.assertEqual([row["change"] for row in rows], ["deleted", "updated", "created"])
        self.assertEqual(rows[1]["fields"], ["overview", "tags"])
        self.assertEqual({row["label"] for row in rows}, {"Film 1"})
        self.assertEqual({row["origin_name"] for row in rows}, {"larder"})
        everything = self.objects("log", "--all")
        self.assertEqual(everything, list(reversed(self.objects("log", "--all", "--reverse"))))
        self.assertEqual([row["seq"] for row in everything], sorted((row["seq"] for row in everything), reverse=True))
        self.assertEqual(self.objects("log", "--all", "--kind", "title"), [r for r in everything if r.get("kind") == "title"])
        self.assertEqual(self.objects("log", "title:t/movie/1"), [{k: v for k, v in r.items() if r["change"] != "deleted" or k != "label"} for r in rows])

    def test_imports_are_told_with_their_counts(self):
        name = self.bring([{"id": 1, "title": "A"}, {"id": 2, "title": "B"}])
        ended, *_, began = self.objects("log", "--limit", "4")
        self.assertEqual((began["change"], ended["change"]), ("import_began", "import_ended"))
        self.assertEqual((ended["read"], ended["created"], ended["outcome"]), (2, 2, "complete"))
        self.assertIn(name, self.larder("log"))

    def test_a_clear_is_one_line(self):
        with self.on.wire() as wire:
            wire.saved([save(title(number)) for number in range(1, 3001)])
        self.film(1)
        self.larder("clear", "--yes")
        lines = self.larder("log", "--limit", "2").splitlines()
        self.assertIn("deleted 3,001 records", lines[1])
        self.assertIn("Film 1", lines[2])
        self.assertEqual(len([r for r in self.objects("log", "--all") if r["change"] == "deleted"]), 3001)

    def test_the_versions_of_a_record(self):
        self.film(1)
        self.film(1, "overview=x")
        self.larder("delete", "title:t/movie/1")
        versions = self.objects("show", "title:t/movie/1", "--history")
        self.assertEqual([v["change"] for v in versions], ["deleted", "updated", "created"])
        self.assertEqual((versions[1]["before"], versions[1]["after"]), ({}, {"overview": "x"}))
        self.assertIn("overview: absent → x", self.larder("show", "title:t/movie/1", "--history"))
        self.larder("show", "title:t/movie/2", "--history", code=1)
        self.larder("log", "title:t/movie/2", code=1)


class Undelete(SecondThoughts):
    def test_a_record_comes_back_whole_and_in_its_place(self):
        self.film(1, "tags=a", "rating=8")
        self.film(2)
        self.film(1, "overview=x")
        before = self.library()
        self.larder("delete", "title:t/movie/1")
        self.larder("undelete", "title:t/movie/1", "--dry-run")
        self.assertEqual(self.keys(), ["title:t/movie/2"])
        self.assertIn("brought back as of", self.larder("undelete", "title:t/movie/1"))
        self.assertEqual(self.library(), before)

    def test_what_is_there_and_what_never_was_is_refused(self):
        self.film(1)
        self.larder("undelete", "title:t/movie/1", code=1)
        self.assertIn("it is there", self.errors)
        self.larder("undelete", "title:t/movie/9", code=1)
        self.assertIn("the log has nothing of it", self.errors)


class Undo(SecondThoughts):
    def test_what_is_damaged_and_so_not_undone_is_a_failure(self):
        for number in (1, 2, 3):
            self.film(number)
        self.on.stop()
        path = os.path.join(self.on.library, "log", "00000001.seg")
        with open(path, "r+b") as file:
            at = file.read().index(b"Film 2")
            file.seek(at)
            file.write(b"Silm")
        self.on.start()
        last = self.objects("log")[0]["seq"]
        self.assertEqual(self.objects("undo", f"1..{last}", "--dry-run", code=1)[-1]["deleted"], 2)
        self.assertIn("damaged", self.errors)
        self.larder("undo", f"1..{last}", "--yes", code=1)

    def test_an_import_is_taken_back_and_so_is_its_undo(self):
        self.film(1, "tags=mine")
        self.film(2)
        before = self.library()
        name = self.bring([{"id": 1, "title": "Other", "runtime": 90}, {"id": 3, "title": "C"}])
        after = self.library()
        plan = self.objects("undo", name, "--dry-run")
        self.assertEqual({(r.get("key"), r.get("outcome")) for r in plan[:-1]},
                         {("title:t/movie/1", "changed_back"), ("title:t/movie/3", "deleted")})
        self.assertEqual(self.library(), after)
        summary = self.objects("undo", name, "--yes")[-1]
        self.assertEqual((summary["deleted"], summary["changed_back"], summary["refused"]), (1, 1, 0))
        self.assertEqual(self.library(), before)
        self.larder("undo", f"import:{summary['origin']}", "--yes")
        self.assertEqual(self.library(), after)

    def test_a_clear_is_taken_back_in_the_old_order(self):
        with self.on.wire() as wire:
            wire.saved([save(title(number, f"Film {number}")) for number in range(1, 2001)])
            wire.saved([save(encode_record(BOOK, {"source": "isbn", "id": n, "title": "B"}), BOOK) for n in range(1, 501)])
        self.save("title", "source=test", "media_type=movie", "id=7", "title=Film 7", "tags=late")
        before = self.library()
        last = self.objects("clear", "--yes")[0]
        self.assertEqual(last["deleted"], 2500)
        self.film(9000)
        self.larder("undo", f"{last['seq'] - 2499}..{last['seq']}", "--yes")
        self.assertEqual(self.library()[:-1], before)
        self.assertEqual(self.keys()[-1], "title:t/movie/9000")

    def test_versions_deep_in_large_commits_are_found_after_a_restart(self):
        with self.on.wire() as wire:
            wire.saved([save(title(number, f"Film {number} " + "x" * 300)) for number in range(1, 9001)])
        before = self.library()
        self.assertEqual(self.on.stop(), 0)
        self.on = self.host(name="again")
        gone = self.objects("delete", *(f"title:test/movie/{number}" for number in range(50, 9001, 50)))
        self.larder("undo", f"{gone[0]['seq']}..{gone[-1]['seq']}", "--yes")
        self.assertEqual(self.library(), before)

    def test_what_changed_since_is_named_and_left_alone(self):
        name = self.bring([{"id": 1, "title": "A"}, {"id": 2, "title": "B"}])
        self.larder("rate", "title:t/movie/2", "9")
        self.larder("undo", name, "--yes", code=1)
        self.assertIn("title:t/movie/2 ‘B’: changed since; left alone", self.errors)
        self.assertEqual(self.keys(), ["title:t/movie/2"])
        self.larder("undo", name, "--yes", "--force")
        self.assertEqual(self.keys(), [])

    def test_a_forced_undo_of_a_delete_replaces_what_took_its_key(self):
        self.film(1, "overview=old")
        seq = self.objects("delete", "title:t/movie/1")[0]["seq"]
        self.save("title", "source=t", "media_type=movie", "id=1", "title=New")
        self.larder("undo", str(seq), "--yes", code=1)
        self.assertEqual(self.library()[0][1]["title"], "New")
        self.larder("undo", str(seq), "--yes", "--force")
        self.assertEqual((self.library()[0][1]["title"], self.library()[0][1]["overview"]), ("Film 1", "old"))

    def test_a_delete_and_a_new_record_under_its_key_are_one_span(self):
        self.film(1, "overview=old")
        before = self.library()
        first = self.objects("delete", "title:t/movie/1")[0]["seq"]
        last = self.save("title", "source=t", "media_type=movie", "id=1", "title=New")["seq"]
        self.larder("undo", f"{first}..{last}", "--dry-run")
        self.larder("undo", f"{first}..{last}", "--yes")
        self.assertEqual(self.library(), before)

    def test_nothing_is_done_without_a_yes(self):
        seq = self.film(1)["seq"]
        self.larder("undo", str(seq), code=1)
        self.assertIn("say --yes", self.errors)
        code, shown = self.terminal(["undo", str(seq)], "n")
        self.assertEqual(code, 1)
        self.assertIn("1 record to delete", shown)
        self.assertEqual(len(self.keys()), 1)
        code, shown = self.terminal(["undo", str(seq)], "y")
        self.assertEqual((code, self.keys()), (0, []), shown)

    def test_wrong_targets_are_told(self):
        self.film(1)
        for word, code, said in [("9..3", 2, "from the lower seq"), ("100000", 1, "the log ends at"), ("import:99", 1, "no such import"),
                                 ("nonesuch", 1, "no import has this name"), ("import:1", 1, "not one import")]:
            self.larder("undo", word, "--yes", code=code)
            self.assertIn(said, self.errors)

    def test_an_import_is_named_by_its_source(self):
        path = os.path.join(self.directory, "films.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"id":1,"title":"A"}\n')
        self.larder("import", "--kind", "title", "--set", "source=t", "--set", "media_type=movie", path)
        source = next(r["source"] for r in self.objects("log") if r["change"] == "import_began")
        self.larder("undo", source, "--yes")
        self.assertEqual(self.keys(), [])

    def test_random_changes_are_taken_back(self):
        """Any span undone gives the library of before it."""
        numbers = range(1, 9)
        for _ in range(12):
            self.film(self.random.choice(numbers), f"runtime={self.random.randrange(1, 99)}")
        before, start = self.library(), self.objects("log", "--limit", "1")[0]["seq"] + 1
        for _ in range(25):
            key, kind = f"title:t/movie/{self.random.choice(numbers)}", self.random.randrange(4)
            words = [["delete", key], ["tag", key, f"+t{self.random.randrange(5)}"], ["undelete", key], None][kind]
            if words is None:
                self.film(self.random.choice(numbers), f"overview=o{self.random.randrange(9)}")
            else:
                subprocess.run([program(), "--library", self.on.library, "--socket", self.on.socket, *words], capture_output=True)
        last = self.objects("log", "--limit", "1")[0]["seq"]
        if last >= start:
            self.larder("undo", f"{start}..{last}", "--yes")
        self.assertEqual(self.library(), before)


class Join(SecondThoughts):
    def pair(self):
        self.save("title", "source=tmdb", "media_type=movie", "id=603", "title=The Matrix", "release_date=1999-03-31",
                  "imdb_id=tt0133093", "tags=a", "note=one")
        self.save("title", "source=imdb", "media_type=movie", "id=tt0133093", "title=the matrix", "release_date=1999",
                  "overview=long", "tags=b", "note=two", "rating=9")
        return "title:tmdb/movie/603", "title:imdb/movie/tt0133093"

    def test_duplicates_are_told_once_with_reasons_and_in_pages(self):
        first, second = self.pair()
        self.save("title", "source=x", "media_type=movie", "id=1", "title=Other", "imdb_id=TT0133093")
        self.save("title", "source=y", "media_type=tv", "id=1", "title=The Matrix", "release_date=1999")
        found = self.objects("duplicates")
        self.assertEqual([f["keys"] for f in found], [[first, second], [first, "title:x/movie/1"]])
        self.assertEqual(found[0]["reasons"], ["same label and year 1999"])
        self.assertEqual(found[1]["reasons"], ["same imdb_id tt0133093"])
        page = self.objects("duplicates", "--limit", "1")
        self.assertEqual(page[0], found[0])
        rest = self.objects("duplicates", "--page", page[1]["page"])
        self.assertEqual((rest[0], rest[1]["is_end"]), (found[1], True))
        self.assertEqual(self.objects("duplicates", "book"), [])

    def test_two_become_one_and_two_again(self):
        first, second = self.pair()
        before = self.library()
        self.larder("join", first, second, "--dry-run")
        self.assertEqual(self.library(), before)
        done = self.objects("join", first, second)[0]
        record = self.library()[0][1]
        self.assertEqual(self.keys(), [first])
        self.assertEqual((record["tags"], record["note"], record["rating"], record["overview"], record["also"]),
                         (["a", "b"], "one\n\ntwo", 9, "long", [second]))
        self.assertEqual(self.objects("duplicates"), [])
        self.larder("undo", done["undo"], "--yes")
        self.assertEqual(self.library(), before)

    def test_a_record_is_found_under_a_joined_key(self):
        first, second = self.pair()
        self.larder("join", first, second)
        self.assertEqual(self.objects("get", second)[0]["key"], first)
        self.assertIn(f"{second} is joined with {first}", self.errors)
        self.assertEqual(self.objects("show", second)[0]["key"], first)
        self.assertEqual(self.objects("rate", second, "7")[0]["key"], first)
        self.assertEqual(self.objects("delete", second)[0]["key"], first)
        self.assertEqual(self.keys(), [])
        self.larder("get", second, code=1)

    def test_what_cannot_be_joined_is_told(self):
        first, second = self.pair()
        self.save("book", "source=isbn", "id=1", "title=B")
        self.larder("join", first, "title:t/movie/9", code=1)
        self.larder("join", first, "book:isbn/1", code=2)
        self.larder("join", first, code=2)
        self.larder("join", first, first, code=1)
        self.assertEqual(len(self.keys()), 3)


class Asking(SecondThoughts):
    def test_clear_and_many_deletes_are_asked_for_on_a_terminal(self):
        for number in range(1, 13):
            self.film(number)
        keys = self.keys()
        self.assertEqual(self.terminal(["delete", *keys], "n")[0], 1)
        self.assertEqual(self.terminal(["clear"], "n")[0], 1)
        self.assertEqual(self.keys(), keys)
        self.assertEqual(self.objects("clear", "--dry-run"), [{"deleted": 12, "dry_run": True}])
        self.larder("delete", *keys, "--dry-run")
        self.larder("clear", code=1)
        self.assertEqual(self.keys(), keys)
        self.assertEqual(self.terminal(["delete", *keys], "y")[0], 0)
        self.assertEqual(self.keys(), [])


class LaterKinds(SecondThoughts):
    def test_the_kinds_have_the_field_for_joined_keys(self):
        for kind, number in ((TITLE, 34), (BOOK, 25)):
            told = self.objects("kinds", kind.name)[0]
            field = next(f for f in told["fields"] if f["name"] == "also")
            self.assertEqual((field["number"], field["type"], field["indexed"], field["personal"]), (number, "list", True, True))


if __name__ == "__main__":
    unittest.main()
