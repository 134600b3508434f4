"""A scripted host on one end of a socket pair: it compares what it gets, byte for byte, and answers what it is told."""

import socket
import threading

from larder.entries import ENDED_COUNTS, WRITTEN_COUNTS, frame_entry
from larder.frames import PREFACE, encode_frame
from larder.kinds import Kind
from larder.messages import BY_NAME

from .test_vectors import load

FORMS = {form["kind"]: form for form in load("records")["kinds"]}
TITLE = Kind.from_json(FORMS["title"])
EPOCH = 0x9B1F00C2A4D3E5F6
WELCOME = {"version": 1, "host": "larder", "host_version": "0.1.0", "capabilities": [], "epoch": EPOCH, "last_seq": 9,
           "floor": 1, "record_limit": 1 << 20, "batch_limit": 4 << 20, "frame_limit": 4 << 20,
           "open_requests_limit": 64, "credit_limit": 16 << 20}


def frame(name, request_id, fields=None, body=None):
    message = BY_NAME[name]
    return encode_frame(message.number, request_id, message.encode(fields) if body is None else body)


def greeting(name="test"):
    hello = {"version_min": 1, "version_max": 1, "name": name, "version": "0", "deadline": 0, "token": b""}
    return [("expect", PREFACE + frame("HELLO", 1, hello)), ("send", frame("WELCOME", 1, WELCOME))]


def kinds(request_id):
    return [("expect", frame("KINDS", request_id)), ("send", frame("KIND_LIST", request_id, {"kinds": [TITLE]}))]


def written(request_id, seq=10, refusals=(), results=None, **counts):
    fields = {"flags": int(results is not None), "seq": seq, "refusals": list(refusals),
              **dict.fromkeys(WRITTEN_COUNTS, 0), **counts}
    if results is not None:
        fields["results"] = results
    return ("send", frame("WRITTEN", request_id, fields))


def created(seq, first_seq, record):
    return frame_entry(1, seq, first_seq, b"\x01\x02" + record)


def run(first_seq, time, entries):
    return (first_seq.to_bytes(8, "little") + time.to_bytes(8, "little", signed=True)
            + len(entries).to_bytes(4, "little") + entries)


def events(request_id, after, through, *runs):
    return frame("EVENTS", request_id, {"after": after, "through": through, "runs": b"".join(runs)})


def ended(**counts):
    return {**dict.fromkeys(ENDED_COUNTS, 0), **counts}


GOODBYE = frame("GOODBYE", 0, {})


class Peer:
    """Plays a script of ("expect", bytes), ("send", bytes), ("trickle", bytes: one by one), ("outwait", None: until
    the client has closed) and ("close", None)."""

    def __init__(self, script):
        self.failure = None
        self.client_end, self._socket = socket.socketpair()
        self._script = script
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _play(self):
        try:
            self._socket.settimeout(10)
            for action, data in self._script:
                if action == "send":
                    self._socket.sendall(data)
                elif action == "trickle":
                    for byte in data:
                        self._socket.sendall(bytes([byte]))
                elif action == "outwait":
                    while self._socket.recv(4096):
                        pass
                elif action == "expect":
                    found = b""
                    while len(found) < len(data):
                        chunk = self._socket.recv(len(data) - len(found))
                        if not chunk:
                            break
                        found += chunk
                    if found != data:
                        raise AssertionError(f"the client sent\n  {found.hex()}, not\n  {data.hex()}")
                else:
                    break
        except Exception as error:
            self.failure = error
        finally:
            self._socket.close()

    def finish(self):
        self._thread.join(10)
        if self.failure:
            raise self.failure
        if self._thread.is_alive():
            raise AssertionError("the script did not end")
