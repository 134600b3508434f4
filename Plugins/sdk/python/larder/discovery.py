"""Where the library's socket is, and how a program finds the connection that a host gave it."""

from __future__ import annotations

import hashlib
import os
import socket
from typing import Mapping, Optional, Union

PathLike = Union[str, "os.PathLike[str]"]


def library_path(environ: Optional[Mapping[str, str]] = None) -> str:
    """The library's directory: `LARDER_LIBRARY`, else `larder` in `XDG_DATA_HOME`, else in `~/.local/share`."""
    env = os.environ if environ is None else environ
    if env.get("LARDER_LIBRARY"):
        return env["LARDER_LIBRARY"]
    data = env.get("XDG_DATA_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "larder")


def socket_path(library: Optional[PathLike] = None, environ: Optional[Mapping[str, str]] = None) -> str:
    """The socket of a library: `LARDER_SOCKET` unless a library is named, else derived from the library's real path.

    It is `<h>.sock` in `$XDG_RUNTIME_DIR/larder`, or in `/tmp/larder-<uid>`, where h is the first 16 hexadecimal digits
    of the SHA-256 of the path.
    """
    env = os.environ if environ is None else environ
    if library is None and env.get("LARDER_SOCKET"):
        return env["LARDER_SOCKET"]
    real = os.path.realpath(os.fspath(library) if library is not None else library_path(env))
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16] + ".sock"
    runtime = env.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "larder", name) if runtime else f"/tmp/larder-{os.getuid()}/{name}"


def inherited_socket() -> Optional[socket.socket]:
    """The connected socket whose descriptor is in `LARDER_FD`, or None. Taken once: the variable is removed, and the
    descriptor is closed in programs that this one starts."""
    number = os.environ.pop("LARDER_FD", "")
    if not number:
        return None
    sock = socket.socket(fileno=int(number))
    sock.set_inheritable(False)
    return sock


def hello_token() -> bytes:
    """The bytes of `LARDER_TOKEN`, good for one HELLO, else empty. Taken once."""
    return os.fsencode(os.environ.pop("LARDER_TOKEN", ""))
