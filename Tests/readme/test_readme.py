"""Runs the code of README.md as it stands there, in a home of its own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.S)


def block(language, word):
    """The only block of a language that holds a word."""
    found = [code for name, code in BLOCKS if name == language and word in code]
    assert len(found) == 1, f"{len(found)} blocks of {language} hold {word!r}"
    return found[0]


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

    def shell(self, script):
        done = subprocess.run(["bash", "-eu", "-c", script], cwd=self.directory, env=self.environment, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_commands_it_names_are_there(self):
        for line in (".ci/demo", ".ci/test"):
            self.assertEqual(block("sh", line).strip(), line)
            self.assertTrue(os.access(ROOT / line, os.X_OK))

    def test_serve_import_and_events(self):
        lines = block("sh", "larder serve").strip().split("\n")
        self.assertEqual(len(lines), 6)
        self.assertTrue(lines[0].startswith("swift build -c release"))
        # Built already; a host that was just put into the background is waited for, then stopped.
        wait = "for i in $(seq 200); do ls $XDG_RUNTIME_DIR/larder/*.sock >/dev/null 2>&1 && break; sleep 0.05; done"
        script = "\n".join([lines[1], "host=$!", wait, *lines[2:], "kill $host", "wait $host"])
        out = self.shell(script)
        self.assertIn("1 created", out)
        self.assertIn("The Matrix", out)
        self.assertIn('"key":"title:tmdb/movie/603"', out)

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
        self.shell("for i in $(seq 200); do ls $XDG_RUNTIME_DIR/larder/*.sock >/dev/null 2>&1 && break; sleep 0.05; done")
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
