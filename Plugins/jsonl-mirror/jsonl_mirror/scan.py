"""Walking a mirror's lines, and what there is of it for readers: locked, whole, as of its cursor."""

from __future__ import annotations

import fcntl
import os
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .lines import head_of
from .state import State, read_state

CHUNK_BYTES = 1 << 20
Range = Tuple[int, int]


class Damaged(Exception):
    """The file is not what its state says."""


def merged(ranges: Sequence[Range]) -> List[Range]:
    """Ranges (offset, count) in order, neighbours joined."""
    out: List[Range] = []
    for at, count in sorted(ranges):
        if out and at <= out[-1][0] + out[-1][1]:
            start = out[-1][0]
            out[-1] = (start, max(out[-1][1], at + count - start))
        else:
            out.append((at, count))
    return out


def raw_lines(descriptor: int, end: int, start: int = 0) -> Iterator[Tuple[int, bytes]]:
    """Offset and bytes, without leading spaces and with the newline, of the lines of a range that begins and ends where
    lines or spaces do."""
    at, rest = start, b""  # `rest` begins at `start`
    while at < end:
        data = os.pread(descriptor, min(CHUNK_BYTES, end - at), at)
        if not data:
            raise Damaged(f"the file ends at {at}, {end} bytes are expected")
        at += len(data)
        *whole, last = (rest + data).split(b"\n")
        for piece in whole:
            line = piece.lstrip(b" ")
            yield start + len(piece) - len(line), line + b"\n"
            start += len(piece) + 1
        # Spaces are not kept: there may be many megabytes of them.
        rest = last.lstrip(b" ")
        start += len(last) - len(rest)
    if rest:
        raise Damaged(f"the line at {start} does not end")


def live_lines(descriptor: int, state: State) -> Iterator[Tuple[int, bytes]]:
    """The lines that count, also where a state's blanks have not been written yet or only in part."""
    at = 0
    for start, count in [*merged(state.blank), (state.size, 0)]:
        yield from raw_lines(descriptor, min(start, state.size), at)
        at = start + count


def line_at(descriptor: int, at: int) -> bytes:
    """The line at an offset, with its newline."""
    data = os.pread(descriptor, 2048, at)
    while b"\n" not in data:
        more = os.pread(descriptor, len(data) + 2048, at + len(data))
        if not more:
            raise Damaged(f"the line at {at} does not end")
        data += more
    return data[:data.index(b"\n") + 1]


def sorted_lines(descriptor: int, state: State) -> Iterator[bytes]:
    """The lines that count, in saved order. Costs some 50 bytes a record where they do not lie so."""
    if state.is_ordered:
        for _, line in live_lines(descriptor, state):
            yield line
        return
    places: List[int] = []
    for at, line in live_lines(descriptor, state):
        head = head_of(line)
        if head is None:
            raise Damaged(f"the line at {at} is none of the mirror's")
        places.append(head.saved_seq << 64 | at)
    places.sort()
    for place in places:
        yield line_at(descriptor, place & (1 << 64) - 1)


class Published(NamedTuple):
    """A mirror under a shared lock. `close` lets the mirror go on."""

    descriptor: int
    state: State

    def lines(self) -> Iterator[bytes]:
        """Its lines as they lie."""
        for _, line in live_lines(self.descriptor, self.state):
            yield line

    def sorted_lines(self) -> Iterator[bytes]:
        """Its lines in saved order."""
        return sorted_lines(self.descriptor, self.state)

    def close(self) -> None:
        os.close(self.descriptor)


def published(path: str) -> Optional[Published]:
    """The mirror at `path` as of its cursor, whoever is writing it, and also after a crash. None if there is none."""
    while True:
        # A replacement that a crash left undone counts already.
        state = read_state(path + ".cursor")
        name = path
        if state is not None and state.replace:
            fresh = os.path.join(os.path.dirname(path), state.replace)
            name = fresh if os.path.exists(fresh) else path
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if name != path:
                continue
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        again = read_state(path + ".cursor")
        if again is None:
            os.close(descriptor)
            return None
        try:
            is_same = os.path.samestat(os.fstat(descriptor), os.stat(name))
        except FileNotFoundError:
            is_same = False
        if is_same and (again.replace == "" or (state is not None and again.replace == state.replace)):
            return Published(descriptor, again)
        os.close(descriptor)
