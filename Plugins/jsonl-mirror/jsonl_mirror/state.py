"""The state beside the file: an append-only file of JSON lines, each with a CRC, of which the last whole one counts.

    {"cursor":"9b1f00c2a4d3e5f6-45","size":1234,"records":5,"dead":0,"ordered":true,"blank":[[100,50]],"crc":"0a1b2c3d"}

`size` is how much of the file counts, `blank` the ranges in it that are to be spaces, `replace` the name of a file that
is to take the file's place. All three can be done again at any time; so a line that is durable is a commit.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field, replace as changed
from typing import List, Optional, Tuple

ROTATE_BYTES = 1 << 20


@dataclass(frozen=True)
class State:
    """One commit."""

    cursor: str
    size: int
    records: int
    #: Bytes of the file that are spaces, or will be.
    dead: int = 0
    #: Whether the lines lie in saved order.
    is_ordered: bool = True
    blank: List[Tuple[int, int]] = field(default_factory=list)
    replace: str = ""

    def encode(self) -> bytes:
        """Its line."""
        form = {"cursor": self.cursor, "size": self.size, "records": self.records, "dead": self.dead,
                "ordered": self.is_ordered, "blank": self.blank}
        if self.replace:
            form["replace"] = self.replace
        body = json.dumps(form, separators=(",", ":"))[:-1]
        return f'{body},"crc":"{zlib.crc32(body.encode()):08x}"}}\n'.encode()

    @classmethod
    def decode(cls, line: bytes) -> Optional["State"]:
        """A line without its newline; None if it is torn or damaged."""
        body, comma, crc = line.rpartition(b',"crc":"')
        if not comma or crc != b'%08x"}' % zlib.crc32(body):
            return None
        try:
            form = json.loads(body + b"}")
            return cls(form["cursor"], form["size"], form["records"], form["dead"], form["ordered"],
                       [(at, count) for at, count in form["blank"]], form.get("replace", ""))
        except (ValueError, KeyError, TypeError):
            return None

    def settled(self) -> "State":
        """The same once its blanks and its replacement are done and durable."""
        return changed(self, blank=[], replace="")


def sync_directory(path: str) -> None:
    """Makes the names in the directory of `path` durable."""
    descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Removes a file if it is there, durably."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_directory(path)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """`pwrite` to the last byte."""
    with memoryview(data) as view:
        done = 0
        while done < len(data):
            done += os.pwrite(descriptor, view[done:], offset + done)


def read_state(path: str) -> Optional[State]:
    """The last whole line of a state file; None where there is none."""
    try:
        with open(path, "rb") as source:
            lines = source.read().split(b"\n")
    except FileNotFoundError:
        return None
    # What follows the last newline was torn.
    for line in reversed(lines[:-1]):
        state = State.decode(line)
        if state is not None:
            return state
    return None


class StateFile:
    """The writer's side. A line is durable when `append` or `rewrite` returns."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._size = 0
        #: Written since it was opened, for whoever measures.
        self.bytes_written = 0

    def append(self, state: State) -> None:
        """Adds a line; now and then the file begins anew."""
        line = state.encode()
        if self._descriptor < 0 or self._size + len(line) > ROTATE_BYTES:
            self.rewrite(state)
            return
        write_all(self._descriptor, line, self._size)
        os.fdatasync(self._descriptor)
        self._size += len(line)
        self.bytes_written += len(line)

    def rewrite(self, state: State) -> None:
        """A file of this line alone, put in the other's place."""
        self.close()
        line = state.encode()
        fresh = self.path + ".tmp"
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, line, 0)
            os.fsync(descriptor)
            os.rename(fresh, self.path)
            sync_directory(self.path)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._size = descriptor, len(line)
        self.bytes_written += len(line)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
