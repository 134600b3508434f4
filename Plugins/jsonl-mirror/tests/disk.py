"""A disk that forgets: `os` for the store's modules, where what was not synced can be lost, torn or reordered."""

import os
import random
import shutil

SECTOR = 512


class Disk:
    """Put in the place of `os`. Writes go through at once, and a durable copy of each file is kept beside; `cut` then
    leaves what a power cut could have left.

    A name that was changed by `rename` or `unlink` is durable once its directory was synced; before, a cut keeps either.
    """

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._names = {}  # descriptor -> inode
        self._durable = {}  # inode -> bytes
        self._unsynced = {}  # inode -> [(offset, bytes) or (size, None)]
        self._undo = []  # of directory changes that were not synced, in order

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, path, flags, mode=0o777):
        existed = os.path.exists(path)
        descriptor = os.open(path, flags, mode)
        if not flags & os.O_DIRECTORY:
            inode = os.fstat(descriptor).st_ino
            self._names[descriptor] = inode
            if not existed or inode not in self._durable:
                self._durable[inode] = os.pread(descriptor, 1 << 30, 0) if existed else b""
                self._unsynced[inode] = []
            if existed and flags & os.O_TRUNC:
                self._unsynced[inode].append((0, None))
        return descriptor

    def close(self, descriptor):
        self._names.pop(descriptor, None)
        os.close(descriptor)

    def dup(self, descriptor):
        copy = os.dup(descriptor)
        self._names[copy] = self._names[descriptor]
        return copy

    def pwrite(self, descriptor, data, offset):
        count = self._random.choice((len(data), len(data), max(1, len(data) // 2)))
        os.pwrite(descriptor, bytes(data[:count]), offset)
        self._unsynced[self._names[descriptor]].append((offset, bytes(data[:count])))
        return count

    def ftruncate(self, descriptor, size):
        os.ftruncate(descriptor, size)
        self._unsynced[self._names[descriptor]].append((size, None))

    def fsync(self, descriptor):
        inode = self._names.get(descriptor)
        if inode is None:
            for _, _, former in self._undo:
                if os.path.exists(former):
                    os.unlink(former)
            self._undo = []
        else:
            self._durable[inode] = os.pread(descriptor, 1 << 30, 0)
            self._unsynced[inode] = []

    fdatasync = fsync

    def rename(self, source, target):
        former = f"{target}.{len(self._undo)}.former"
        if os.path.exists(target):
            os.link(target, former)
        os.rename(source, target)
        self._undo.append((source, target, former))

    def cut(self, directory):
        """The power goes. Descriptors of before are of no use afterwards."""
        for descriptor in self._names:
            os.close(descriptor)
        while self._undo and self._random.random() < 0.5:
            source, target, former = self._undo.pop()
            if os.path.exists(target):
                os.rename(target, source)
            if os.path.exists(former):
                os.rename(former, target)
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if name.endswith(".former"):
                os.unlink(path)
                continue
            inode = os.stat(path).st_ino
            if inode in self._durable:
                content = self._left(self._durable[inode], self._unsynced[inode])
                with open(path, "r+b") as out:
                    out.truncate(0)
                    out.write(content)
        self.__init__(self._random.random())

    def _left(self, content, changes):
        content = bytearray(content)
        for offset, data in changes:
            if data is None:
                if self._random.random() < 0.5:
                    content = content[:offset].ljust(offset, b"\0")
                continue
            for at in range(0, len(data), SECTOR):  # each sector reaches the disk or does not
                if self._random.random() < 0.5:
                    end = offset + at + len(data[at:at + SECTOR])
                    content = content.ljust(end, b"\0")
                    content[offset + at:end] = data[at:at + SECTOR]
        return bytes(content)


def copied(directory, to):
    """A copy of a directory, which must not exist."""
    shutil.copytree(directory, to)
    return to
