"""Ways to show a text: a program on the desktop, or a line in the log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import Any, Callable, List, Mapping, Optional

COMMAND_SECONDS = 5.0
Log = Callable[[str], None]


def command_of(setting: Any, environ: Optional[Mapping[str, str]] = None) -> List[str]:
    """The program and its arguments that a text is added to; empty for the log. Raises ValueError."""
    env = os.environ if environ is None else environ
    if isinstance(setting, str) and setting:
        return [os.path.expanduser(setting)]
    if isinstance(setting, list) and setting and all(isinstance(word, str) for word in setting):
        return [os.path.expanduser(setting[0]), *setting[1:]]
    if setting:
        raise ValueError(f"command is a program or a list of it and its arguments, not {setting!r}")
    found = shutil.which("notify-send", path=env.get("PATH"))
    if found and (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return [found, "--app-name=Larder", "--"]
    return []


class Lines:
    """Prints texts on standard output: a terminal, or the log that the host keeps."""

    def show(self, text: str) -> None:
        """One line."""
        print(text, flush=True)


class Program:
    """Runs a program for each text. One that hangs is killed with all that it started."""

    def __init__(self, command: List[str], log: Log, seconds: float = COMMAND_SECONDS) -> None:
        self._command = command
        self._log = log
        self._seconds = seconds
        self._instead = Lines()

    def show(self, text: str) -> None:
        """Shows it, or prints it where that fails."""
        problem = self._run(text)
        if problem:
            self._log(f"{self._command[0]}: {problem}")
            self._instead.show(text)

    def _run(self, text: str) -> str:
        try:
            child = subprocess.Popen([*self._command, text], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            return error.strerror or str(error)
        try:
            code = child.wait(self._seconds)
            return f"ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            return f"no end after {self._seconds:g} s: killed"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            child.wait()


def describe(command: List[str]) -> str:
    """Where texts go, for the log."""
    return command[0] if command else ("the terminal" if sys.stdout.isatty() else "the log")
