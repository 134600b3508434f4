"""Where each record's line begins, in about a hundred bytes a record."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Union

_MASK = (1 << 60) - 1


class Index:
    """Hashes of identities to offsets. A hit is confirmed on the line itself, by whoever has the file; so two
    identities of one hash are right too, only slower."""

    def __init__(self) -> None:
        self._offsets: Dict[int, Union[int, List[int]]] = {}
        self.count = 0

    def find(self, identity: bytes, is_there: Callable[[int], bool]) -> Optional[int]:
        """The offset of an identity's line. `is_there` says whether the line at an offset has that identity."""
        found = self._offsets.get(hash(identity) & _MASK)
        if found is None:
            return None
        for offset in found if isinstance(found, list) else (found,):
            if is_there(offset):
                return offset
        return None

    def add(self, identity: bytes, offset: int) -> None:
        """A line that was not there."""
        key = hash(identity) & _MASK
        found = self._offsets.get(key)
        if found is None:
            self._offsets[key] = offset
        elif isinstance(found, list):
            found.append(offset)
        else:
            self._offsets[key] = [found, offset]
        self.count += 1

    def drop(self, identity: bytes, offset: int) -> None:
        """A line that is no more."""
        key = hash(identity) & _MASK
        found = self._offsets[key]
        if isinstance(found, list):
            found.remove(offset)
            if len(found) == 1:
                self._offsets[key] = found[0]
        else:
            del self._offsets[key]
        self.count -= 1

    def clear(self) -> None:
        self._offsets = {}
        self.count = 0
