"""What an import tells: JSON lines for `larder import`, sentences for a person."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from typing import IO, Any, Counter as Counts, Dict, List, Optional

COUNTS = ("created", "updated", "unchanged", "duplicate", "already_saved", "skipped", "refused")
PROGRESS_SECONDS = 0.5
SHOWN_MAX = 20


class Report:
    """Tells what happens to the rows of an import. `files` are their names."""

    def __init__(self, files: List[str], is_json: bool, out: Optional[IO[str]] = None,
                 errors: Optional[IO[str]] = None) -> None:
        self._files = files
        self._is_json = is_json
        self._out = out or sys.stdout
        self._errors = errors or sys.stderr
        self._told = time.monotonic()
        self._shown = 0
        self._skipped: Counts[str] = Counter()
        self._warnings: Counts[str] = Counter()

    def _line(self, name: str, value: Dict[str, Any]) -> None:
        self._out.write(json.dumps({name: value}, ensure_ascii=False, separators=(",", ":")) + "\n")
        if name in ("done", "progress"):
            self._out.flush()

    def _where(self, file: int, at: str) -> str:
        return f"{os.path.basename(self._files[file])}{': ' + at if at else ''}"

    def progress(self, read: int) -> None:
        """So many rows were read; told now and then."""
        now = time.monotonic()
        if now - self._told < PROGRESS_SECONDS:
            return
        self._told = now
        if self._is_json:
            self._line("progress", {"read": read})
        elif self._errors.isatty():
            self._errors.write(f"\r{read:,} rows ")
            self._errors.flush()

    def refused(self, file: int, at: str, line: int, reason: str, message: str, field: str = "") -> None:
        """A row, or with no `at` a file, was refused."""
        if self._is_json:
            value: Dict[str, Any] = {"file": self._files[file], "at": at}
            if line:
                value["line"] = line
            if field:
                value["field"] = field
            self._line("refused", {**value, "reason": reason, "message": message})
        elif self._shown < SHOWN_MAX:
            self._out.write(f"refused  {self._where(file, at)}: {reason}: {message}\n")
            self._shown += 1
        elif self._shown == SHOWN_MAX:
            self._out.write("refused  … and more\n")
            self._shown += 1

    def skipped(self, file: int, at: str, reason: str) -> None:
        """A row is no title."""
        self._skipped[reason] += 1
        if self._is_json:
            self._line("skipped", {"file": self._files[file], "at": at, "reason": reason})

    def warning(self, file: int, at: str, field: str, reason: str) -> None:
        """A row was taken without a part of it."""
        self._warnings[f"{field}: {reason}"] += 1
        if self._is_json:
            self._line("warning", {"file": self._files[file], "at": at, "field": field, "reason": reason})

    def note(self, text: str) -> None:
        """Something for a person, on standard error."""
        self._errors.write(f"tmdb-import: {text}\n")
        self._errors.flush()

    def done(self, counts: Dict[str, int], is_dry: bool = False) -> None:
        """The accounting: `read` and what became of every row."""
        if self._is_json:
            self._line("done", counts)
            return
        for text, count in self._warnings.most_common(SHOWN_MAX):
            self._out.write(f"warning  {text}{f' ({count:,} times)' if count > 1 else ''}\n")
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self._skipped.most_common())
        parts = [f"{counts[name]:,} {name.replace('_', ' ')}{f' ({reasons})' if name == 'skipped' and reasons else ''}"
                 for name in COUNTS if counts[name]]
        would = " (dry run: nothing was changed)" if is_dry else ""
        self._out.write(f"read {counts['read']:,}: {', '.join(parts) or 'no rows'}{would}\n")
        self._out.flush()
