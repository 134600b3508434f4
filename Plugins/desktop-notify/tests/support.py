"""What the tests share: the plugin's modules on the path, and a host if there is one."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent
PLUGIN = TESTS.parent
REPOSITORY = PLUGIN.parent.parent
sys.path[:0] = [str(PLUGIN), str(PLUGIN.parent / "sdk" / "python")]


def larder_program():
    """The host's program, or None: LARDER_BIN, else what was built in the repository."""
    named = os.environ.get("LARDER_BIN")
    for path in [named] if named else [REPOSITORY / ".build" / mode / "larder" for mode in ("release", "debug")]:
        if os.access(path, os.X_OK):
            return str(path)
    return None


class Host:
    """A host of its own on a library of its own."""

    def __init__(self, directory):
        self.library = os.path.join(directory, "library")
        self.socket = os.path.join(directory, "s")
        self.log = open(os.path.join(directory, "host.log"), "ab")
        self.process = None

    def start(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.dirname(self.socket)}
        self.process = subprocess.Popen(
            [larder_program(), "serve", "--library", self.library, "--socket", self.socket],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment)
        return self.connect()

    def connect(self):
        import larder
        until = time.monotonic() + 30
        while True:
            try:
                return larder.connect("test", path=self.socket)
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        self.log.close()


def scratch(case):
    """A directory that goes with the test."""
    path = tempfile.mkdtemp(prefix="notify-")
    case.addCleanup(shutil.rmtree, path, ignore_errors=True)
    return path
