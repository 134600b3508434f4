"""A folder that is watched: what is put into it is imported once. How the plugin works when a host starts it."""

from __future__ import annotations

import json
import os
import threading
from typing import Callable, Dict, List, Tuple

from larder import LarderError, Plugin

Stamp = Tuple[int, int]
_ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


class Folder:
    """The files of a folder, and which of them were imported; that is kept in a file beside the plugin's data.

    A file counts as new again when its size or time changes. Names that begin with a dot, or end otherwise than an
    export does, are left alone, so a file can be written under another name and renamed.
    """

    def __init__(self, path: str, memory: str) -> None:
        self._path = path
        self._memory = memory
        self._done: Dict[str, List[int]] = {}
        self._last: Dict[str, Stamp] = {}
        try:
            with open(memory, encoding="utf-8") as file:
                self._done = json.load(file)
        except (OSError, ValueError):
            pass

    def settled(self) -> List[str]:
        """Paths of files that are new and did not change since the call before, in the order of their names."""
        now: Dict[str, Stamp] = {}
        try:
            names = sorted(os.listdir(self._path))
        except OSError:
            names = []
        for name in names:
            if name.startswith(".") or not name.endswith(_ENDINGS):
                continue
            try:
                status = os.stat(os.path.join(self._path, name))
            except OSError:
                continue
            now[name] = (status.st_size, status.st_mtime_ns)
        ready = [name for name, stamp in now.items()
                 if self._last.get(name) == stamp and self._done.get(name) != list(stamp)]
        self._last = now
        return [os.path.join(self._path, name) for name in ready]

    def imported(self, path: str) -> None:
        """Remembers a file as it was when `settled` gave it."""
        name = os.path.basename(path)
        self._done[name] = list(self._last[name])
        self._done = {known: stamp for known, stamp in self._done.items() if known in self._last}
        temporary = self._memory + ".tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self._done, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._memory)


def watch(run_import: Callable[[str], bool], seconds: float = 0.5) -> int:
    """Serves as the host's plugin until SIGTERM or GOODBYE. `run_import` imports a file; false: it failed, ask again.

    Without the setting `watch` there is nothing to do, and the plugin is finished.
    """
    with Plugin("tmdb-import", "1.0", roles=("importer",), events=(), kinds=("title",)) as plugin:
        # The token was good for this connection; imports make connections of their own.
        os.environ.pop("LARDER_TOKEN", None)
        path = plugin.settings.get("watch")
        if not path:
            plugin.log("no folder is watched: larder plugin set tmdb-import watch=DIR names one")
            return 0
        folder = Folder(str(path), os.path.join(os.environ.get("LARDER_PLUGIN_DATA", "."), "imported.json"))
        plugin.log(f"watching {path}")
        ended = threading.Event()

        def listen() -> None:
            # Declarations of kinds are rare; what is waited for is the end.
            try:
                for _ in plugin.follow(types=("kind",), kinds=()):
                    pass
            except (LarderError, OSError):
                pass
            ended.set()

        threading.Thread(target=listen, daemon=True).start()
        while not ended.wait(seconds):
            for file in folder.settled():
                if ended.is_set():
                    break
                plugin.log(f"importing {os.path.basename(file)}")
                if run_import(file):
                    folder.imported(file)
    return 0
