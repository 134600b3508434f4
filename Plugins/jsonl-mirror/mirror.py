#!/usr/bin/env python3
"""jsonl-mirror: a file of JSON lines that equals a Larder library as of the cursor stored beside it.

Without a command it is the plugin. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from typing import Any, Dict, Iterable, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import larder  # noqa: F401
except ImportError:
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "sdk", "python"))

from larder import ConnectionLost, LarderError, Plugin  # noqa: E402

from jsonl_mirror.follow import Mirror, Refused  # noqa: E402
from jsonl_mirror.lines import head_of  # noqa: E402
from jsonl_mirror.scan import Damaged, published  # noqa: E402
from jsonl_mirror.state import State  # noqa: E402
from jsonl_mirror.store import Store  # noqa: E402

VERSION = "1.0"
BACK_OFF_SECONDS = 60.0


def log(text: str) -> None:
    """A line on stderr, which the host keeps."""
    print(f"jsonl-mirror: {text}", file=sys.stderr, flush=True)


def path_of(setting: Optional[str]) -> str:
    """Where the file is: a relative setting is one inside the plugin's data directory."""
    directory = os.environ.get("LARDER_PLUGIN_DATA", "")
    return os.path.join(directory, os.path.expanduser(setting or "library.jsonl"))


def run(path: Optional[str]) -> int:
    """The plugin, until SIGTERM. A host that started it starts it again; else it connects again by itself."""
    is_child = "LARDER_FD" in os.environ or "LARDER_TOKEN" in os.environ
    mirror: Optional[Mirror] = None
    wait = 1.0
    while True:
        try:
            with Plugin("jsonl-mirror", VERSION, roles=["exporter"]) as plugin:
                if mirror is None:
                    mirror = Mirror(path_of(path or plugin.settings.get("path")), log)
                wait = 1.0
                mirror.follow(plugin)
                if is_child or plugin.client.stopping:
                    return 0
                log("the host said goodbye")
        except (Refused, LarderError) as error:
            log(str(error))
            return 1
        except (ConnectionLost, OSError) as error:
            if is_child or (isinstance(error, OSError) and not isinstance(error, (ConnectionError, FileNotFoundError))):
                log(f"ended: {error}")
                return 1
            log(f"no host ({error}), trying again in {wait:.0f} s")
        time.sleep(wait)
        wait = min(wait * 2, BACK_OFF_SECONDS)


def check(path: str) -> int:
    """Whether every line is one of the mirror's, each key is there once, and the counts are right."""
    mirror = published(path)
    if mirror is None:
        print(f"{path}: no mirror", file=sys.stderr)
        return 1
    seen = set()
    count = last = 0
    is_ordered = True
    for line in mirror.lines():
        head = head_of(line)
        json.loads(line)
        if head is None or hash(head.identity) in seen:
            print(f"{path}: {line[:200]!r} is " + ("none of the mirror's" if head is None else "there twice"))
            return 1
        seen.add(hash(head.identity))
        is_ordered, last, count = is_ordered and head.saved_seq >= last, head.saved_seq, count + 1
    state = mirror.state
    mirror.close()
    if count != state.records or (state.is_ordered and not is_ordered):
        print(f"{path}: {count} records, {state.records} are expected")
        return 1
    print(f"{path}: {count:,} records as of {state.cursor}, {state.size:,} bytes of which {state.dead:,} are spaces, "
          + ("in saved order" if is_ordered else "not in saved order"))
    return 0


def export(path: str) -> int:
    """The lines in saved order on standard output."""
    mirror = published(path)
    if mirror is None:
        print(f"{path}: no mirror", file=sys.stderr)
        return 1
    for line in mirror.sorted_lines():
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    return 0


def by_key(lines: Iterable[bytes]) -> Dict[str, bytes]:
    """Lines by key. Raises ValueError for a key that is there twice."""
    found: Dict[str, bytes] = {}
    for line in lines:
        if line.strip():
            key = json.loads(line)["key"]
            if key in found:
                raise ValueError(f"{key} is there twice")
            found[key] = line.strip()
    return found


def differences(mirrored: Dict[str, bytes], listed: Dict[str, bytes]) -> List[str]:
    """What a person would want to know, a line each; lines with the same values in other bytes are the same."""
    def form(line: bytes) -> Any:
        return json.loads(line, parse_float=str)

    out = [f"only in the library: {key}" for key in listed.keys() - mirrored.keys()]
    out += [f"only in the mirror: {key}" for key in mirrored.keys() - listed.keys()]
    out += [f"not the same: {key}\n  mirror  {mirrored[key].decode()}\n  library {listed[key].decode()}"
            for key in mirrored.keys() & listed.keys()
            if mirrored[key] != listed[key] and form(mirrored[key]) != form(listed[key])]
    return sorted(out)


def verify(path: str, against: str) -> int:
    """Compares with `larder list --json`."""
    mirror = published(path)
    if mirror is None:
        print(f"{path}: no mirror", file=sys.stderr)
        return 1
    with (sys.stdin.buffer if against == "-" else open(against, "rb")) as source:
        listed = by_key(source)
    mirrored = by_key(mirror.lines())
    found = differences(mirrored, listed)
    for text in found[:20]:
        print(text)
    print(f"{len(mirrored):,} records as of {mirror.state.cursor}, {len(listed):,} in the library: "
          + (f"{len(found):,} differences" if found else "the same"))
    return 1 if found else 0


def repair(path: str) -> int:
    """What the plugin does at its start: after a crash, brings the file to what its cursor says."""
    store = Store(path, log)
    if not store.open():
        return 1
    assert isinstance(store.state, State)
    print(f"{path}: {store.records:,} records as of {store.state.cursor}")
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="mirror.py", description="Keeps a file of JSON lines that equals a library.")
    commands = parser.add_subparsers(dest="command")
    starts = commands.add_parser("run", help="be the plugin (what no command means)")
    starts.add_argument("--path", help="the file, instead of the setting")
    for name, about in (("check", "look whether the file is whole"), ("export", "print it in saved order"),
                        ("cursor", "print its cursor"), ("repair", "finish what a crash left undone"),
                        ("verify", "compare it with what `larder list --json` printed")):
        command = commands.add_parser(name, help=about)
        command.add_argument("path", nargs="?", default=path_of(None))
        if name == "verify":
            command.add_argument("--against", required=True, metavar="FILE", help="- is standard input")
    options = parser.parse_args(arguments)
    if options.command in (None, "run"):
        return run(getattr(options, "path", None))
    if options.command != "run":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        if options.command == "verify":
            return verify(options.path, options.against)
        if options.command == "cursor":
            mirror = published(options.path)
            print(mirror.state.cursor if mirror else "")
            return 0 if mirror else 1
        return {"check": check, "export": export, "repair": repair}[options.command](options.path)
    except (Damaged, ValueError, OSError) as error:
        print(f"{options.path}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
