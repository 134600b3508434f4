"""Files and directories as rows: pages, lists, and lines, packed or not."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from decimal import Decimal
from typing import IO, Any, Iterable, Iterator, List, NamedTuple, NoReturn, Optional, Sequence

from .rows import Refused, parts_of

FILE_BYTES_MAX = 256 << 20
LINE_BYTES_MAX = 16 << 20
BOM = b"\xef\xbb\xbf"
ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_EXPORT = re.compile(r"(movie|tv_series|person|collection|tv_network|keyword|production_company)_ids_")
_HINTS = {"movie": "movie", "tv_series": "tv", "person": "person", "collection": "collection", "tv_network": "network",
          "keyword": "keyword", "production_company": "company"}


class Place(NamedTuple):
    """Where a row is. `line` counts from 1, 0 where the file has none; `row` is "results[2]", or empty for a line."""

    file: int
    line: int
    row: str

    @property
    def at(self) -> str:
        return " ".join(part for part in (f"line {self.line}" if self.line else "", self.row) if part)


class Row(NamedTuple):
    """A row and what its list is of, or what is wrong there instead. What is wrong with a whole file is no row."""

    place: Place
    value: Any
    hint: str = ""
    wrong: Optional[Refused] = None


def files_of(paths: Sequence[str]) -> List[str]:
    """The files that are meant: directories stand for what is in them and ends like JSON, in the order of names."""
    found: List[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        for directory, below, names in os.walk(path):
            below.sort()
            found += [os.path.join(directory, name) for name in sorted(names) if name.lower().endswith(ENDINGS)]
    return found


def digest_of(files: Iterable[str], *more: str) -> str:
    """A name for the content of the files and for `more`, the same for the same."""
    state = hashlib.sha256()
    for word in more:
        state.update(word.encode() + b"\0")
    for path in files:
        content = hashlib.sha256()
        try:
            with open(path, "rb") as source:
                for block in iter(lambda: source.read(1 << 20), b""):
                    content.update(block)
        except OSError as error:
            content.update(str(error.errno).encode())
        state.update(content.digest())
    return state.hexdigest()


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def parsed(data: bytes) -> Any:
    """JSON with exact numbers. Raises `Refused`."""
    try:
        return json.loads(data.decode("utf-8"), parse_float=Decimal, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise Refused("bad-unicode", f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise Refused("bad-json", f"not JSON: {str(error)[:200]}") from None


def rows_of(path: str, file: int) -> Iterator[Row]:
    """The rows of a file; a file that is wrong as a whole, or breaks off, gives a row that is `wrong`."""
    try:
        with open(path, "rb") as plain:
            is_packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            with gzip.GzipFile(fileobj=plain) if is_packed else plain as source:
                yield from _rows(source, file, _hint(path))
    except Refused as error:
        yield Row(Place(file, 0, ""), None, wrong=error)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Row(Place(file, 0, ""), None, wrong=Refused("damaged", f"the packed file is damaged: {error}"))
    except OSError as error:
        yield Row(Place(file, 0, ""), None, wrong=Refused("unreadable", str(error.strerror or error)))


def _hint(path: str) -> str:
    match = _EXPORT.match(os.path.basename(path))
    return _HINTS[match[1]] if match else ""


def _rows(source: IO[bytes], file: int, hint: str) -> Iterator[Row]:
    """Lines if the first one is an object of its own and there are more, or it is no page; else one object."""
    line, first = 1, source.readline(FILE_BYTES_MAX + 1)
    if first.startswith(BOM):
        first = first[len(BOM):]
    while first and not first.strip():
        line, first = line + 1, source.readline(FILE_BYTES_MAX + 1)
    if not first:
        raise Refused("empty", "the file is empty")
    if len(first) <= LINE_BYTES_MAX and _is_whole(first):
        second_line, second = line + 1, source.readline(LINE_BYTES_MAX + 1)
        while second and not second.strip():
            second_line, second = second_line + 1, source.readline(LINE_BYTES_MAX + 1)
        if second or not _is_page(first):
            yield from _lines(source, file, hint, line, first, second_line, second)
            return
        form = parsed(first)
    else:
        data = first + source.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise Refused("too-large", f"one object of more than {FILE_BYTES_MAX >> 20} MiB")
        try:
            form = parsed(data)
        except Refused:
            # Lines of which the first is broken?
            second = data.partition(b"\n")[2].lstrip().partition(b"\n")[0]
            if not _is_whole(second):
                raise
            rest = io.BytesIO(data[len(first):])
            yield from _lines(rest, file, hint, line, first, line + 1, rest.readline(LINE_BYTES_MAX + 1))
            return
    yield from _parts(form, Place(file, 0, ""), hint)


def _is_whole(line: bytes) -> bool:
    """Whether the line could be an object of its own: no page that is printed over many lines begins so. A broken one
    counts, so that it is refused alone."""
    shown = line.strip()
    return shown.startswith(b"{") and shown.endswith(b"}")


def _is_page(line: bytes) -> bool:
    """Whether the line is a page or a list rather than a row; a broken one too."""
    try:
        form = parsed(line)
    except Refused:
        return True
    return "id" not in form or "results" in form or "items" in form


def _lines(source: IO[bytes], file: int, hint: str, line: int, first: bytes, second_line: int,
           second: bytes) -> Iterator[Row]:
    yield from _line(file, hint, line, first)
    line, data = second_line, second
    while data:
        if len(data) > LINE_BYTES_MAX:
            yield Row(Place(file, line, ""), None, wrong=Refused("too-large", f"more than {LINE_BYTES_MAX >> 20} MiB"))
            while data and not data.endswith(b"\n"):
                data = source.readline(LINE_BYTES_MAX)
        elif data.strip():
            yield from _line(file, hint, line, data)
        line, data = line + 1, source.readline(LINE_BYTES_MAX + 1)


def _line(file: int, hint: str, line: int, data: bytes) -> Iterator[Row]:
    place = Place(file, line, "")
    try:
        form = parsed(data.strip(b"\r\n\t "))
        if isinstance(form, dict) and (isinstance(form.get("results"), list) or "movie_results" in form):
            yield from _parts(form, place, hint)
        else:
            yield Row(place, form, hint)
    except Refused as error:
        yield Row(place, None, wrong=error)


def _parts(form: Any, place: Place, hint: str) -> Iterator[Row]:
    if isinstance(form, list):
        lists = [("", form, "")]
    elif isinstance(form, dict):
        lists = parts_of(form)
    else:
        raise Refused("no-results-array", "there is no list of results in it")
    for name, rows, own in lists:
        for index, row in enumerate(rows):
            at = f"{name}[{index}]" if name or isinstance(form, list) else ""
            yield Row(place._replace(row=at), row, own or hint)
