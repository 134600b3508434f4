"""dump and load on the real program: every value comes back, in its order, with its time and its origin."""

import json
import os
import subprocess
import time
import unittest

from harness import ROOT, TITLE, HostCase, program, save, title

FILMS = os.path.join(os.path.dirname(ROOT), "shared", "data", "wikidata-films.jsonl")
OWN = ("seq", "first_seq", "changed")

GAME = {
    "kind": "game", "key": ["id", "edition"], "label": ["title"],
    "fields": [
        {"name": "id", "type": "identifier", "required": True}, {"name": "edition", "type": "date", "required": True},
        {"name": "title", "type": "text", "indexed": True}, {"name": "done", "type": "bool"},
        {"name": "score", "type": "int"}, {"name": "price", "type": "number"}, {"name": "cover", "type": "bytes"},
        {"name": "played", "type": "time"}, {"name": "copy", "type": "uuid"},
        {"name": "state", "type": "choice", "values": {"1": "new", "7": "끝낸 것"}}, {"name": "tags", "type": "list", "personal": True},
        {"name": "note", "type": "text", "personal": True},
    ],
}
AWKWARD = [
    {"id": 0, "edition": "1999", "title": "", "done": False, "score": 0, "price": 0, "cover": "", "tags": []},
    {"id": "0140449132", "edition": "1999-03", "title": "e\u0301 is not é", "score": -9223372036854775808, "price": 1e300},
    {"id": "9223372036854775808", "edition": "-0044-03-15", "score": 9223372036854775807, "price": -8.2},
    {"id": 9223372036854775807, "edition": "9999-12-31", "title": "\u0001\t\r\n\"\\/\u007f\u2028\U0001F600", "price": 1e-7},
    {"id": " padded ", "edition": "0000", "tags": ["", "a,b", "한글", "a,b"], "note": " ", "cover": "AAEC/w==", "done": True},
    {"id": "x/y%z:w", "edition": "2000-02-29", "played": "-9999-01-01T00:00:00.000Z", "copy": "00000000-0000-0000-0000-000000000000"},
    {"id": 1, "edition": "2026", "played": "9999-12-31T23:59:59.999Z", "state": "끝낸 것", "copy": "ffffffff-ffff-ffff-ffff-ffffffffffff"},
    {"id": 2, "edition": "2026", "price": 9223372036854775807, "title": "x" * 100_000},
]


def line(kind, fields, **more):
    return json.dumps({"kind": kind, "record": fields, **more}, ensure_ascii=False)


class DumpTests(HostCase):
    def larder(self, library, *words, stdin=None, code=0):
        run = subprocess.run(
            [program(), "--library", os.path.join(self.directory, library), *words], input=stdin, capture_output=True,
            env={**os.environ, "XDG_RUNTIME_DIR": self.directory, "LARDER_SOCKET": "", "NO_COLOR": "1"}, timeout=300)
        self.assertEqual(run.returncode, code, run.stderr.decode() + run.stdout.decode()[:2000])
        return run

    def dump(self, library, *words):
        return self.larder(library, "dump", *words).stdout

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def done(self, run):
        return json.loads(run.stdout.splitlines()[-1])["done"]

    def assertSame(self, first, second):
        """Portable dumps are equal, and the others but for what is the library's own."""
        self.assertEqual(self.dump(first, "--portable"), self.dump(second, "--portable"))
        lines = []
        for library in (first, second):
            records = [json.loads(text) for text in self.dump(library).splitlines()[1:-1]]
            self.assertEqual([record["first_seq"] for record in records], sorted(record["first_seq"] for record in records))
            lines.append([{name: value for name, value in record.items() if name not in OWN} for record in records])
        self.assertEqual(*lines)
        return lines[0]

    def games(self, library):
        self.larder(library, "kinds", "add", self.file("game.json", json.dumps(GAME)))
        head = json.dumps({"larder_dump": 1, "kinds": []})
        times = (f"20{at:02}-01-01T00:00:00.{at:03}Z" for at in range(20, 99))
        lines = [line("game", fields, saved=next(times), origin=f"writer {at % 3}") for at, fields in enumerate(AWKWARD)]
        end = json.dumps({"larder_dump_end": 1, "records": len(AWKWARD)})
        return self.larder(library, "load", "-", stdin="\n".join([head, *lines, end]).encode())

    def test_every_type_with_awkward_values_comes_back(self):
        self.games("a")
        path = os.path.join(self.directory, "a.jsonl")
        self.larder("a", "dump", path)
        self.larder("b", "load", path)
        records = self.assertSame("a", "b")
        self.assertEqual(len(records), len(AWKWARD))
        for record, fields in zip(records, AWKWARD):
            for name, value in fields.items():
                self.assertEqual(record["record"][name], value, name)
        self.assertEqual(records[4]["saved"], "2024-01-01T00:00:00.024Z")
        self.assertEqual([record["origin"] for record in records[:4]], ["writer 0", "writer 1", "writer 2", "writer 0"])
        # Byte for byte: what the host stores is the same.
        self.assertEqual(self.stored("a"), self.stored("b"))

    def stored(self, library):
        host = self.host("host-" + library, library)
        with host.wire("reader") as wire:
            page = wire.call("LIST", kind=0, flags=0, limit=10_000, token=b"")
            found = [(record["kind"], record["saved_at"], record["record"]) for record in page["records"]]
        host.stop()
        return found

    def test_saved_order_saved_time_and_personal_fields_survive_changes(self):
        host = self.host("host", "a")
        with host.wire("first") as first, host.wire("second") as second:
            first.saved([save(title(number, f"Film {number}")) for number in range(1, 2_001)])
            second.saved([save(title(number, f"Changed {number}"), mode="merge") for number in range(1, 2_000, 100)])
        host.stop()
        self.larder("a", "rate", "title:test/movie/77", "9")
        self.larder("a", "tag", "title:test/movie/78", "+두 번", "+twice")
        self.larder("b", "load", "-", stdin=self.dump("a"))
        records = self.assertSame("a", "b")
        self.assertEqual([record["record"]["id"] for record in records], list(range(1, 2_001)))
        self.assertEqual(records[100]["origin"], "second")
        self.assertEqual((records[76]["record"]["rating"], records[77]["record"]["tags"]), (9, ["두 번", "twice"]))

    def test_a_second_load_changes_nothing_and_modes_decide_what_is_kept(self):
        self.games("a")
        dumped = self.dump("a")
        before = self.dump("a", "--portable")
        again = self.done(self.larder("a", "load", "-", "--json", stdin=dumped))
        self.assertEqual((again["created"], again["already_saved"]), (0, len(AWKWARD)))
        changed = dumped.replace(b'"score":0', b'"score":5')
        self.assertEqual(self.done(self.larder("a", "load", "--mode", "fill", "-", "--json", stdin=changed))["unchanged"], len(AWKWARD))
        self.assertEqual(self.dump("a", "--portable"), before)
        plan = self.done(self.larder("a", "load", "-n", "--mode", "merge", "-", "--json", stdin=changed))
        self.assertEqual((plan["updated"], plan["unchanged"]), (1, len(AWKWARD) - 1))
        self.assertEqual(self.dump("a", "--portable"), before)
        self.assertEqual(self.done(self.larder("a", "load", "--mode", "replace", "-", "--json", stdin=changed))["updated"], 1)
        self.assertIn(b'"score":5', self.dump("a"))

    def test_a_deleted_record_comes_back_to_its_place_in_its_own_library(self):
        self.games("a")
        dumped = self.dump("a")
        before = self.dump("a", "--portable")
        self.larder("a", "delete", "game", "0140449132", "1999-03")
        self.larder("a", "load", "-", stdin=dumped)
        self.assertEqual(self.dump("a", "--portable"), before)

    def test_bad_lines_are_told_with_number_and_reason_and_the_rest_goes_on(self):
        self.games("a")
        lines = self.dump("a").decode().split("\n")
        bad = [
            "{", '{"kind":"nothing","record":{}}', line("game", {"id": 5}), line("game", {"id": 5, "edition": 1999}),
            line("game", {"id": 5, "edition": "1999", "colour": "red"}), line("game", {"id": 5, "edition": "1999"}, saved="yesterday"),
            '{"kind":"game","bytes":"AA=="}', '{"kind":"game"}', '{"kind":300,"bytes":"AA=="}',
        ]
        text = "\n".join(lines[:1] + bad + lines[1:]).encode()
        run = self.larder("b", "load", "-", "--json", stdin=text, code=1)
        told = [json.loads(text)["refused"] for text in run.stdout.splitlines() if b"refused" in text and b"done" not in text]
        self.assertEqual([refusal["line"] for refusal in told], list(range(2, 2 + len(bad))))
        self.assertEqual(
            [refusal["reason"] for refusal in told],
            ["bad-json", "unknown-kind", "missing-edition", "bad-edition", "unknown-field", "bad-saved", "bad-bytes", "missing-record",
             "unknown-kind"])
        self.assertEqual((self.done(run)["created"], self.done(run)["refused"]), (len(AWKWARD), len(bad)))
        strict = self.larder("c", "load", "--strict", "-", "--json", stdin=text, code=1)
        self.assertEqual(self.done(strict)["read"], 1)

    def test_a_dump_that_was_cut_short_or_is_none_is_told(self):
        self.games("a")
        lines = self.dump("a").splitlines()
        self.assertIn(b"cut short", self.larder("b", "load", "-", stdin=b"\n".join(lines[:-1]), code=1).stderr)
        self.assertIn(b"the dump's first line is missing", self.larder("c", "load", "-", stdin=b"\n".join(lines[1:]), code=1).stderr)
        fewer = b"\n".join(lines[:1] + lines[2:])
        self.assertIn(b"7 were there", self.larder("e", "load", "-", stdin=fewer, code=1).stderr)
        end = b'{"larder_dump_end":1,"records":9223372036854775807}'
        self.larder("f", "load", "-", stdin=b"\n".join([lines[0], end, end]), code=1)
        told = self.larder("g", "load", "-", stdin=b'{"larder_dump":1,"kinds":[{"kind":"\\u001b[31m"}]}', code=1).stderr
        self.assertIn("␛[31m".encode(), told)
        self.assertNotIn(b"\x1b", told)
        newer = lines[0].replace(b'"larder_dump":1', b'"larder_dump":9')
        self.assertIn(b"a dump of form 9", self.larder("d", "load", "-", stdin=newer, code=1).stderr)

    def test_a_kind_of_another_library_is_joined_by_its_names(self):
        self.larder("a", "kinds", "add", self.file("a.json", '{"kind":"title","fields":[{"name":"shelf","type":"text"}]}'))
        self.larder("b", "kinds", "add", self.file("b.json", '{"kind":"title","fields":[{"name":"mood","type":"text"}]}'))
        self.larder("a", "save", "title", "source=x", "media_type=movie", "id=1", "title=A", "shelf=top")
        self.larder("b", "load", "-", stdin=self.dump("a"))
        shown = json.loads(self.larder("b", "get", "title:x/movie/1", "--json").stdout)
        self.assertEqual(shown["record"]["shelf"], "top")
        clash = self.dump("a").replace(b'"name":"shelf","type":"text"', b'"name":"shelf","type":"int"')
        self.assertIn(b"its type is text, not int", self.larder("b", "load", "-", stdin=clash, code=1).stderr)

    def test_a_dry_run_of_a_whole_new_kind_changes_nothing(self):
        self.games("a")
        run = self.larder("b", "load", "-n", "-", "--json", stdin=self.dump("a"))
        self.assertEqual(self.done(run)["created"], len(AWKWARD))
        self.assertEqual(self.dump("b").count(b"\n"), 2)
        self.assertNotIn(b'"kind":"game"', self.dump("b"))

    def test_seventeen_thousand_films_come_back(self):
        host = self.host("host", "a")
        with host.wire("importer") as wire:
            films = self.films()
            for start in range(0, len(films), 2_000):
                wire.saved([save(film) for film in films[start:start + 2_000]])
        host.stop()
        path = os.path.join(self.directory, "films.jsonl")
        began = time.monotonic()
        self.larder("a", "dump", path)
        middle = time.monotonic()
        run = self.larder("b", "load", path, "--json")
        print(f"\n{len(films)} films: dump {middle - began:.2f} s, load {time.monotonic() - middle:.2f} s", flush=True)
        self.assertEqual(self.done(run)["created"], len(films))
        self.assertEqual(len(self.assertSame("a", "b")), len(films))

    def films(self):
        found, seen = [], set()
        if os.path.exists(FILMS):
            with open(FILMS, encoding="utf-8") as file:
                for text in file:
                    film = json.loads(text)
                    names = {field.name for field in TITLE.fields}
                    fields = {name: value for name, value in film.items() if name in names and value not in (None, "", [])}
                    number = fields.pop("id", None)
                    if number and number not in seen and "title" in fields:
                        seen.add(number)
                        fields = {name: value for name, value in fields.items() if name in ("title", "genres", "language", "overview")}
                        found.append(title(number, fields.pop("title"), **fields))
        return found or [title(number, f"Film {number}", genres=["Drama"]) for number in range(1, 17_473)]


if __name__ == "__main__":
    unittest.main()
