"""The file of a mirror and its commits.

    put, remove      in memory: lines to append, ranges to make spaces
    commit           1  append behind the size that the state names, and sync     what was there is not touched
                     2  append a line to the state, and sync                      this is the commit
                     3  overwrite the ranges with spaces, cut the tail            done again at opening

A crash before 2 leaves bytes behind the old size, which opening cuts off; a crash behind it leaves ranges to make
spaces, which the state's last line still names: they are synced by the next commit's first step, before that line is
superseded. A dead line becomes spaces together with its newline, so every line stays one object.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import Callable, List, Optional, Tuple

from .index import Index
from .lines import Line, head_bytes, head_of
from .scan import Damaged, Range, line_at, live_lines, merged, sorted_lines
from .state import State, StateFile, read_state, remove, sync_directory, write_all

LOCK_SECONDS = 10.0
COMPACT_BYTES = 1 << 20
SPACES = b" " * 65536
Step = Callable[[str], None]


def no_step(name: str) -> None:
    """Tests hang a power cut here."""


class Store:
    """One mirror's file, open for writing. `open` or `create` first.

    `path` is the file; beside it are `path.cursor` (its state) and, for a moment, `path.new`.
    """

    def __init__(self, path: str, log: Callable[[str], None] = lambda text: None, step: Step = no_step) -> None:
        self.path = path
        self.log = log
        self._step = step
        self._state_file = StateFile(path + ".cursor")
        self._descriptor = -1
        self.state: Optional[State] = None
        self._index = Index()
        self._begin(0)
        self._dead = 0
        self._is_ordered = True
        self._last_saved_seq = 0
        self._is_synced = True
        #: Of the file, since it was opened.
        self.bytes_written = 0

    def _begin(self, size: int) -> None:
        """Nothing is pending, behind `size`."""
        self._size = size
        self._pending = bytearray()
        self._blank: List[Range] = []

    # Opening.

    def open(self) -> bool:
        """Repairs and opens what is there; False if there is nothing to go on from. A file that contradicts its state
        stays, and loses its state."""
        state = read_state(self.path + ".cursor")
        if state is not None and state.replace:
            fresh = os.path.join(os.path.dirname(self.path), state.replace)
            if os.path.exists(fresh):
                os.rename(fresh, self.path)
                sync_directory(self.path)
        remove(self.path + ".new")
        if state is None:
            return False
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            self._repair(state)
        except (Damaged, FileNotFoundError) as error:
            self.log(f"{self.path} is not what its cursor says: {error}")
            self.close()
            remove(self.path + ".cursor")
            return False
        return True

    def _repair(self, state: State) -> None:
        size = os.fstat(self._descriptor).st_size
        if size < state.size:
            raise Damaged(f"the file has {size} bytes, {state.size} are expected")
        self._lock()
        self._spaces(state.blank, state.size)
        os.ftruncate(self._descriptor, state.size)
        os.fsync(self._descriptor)
        self.state = state.settled()
        self._state_file.rewrite(self.state)
        self._unlock()
        self._begin(state.size)
        self._dead, self._is_ordered, self._is_synced = state.dead, state.is_ordered, True
        self._index.clear()
        for at, line in live_lines(self._descriptor, self.state):
            head = head_of(line)
            if head is None:
                raise Damaged(f"the line at {at} is none of the mirror's")
            self._index.add(head.identity, at)
            self._last_saved_seq = max(self._last_saved_seq, head.saved_seq)
        if self._index.count != state.records:
            raise Damaged(f"{self._index.count} records are there, {state.records} are expected")

    def create(self) -> None:
        """Begins anew, with nothing."""
        self.discard()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        sync_directory(self.path)

    def discard(self) -> None:
        """Removes everything; the state first, so that it never speaks of another file."""
        self.close()
        remove(self.path + ".cursor")
        remove(self.path)

    def close(self) -> None:
        """Lets go without a commit."""
        self._state_file.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self.__init__(self.path, self.log, self._step)  # type: ignore[misc]

    # Changes.

    @property
    def records(self) -> int:
        return self._index.count

    @property
    def has_changes(self) -> bool:
        """Whether a commit has more to say than a cursor."""
        return bool(self._pending or self._blank)

    @property
    def pending_bytes(self) -> int:
        """About how much a commit has to write."""
        return len(self._pending) + 32 * len(self._blank)

    def put(self, line: Line) -> None:
        """A record as it is now."""
        self.remove(line.identity)
        self._index.add(line.identity, self._size + len(self._pending))
        self._pending += line.data
        if line.saved_seq < self._last_saved_seq:
            self._is_ordered = False
        else:
            self._last_saved_seq = line.saved_seq

    def remove(self, identity: bytes) -> bool:
        """A record that is gone; whether it was there."""
        head = head_bytes(identity)
        offset = self._index.find(identity, lambda at: self._peek(at, len(head)) == head)
        if offset is None:
            return False
        self._index.drop(identity, offset)
        if offset >= self._size:
            at = offset - self._size
            count = self._pending.index(b"\n", at) + 1 - at
            self._pending[at:at + count] = b" " * count
        else:
            count = len(line_at(self._descriptor, offset))
            self._blank.append((offset, count))
        self._dead += count
        return True

    def _peek(self, offset: int, count: int) -> bytes:
        if offset >= self._size:
            return bytes(self._pending[offset - self._size:offset - self._size + count])
        return os.pread(self._descriptor, count, offset)

    # Commits.

    def commit(self, cursor: str) -> None:
        """Makes everything so far the library as of `cursor`. Durable on return."""
        pending = self._pending.rstrip(b" ")
        self._dead -= len(self._pending) - len(pending)
        size = self._size + len(pending)
        blank = merged(self._blank)
        if not pending and blank:
            size, blank = self._trimmed(blank)
            self._dead -= self._size - size
        if size == self._dead:  # nothing lives
            size = self._dead = 0
            blank, pending = [], bytearray()
        state = State(cursor, size, self.records, self._dead, self._is_ordered or not self.records, blank)
        self._lock()
        try:
            if pending:
                write_all(self._descriptor, bytes(pending), self._size)
                self.bytes_written += len(pending)
                self._step("appended")
            if pending or not self._is_synced:
                os.fdatasync(self._descriptor)
                self._is_synced = True
                self._step("synced")
            self._state_file.append(state)
            self._step("committed")
            self._spaces(blank, size)
            if size < self._size:
                os.ftruncate(self._descriptor, size)
                self._is_synced = False
        finally:
            self._unlock()
        self.state = state
        self._is_ordered = state.is_ordered
        self._begin(size)
        if self._dead > max(COMPACT_BYTES, (size - self._dead) // 2):
            self.compact()

    def _trimmed(self, blank: List[Range]) -> Tuple[int, List[Range]]:
        """The size without dead lines at the end, and the ranges that are left before it."""
        size = self._size
        while size:
            if blank and blank[-1][0] + blank[-1][1] >= size:
                size = min(size, blank.pop()[0])
                continue
            start = max(blank[-1][0] + blank[-1][1] if blank else 0, size - len(SPACES))
            live = os.pread(self._descriptor, size - start, start).rstrip(b" ")
            size = start + len(live)
            if live:
                break
        return size, blank

    def _spaces(self, blank: List[Range], size: int) -> None:
        for at, count in blank:
            count = min(count, size - at)
            self._is_synced = False
            self.bytes_written += max(count, 0)
            while count > 0:
                done = os.pwrite(self._descriptor, SPACES[:count], at)
                at, count = at + done, count - done
            self._step("blanked")

    def _lock(self) -> None:
        """Keeps readers out who hold a shared lock; one that never lets go is passed over."""
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    self.log(f"a reader holds {self.path} for more than {LOCK_SECONDS:.0f} s: going on")
                    return
                time.sleep(0.01)

    def _unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    # Replacing.

    def compact(self) -> None:
        """Writes the live lines, in saved order, to a new file that takes this one's place."""
        assert self.state is not None
        self._index.clear()
        fresh, state, index = written_sorted(self._descriptor, self.state, self.path + ".new")
        self.bytes_written += state.size
        self._take(fresh, state, index)

    def publish(self, built: "Store") -> None:
        """Takes the place of what is here, if anything: the end of a snapshot that was built elsewhere in the same
        directory, and committed. `built` is of no use afterwards."""
        state, index = built.state, built._index
        assert state is not None
        if state.dead or not state.is_ordered:
            index.clear()
            fresh, state, index = written_sorted(built._descriptor, state, self.path + ".new")
            self._take(fresh, state, index)
        else:
            os.fsync(built._descriptor)
            descriptor = os.dup(built._descriptor)
            self._take((built.path, descriptor), state, index)
        self._last_saved_seq = built._last_saved_seq
        built.discard()

    def _take(self, fresh: Tuple[str, int], state: State, index: Index) -> None:
        name, descriptor = fresh
        former = self._descriptor
        if former >= 0:
            self._lock()
        self._step("replacement written")
        self._state_file.append(State(state.cursor, state.size, state.records, 0, True, [], os.path.basename(name)))
        self._step("replacement committed")
        os.rename(name, self.path)
        sync_directory(self.path)
        self._step("replaced")
        self.state = state.settled()
        self._state_file.append(self.state)
        if former >= 0:
            os.close(former)
        self._descriptor, self._index = descriptor, index
        self._begin(state.size)
        self._dead, self._is_ordered, self._is_synced = 0, True, True


def written_sorted(source: int, state: State, path: str) -> Tuple[Tuple[str, int], State, Index]:
    """Writes what lives in `source`, in saved order, to a new file and syncs it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    index, buffer, size = Index(), bytearray(), 0
    for line in sorted_lines(source, state):
        head = head_of(line)
        if head is None:
            raise Damaged("a line that is none of the mirror's")
        index.add(head.identity, size + len(buffer))
        buffer += line
        if len(buffer) >= 1 << 20:
            write_all(descriptor, bytes(buffer), size)
            size += len(buffer)
            buffer.clear()
    write_all(descriptor, bytes(buffer), size)
    size += len(buffer)
    os.fsync(descriptor)
    return (path, descriptor), State(state.cursor, size, state.records), index
