#!/usr/bin/env python3
"""tmdb-import: pages, lists and daily id exports of The Movie Database into a Larder library. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import larder  # noqa: F401
except ImportError:
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "sdk", "python"))

from larder import LarderError  # noqa: E402
from larder.batches import MODES  # noqa: E402

from tmdb.fields import Dropped, boolean, date, integer, number  # noqa: E402
from tmdb.report import Report  # noqa: E402
from tmdb.rows import Choices  # noqa: E402
from tmdb.run import Options, Run  # noqa: E402
from tmdb.sources import files_of  # noqa: E402
from tmdb.watch import watch  # noqa: E402

_PRESETS = {"release_date": date, "vote_count": integer, "runtime": integer, "revenue": integer, "budget": integer,
            "vote_average": number, "popularity": number, "adult": boolean,
            "genres": lambda value: [word.strip() for word in value.split(",")]}
_PLAIN = ("imdb_id", "language", "country", "director", "file", "quality", "download_id", "status", "tagline", "homepage",
          "overview", "poster_path", "backdrop_path")


class Misused(Exception):
    """The command line, or the options in the environment, are wrong."""


def parsed_arguments(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tmdb_import.py", description="Imports files of The Movie Database into a Larder library.",
        epilog="example: tmdb_import.py import --media-type movie movie_ids_05_15_2024.json.gz pages/")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("import", help="import files and directories")
    command.add_argument("--json", action="store_true", help="tell what happens in JSON lines")
    command.add_argument("--mode", choices=sorted(MODES), help="merge unless said")
    command.add_argument("--media-type", choices=("movie", "tv"), help="of rows that do not say theirs")
    command.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="for rows that lack the field")
    command.add_argument("--dry-run", action="store_true", help="say what would become of the rows, change nothing")
    command.add_argument("--socket", help="the host's socket")
    command.add_argument("files", nargs="+", metavar="FILE")
    return parser.parse_args(arguments)


def options_of(said: argparse.Namespace, environment: str) -> Options:
    """The options of the command line and of LARDER_IMPORT_OPTIONS; the command line's count first.

    Raises `Misused`.
    """
    try:
        given: Dict[str, Any] = json.loads(environment or "{}")
        preset = dict(given.get("set") or {})
    except (ValueError, AttributeError, TypeError) as error:
        raise Misused(f"LARDER_IMPORT_OPTIONS: {error}") from None
    for pair in said.set:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise Misused(f"--set takes FIELD=VALUE, not {pair!r}")
        preset[name] = value
    choices = Choices(said.media_type or preset.pop("media_type", ""), str(preset.pop("source", "tmdb")))
    preset.pop("media_type", None)
    if choices.media_type not in ("", "movie", "tv"):
        raise Misused(f"media_type is movie or tv, not {choices.media_type!r}")
    if not choices.source.strip():
        raise Misused("source must not be blank")
    for name, value in preset.items():
        try:
            if name in _PRESETS:
                choices.preset[name] = _PRESETS[name](str(value))
            elif name in _PLAIN:
                choices.preset[name] = str(value)
            else:
                raise Misused(f"{name} is not a field that can be set for all rows")
        except Dropped as error:
            raise Misused(f"{name}: {error}") from None
    mode = said.mode or given.get("mode") or "merge"
    if mode not in MODES:
        raise Misused(f"the mode is one of {', '.join(MODES)}, not {mode!r}")
    return Options(mode, said.dry_run or given.get("dry_run") is True, choices)


def import_one(path: str) -> bool:
    """Imports a file of the watched folder; false if the host was lost on the way."""
    files = files_of([path])
    report = Report(files, False, sys.stderr, sys.stderr)
    run = Run(files, Options(source=os.path.basename(path)), report)
    try:
        run.run()
    except (LarderError, OSError) as error:
        report.note(f"failed: {error}")
        return False
    report.done(run.counts)
    return True


def main(arguments: Optional[List[str]] = None) -> int:
    """0 if every row was taken or skipped, 1 if one was refused or the import failed, 2 for a wrong command line."""
    if not (sys.argv[1:] if arguments is None else arguments) and "LARDER_PLUGIN_NAME" in os.environ:
        return watch(import_one)
    said = parsed_arguments(arguments)
    environment = os.environ.get("LARDER_IMPORT_OPTIONS", "")
    try:
        options = options_of(said, environment)
    except Misused as error:
        print(f"tmdb-import: {error}", file=sys.stderr)
        return 2
    if said.socket:
        os.environ["LARDER_SOCKET"] = said.socket
    files = files_of(said.files)
    names = ", ".join(os.path.basename(path.rstrip("/")) or path for path in said.files)
    options.source = names if len(names) <= 200 else f"{len(files)} files"
    report = Report(files, said.json or bool(environment))
    run = Run(files, options, report)
    code = 0
    try:
        run.run()
    except KeyboardInterrupt:
        report.note("cancelled")
        code = 130
    except (LarderError, OSError) as error:
        report.note(f"failed: {error}")
        code = 1
    counts = run.counts
    if code != 1 or counts["read"]:
        report.done(counts, options.is_dry)
    return code or int(bool(counts["refused"]))


if __name__ == "__main__":
    sys.exit(main())
