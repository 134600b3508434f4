"""The program beside a host: what it saves, what it tells, and that it goes on after the host was killed."""

import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest

from support import CASES, PLUGIN, Host, larder_program, scratch

PROGRAM = larder_program()
REASON = "no larder program: build it or set LARDER_BIN"
if PROGRAM is None:
    print(f"tests with a host are skipped: {REASON}", file=sys.stderr)


class CommandTest(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        return subprocess.run([sys.executable, str(PLUGIN / "tmdb_import.py"), *map(str, arguments)],
                              env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)

    def test_what_is_wrong_with_the_command_line_is_2(self):
        for arguments, environment in ((["import"], {}), (["export", "x"], {}), (["import", "--mode", "x", "f"], {}),
                                       (["import", "--set", "title=A", "f"], {}), (["import", "--set", "x", "f"], {}),
                                       (["import", "--set", "runtime=long", "f"], {}),
                                       (["import", "f"], {"LARDER_IMPORT_OPTIONS": "{"}),
                                       (["import", "f"], {"LARDER_IMPORT_OPTIONS": '{"mode":"x"}'}),
                                       (["import", "f"], {"LARDER_IMPORT_OPTIONS": '{"set":{"media_type":"x"}}'})):
            self.assertEqual(self.run_program(*arguments, **environment).returncode, 2, arguments)

    def test_no_host_is_1_and_said(self):
        found = self.run_program("import", CASES / "001" / "page.json", LARDER_SOCKET="/nowhere/s")
        self.assertEqual((found.returncode, found.stdout), (1, ""))
        self.assertIn("failed:", found.stderr)

    def test_the_manifest_names_this_program(self):
        manifest = json.loads((PLUGIN / "larder-plugin.json").read_text())
        self.assertTrue(os.access(PLUGIN / manifest["program"][0], os.X_OK))


@unittest.skipUnless(PROGRAM, REASON)
class ImportTest(unittest.TestCase):
    def setUp(self):
        self.directory = scratch(self)
        self.host = Host(self.directory)
        self.addCleanup(self.host.stop)
        self.client = self.host.start()
        self.addCleanup(lambda: self.client.close())

    def run_import(self, *arguments, options=None):
        """The exit code, and what it told: lists by name, and `done`."""
        environment = {**os.environ, "LARDER_SOCKET": self.host.socket}
        if options is not None:
            environment["LARDER_IMPORT_OPTIONS"] = json.dumps(options)
        found = subprocess.run([sys.executable, str(PLUGIN / "tmdb_import.py"), "import", "--json", *map(str, arguments)],
                               env=environment, stdout=subprocess.PIPE, text=True, timeout=120)
        told = {"refused": [], "skipped": [], "warning": [], "progress": []}
        lines = [json.loads(line) for line in found.stdout.splitlines()]
        self.assertEqual(list(lines[-1]), ["done"])
        for line in lines[:-1]:
            (name, value), = line.items()
            told[name].append(value)
        done = lines[-1]["done"]
        self.assertEqual(done["read"], sum(count for name, count in done.items() if name != "read"))
        return found.returncode, told, {name: count for name, count in done.items() if count}

    def titles(self):
        return {item.key_text: item for item in self.client.list("title")}

    def test_a_page_with_a_film_a_series_and_a_person(self):
        path = CASES / "001" / "page.json"
        code, told, done = self.run_import(path)
        self.assertEqual((code, done), (0, {"read": 3, "created": 2, "skipped": 1}))
        self.assertEqual(told["skipped"], [{"file": str(path), "at": "results[2]", "reason": "person"}])
        self.assertEqual({key: item.label for key, item in self.titles().items()},
                         {"title:tmdb/movie/900101": "Paper Lighthouse", "title:tmdb/tv/900102": "Slow Tram"})
        self.assertEqual(self.run_import(path)[2], {"read": 3, "unchanged": 2, "skipped": 1})

    def test_a_film_and_a_series_of_one_number(self):
        self.run_import(CASES / "002" / "page.json")
        self.client.delete("title:tmdb/movie/900201")
        self.assertEqual(list(self.titles()), ["title:tmdb/tv/900201"])

    def test_a_row_on_two_pages_is_a_duplicate(self):
        subscription = self.client.subscribe()
        code, _, done = self.run_import(CASES / "005" / "page1.json", CASES / "005" / "page2.json")
        self.assertEqual((code, done), (0, {"read": 5, "created": 4, "duplicate": 1}))
        subscription.sync()
        subscription.unsubscribe()
        self.assertEqual([event.type for event in subscription], ["created"] * 4)

    def test_numbers_as_texts(self):
        code, told, done = self.run_import(CASES / "006" / "page.json")
        self.assertEqual((code, done), (0, {"read": 4, "created": 3, "duplicate": 1}))
        self.assertEqual([(item["at"], item["field"]) for item in told["warning"]], [("results[3]", "vote_count")])
        record = self.titles()["title:tmdb/movie/900601"].record
        self.assertEqual((record["popularity"], record["vote_average"]), (93.4917224393659, 8.6))

    def test_bad_ids_are_told_with_their_lines(self):
        code, told, done = self.run_import(CASES / "007" / "movies.jsonl")
        self.assertEqual((code, done), (1, {"read": 11, "created": 4, "refused": 7}))
        self.assertEqual([(item["line"], item["reason"]) for item in told["refused"]],
                         [(line, "bad-id") for line in range(5, 12)])
        self.assertIn("title:tmdb/movie/9007199254740993", self.titles())

    def test_empty_files_are_refused_and_an_empty_list_is_not(self):
        self.assertEqual(self.run_import(CASES / "009" / "empty.json")[::2], (0, {}))
        code, told, done = self.run_import(CASES / "009")
        self.assertEqual((code, done), (1, {"read": 3, "refused": 3}))
        self.assertEqual([item["reason"] for item in told["refused"]], ["empty", "no-results-array", "empty"])
        self.assertEqual(self.titles(), {})

    def test_an_import_that_has_less_deletes_nothing(self):
        full = os.path.join(self.directory, "full.jsonl")
        with open(full, "w") as out:
            out.writelines(f'{{"id":{number},"title":"Shelf {number}","overview":"long"}}\n' for number in range(1, 6))
        self.run_import(full)
        part = os.path.join(self.directory, "page1.json")
        with open(part, "w") as out:
            out.write('{"page":1,"results":[{"id":1,"title":"Shelf 1","overview":""}],"total_pages":2,"total_results":5}')
        self.assertEqual(self.run_import(part)[::2], (0, {"read": 1, "unchanged": 1}))
        self.assertEqual(len(self.titles()), 5)

    def test_options_come_from_the_environment(self):
        path = os.path.join(self.directory, "a.jsonl")
        with open(path, "w") as out:
            out.write('{"id":1,"name":"A"}\n{"id":1,"name":"A"}\n')
        options = {"mode": "insert", "dry_run": True, "set": {"media_type": "tv", "language": "ko", "source": "mine"}}
        self.assertEqual(self.run_import(path, options=options)[2], {"read": 2, "created": 1, "duplicate": 1})
        self.assertEqual(self.titles(), {})
        options["dry_run"] = False
        self.assertEqual(self.run_import(path, options=options)[2], {"read": 2, "created": 1, "duplicate": 1})
        self.assertEqual(self.titles()["title:mine/tv/1"].record["language"], "ko")
        self.assertEqual(self.run_import(path, options=options)[2], {"read": 2, "already_saved": 2})

    def test_what_the_host_refuses_is_told_with_its_place(self):
        path = os.path.join(self.directory, "a.jsonl")
        with open(path, "w") as out:
            out.write('{"id":1,"title":"A"}\n\n{"id":2,"title":"%s"}\n{"id":3,"title":"C"}\n' % ("x" * 1_200_000))
        code, told, done = self.run_import(path)
        self.assertEqual((code, done), (1, {"read": 3, "created": 2, "refused": 1}))
        self.assertEqual([(item["line"], item["reason"]) for item in told["refused"]], [(3, "record_too_large")])

    def test_a_killed_host_loses_and_doubles_nothing(self):
        count = 20_000
        path = os.path.join(self.directory, "movie_ids_01_01_2024.json")
        with open(path, "w") as out:
            for number in range(1, count + 1):
                out.write(json.dumps({"adult": False, "id": number, "original_title": f"Film {number} " + "x" * 200,
                                      "popularity": number / 7, "video": False}) + "\n")
                if number % 1000 == 0:
                    out.write('{"adult":false,"id":0,"original_title":"none","popularity":1,"video":false}\n')
        seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
        chance = random.Random(seed)
        kills = []

        def kill():
            # An importer that finds no host at its start ends; it is to be met at work.
            while not finished.is_set() and not self.client.count("title").get("title"):
                time.sleep(0.01)
            for _ in range(4):
                time.sleep(chance.uniform(0.3, 0.9))
                if finished.is_set():
                    return
                with self.host.connect() as client:
                    kills.append(client.welcome["last_seq"])
                self.host.kill()
                time.sleep(chance.uniform(0, 0.5))
                self.host.start().close()

        finished = threading.Event()
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            code, told, done = self.run_import(path)
        finally:
            finished.set()
            killer.join()
        with self.subTest(seed=seed, kills=kills):
            self.client.close()
            self.client = self.host.connect()
            self.assertEqual(self.client.count("title"), {"title": count})
            self.assertEqual((code, done), (1, {"read": count + 20, "created": count, "refused": 20}))
            self.assertEqual(len(told["refused"]), 20)
            self.assertTrue(kills)
        self.assertEqual(self.run_import(path)[2], {"read": count + 20, "unchanged": count, "refused": 20})


if __name__ == "__main__":
    unittest.main()
