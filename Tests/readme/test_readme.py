"""Runs the code of README.md as it stands there, in a home of its own, and compares what it prints."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.S)
WAIT = "for i in $(seq 200); do ls $XDG_RUNTIME_DIR/larder/*.sock >/dev/null 2>&1 && break; sleep 0.05; done"


def block(language, word):
    """The only block of a language that holds a word."""
    found = [code for name, code in BLOCKS if name == language and word in code]
    assert len(found) == 1, f"{len(found)} blocks of {language} hold {word!r}"
    return found[0]


def steps():
    """The commands of all console blocks in their order, with the lines that the README has below each."""
    found = []
    for language, code in BLOCKS:
        for line in code.splitlines() if language == "console" else []:
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                assert found, f"{line!r} stands above the first command"
                found[-1][1].append(line)
    return found


def steady(line):
    """A line without what is another at each run: times to the minute or second, how fast it went, and into how many blocks
    the commits fell."""
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "0000-00-00 00:00", line.rstrip())
    line = re.sub(r"(00:00):\d\d", r"\1:00", line)
    line = re.sub(r"\b\d+ blocks\b", "0 blocks", re.sub(r"\b[\d.]+ KiB\b", "0 KiB", line))
    line = re.sub(r"since \d{4}-\d\d-\d\d$", "since 0000-00-00", line)
    return re.sub(r"\b[\d.]+ s(, [\d,]+/s)?$", "0 s", line)


def matches(lines, wanted):
    """Whether the lines are those that are wanted; a line that is … stands for any number of them."""
    if not wanted:
        return not lines
    if wanted[0] == "…":
        return any(matches(lines[start:], wanted[1:]) for start in range(len(lines) + 1))
    return bool(lines) and steady(lines[0]) == steady(wanted[0]) and matches(lines[1:], wanted[1:])


def program():
    """The built program: LARDER_BIN, else the newest of the repository's builds."""
    if "LARDER_BIN" in os.environ:
        return os.environ["LARDER_BIN"]
    built = [ROOT / ".build" / mode / "larder" for mode in ("debug", "release")]
    built = [path for path in built if path.exists()]
    assert built, "larder is not built"
    return str(max(built, key=lambda path: path.stat().st_mtime))


class ReadmeTests(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, True)
        os.makedirs(f"{self.directory}/bin")
        os.symlink(program(), f"{self.directory}/bin/larder")
        self.environment = {
            **os.environ, "HOME": self.directory, "XDG_DATA_HOME": f"{self.directory}/data",
            "XDG_RUNTIME_DIR": f"{self.directory}/run", "PATH": f"{self.directory}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "Plugins/sdk/python")}
        for name in ("LARDER_LIBRARY", "LARDER_SOCKET", "LARDER_FD"):
            self.environment.pop(name, None)

    def shell(self, script, codes=(0,)):
        done = subprocess.run(["bash", "-eu", "-c", script], cwd=self.directory, env=self.environment, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn(done.returncode, codes, done.stdout)
        return done.stdout

    def bring_sources(self):
        """Puts what the README names by its path from the sources' directory where its commands are run."""
        for name in ("Sources", "Plugins"):
            os.symlink(ROOT / name, f"{self.directory}/{name}")

    def end_hosts(self):
        """Ends the hosts that commands started, which would otherwise stay until they are idle for long enough."""
        for words in ([], ["--library", "copy"]):
            done = subprocess.run(["larder", *words, "--json", "status"], cwd=self.directory, env=self.environment,
                                  stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode == 0:
                os.kill(json.loads(done.stdout)["pid"], signal.SIGTERM)

    def test_the_commands_it_names_are_there(self):
        for line in (".ci/demo", ".ci/test"):
            self.assertEqual(block("sh", line).strip(), line)
            self.assertTrue(os.access(ROOT / line, os.X_OK))

    def test_it_says_how_to_build(self):
        lines = block("sh", "swift build").strip().split("\n")
        self.assertEqual(lines, ["swift build -c release && PATH=$PWD/.build/release:$PATH"])
        self.assertTrue((ROOT / "Package.swift").exists())

    def test_the_tour_prints_what_it_says(self):
        self.bring_sources()
        with open(f"{self.directory}/game.json", "w", encoding="utf-8") as file:
            file.write(block("json", '"game"'))
        self.addCleanup(self.end_hosts)
        commands = steps()
        self.assertGreater(len(commands), 20)
        for command, wanted in commands:
            with self.subTest(command):
                lines = self.shell(command, codes=range(3)).splitlines()
                self.assertTrue(matches(lines, wanted), "\n".join(["it printed:", *lines]))

    def test_every_command_that_it_names_is_there(self):
        known = set(re.findall(r"^  ([a-z]+)  ", self.shell("larder help"), re.M))
        self.assertGreater(len(known), 20)
        code = re.findall(r"`(larder [^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.S))
        code += [text for language, text in BLOCKS if language in ("sh", "console")]
        named = set(re.findall(r"(?:^|[|$&] |\n)larder (?:--library \w+ )?([a-z]+)", "\n".join(code)))
        self.assertGreater(len(named), 20)
        self.assertEqual(named - known, set())

    def test_every_path_that_it_names_is_there(self):
        paths = re.findall(r"`((?:Protocol|Plugins|Sources|Tests)/[^` ]+)`", TEXT)
        self.assertGreater(len(paths), 5)
        for path in paths:
            self.assertTrue((ROOT / path).exists(), path)

    def test_serve_plugins_and_events(self):
        self.bring_sources()
        lines = block("sh", "larder serve").strip().split("\n")
        self.assertEqual(lines[0], "larder serve &")
        # A host that was just put into the background is waited for, then stopped.
        script = "\n".join([lines[0], "host=$!", WAIT, *lines[1:], "larder plugin list", "kill $host", "wait $host"])
        out = self.shell(script)
        self.assertIn("1 created", out)
        self.assertIn('"key":"title:tmdb/movie/603"', out)
        self.assertRegex(out, r"jsonl-mirror +1\.0 +exporter")

    def test_the_plugin_in_twenty_lines(self):
        code = block("python", "larder.Plugin")
        self.assertLessEqual(len(code.strip().split("\n")), 20)
        with open(f"{self.directory}/tally.py", "w", encoding="utf-8") as file:
            file.write(code)
        with open(f"{self.directory}/film.jsonl", "w", encoding="utf-8") as file:
            file.write('{"id": 603, "title": "The Matrix"}\n')
        host = subprocess.Popen(["larder", "serve"], env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(host.wait)
        self.addCleanup(host.terminate)
        self.shell(WAIT)
        log = open(f"{self.directory}/log", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        tally = subprocess.Popen([sys.executable, "tally.py"], cwd=self.directory, env=self.environment, stderr=log)
        # A plugin that comes later is given what is there, and hears nothing of what is gone.
        self.shell("for i in $(seq 200); do larder status | grep -q 'tally.* 1  ' && break; sleep 0.05; done\n"
                   "larder import --kind title --set source=tmdb --set media_type=movie film.jsonl\n"
                   "larder delete title:tmdb/movie/603")
        until = time.monotonic() + 30
        text = ""
        while "deleted" not in text and time.monotonic() < until:
            time.sleep(0.05)
            text = pathlib.Path(log.name).read_text(encoding="utf-8")
        tally.terminate()
        self.assertEqual(tally.wait(20), 0, text)
        self.assertIn("title:tmdb/movie/603 deleted, 1 so far", text)


if __name__ == "__main__":
    unittest.main()
