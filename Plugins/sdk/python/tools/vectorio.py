"""What the makers and the tests of the shared vectors have in common: how each file's bytes are read and shown in JSON.

`Protocol/vectors/README.md` describes the forms. `decode(file, vector)` gives a vector's JSON value or raises
`DecodeError`; `encode(file, vector)` gives its bytes from the value.
"""

from __future__ import annotations

import math
import pathlib
import sys
from typing import Any, Callable, Dict, Mapping, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from larder import blocks, entries, frames, keys, messages, records, values  # noqa: E402
from larder.codec import Reader, Writer  # noqa: E402
from larder.decimals import exact, number_text  # noqa: E402
from larder.errors import DecodeError  # noqa: E402
from larder.kinds import Kind  # noqa: E402

PROTOCOL = ROOT.parents[2] / "Protocol"
VECTORS = PROTOCOL / "vectors"


def octets(vector: Mapping[str, Any]) -> bytes:
    """A vector's bytes."""
    return bytes.fromhex(vector["hex"]) + bytes(vector.get("zeros", 0))


def number_form(mantissa: int, exponent: int) -> Dict[str, Any]:
    """A number in a vector; `json` is null where no double comes near it."""
    text = number_text(mantissa, exponent)
    form: Any = int(text) if text.lstrip("-").isdigit() else float(text)
    if isinstance(form, float) and (math.isinf(form) or form == 0):
        form = None
    return {"mantissa": mantissa, "exponent": exponent, "json": form}


def shown(value: Any) -> Any:
    """Fields of an entry or a message: bytes in hexadecimal, kinds in their JSON form."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Kind):
        return value.to_json()
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, (list, tuple)) else value


def decode_primitive(vector: Mapping[str, Any], data: bytes) -> Any:
    reader = Reader(data)
    value = getattr(reader, vector["type"])()
    reader.finish("trailing")
    return shown(value)


def encode_primitive(vector: Mapping[str, Any]) -> bytes:
    value = vector["value"]
    return getattr(Writer(), vector["type"])(bytes.fromhex(value) if vector["type"] == "bytes" else value).done()


def _choices(vector: Mapping[str, Any]) -> Dict[int, str]:
    return {int(number): name for number, name in vector["values"].items()}


def decode_value(vector: Mapping[str, Any], data: bytes) -> Any:
    number = values.TYPE_NUMBERS[vector["type"]]
    if number == values.NUMBER:
        mantissa, exponent, end = values.read_number_parts(data, 0)
        value: Any = number_form(mantissa, exponent)
    else:
        read = values.choice_reader(_choices(vector)) if number == values.CHOICE else values.READERS[number]
        value, end = read(data, 0)
        value = values.to_json(number, value)
    if end != len(data):
        raise DecodeError("trailing", end, "bytes are left over")
    return value


def encode_value(vector: Mapping[str, Any]) -> bytes:
    number, value = values.TYPE_NUMBERS[vector["type"]], vector["value"]
    out = bytearray()
    if number == values.NUMBER:
        values.put_number(out, exact(value["mantissa"], value["exponent"]))
    elif number == values.CHOICE:
        values.choice_writer(_choices(vector))(out, value)
    else:
        values.WRITERS[number](out, values.from_json(number, value))
    return bytes(out)


def decode_record(kind: Kind, vector: Mapping[str, Any], data: bytes) -> Any:
    return records.record_to_json(kind, records.decode_record(kind, data, relax=vector.get("relax", "")))


def encode_record(kind: Kind, vector: Mapping[str, Any]) -> bytes:
    form = records.record_from_json(kind, vector["value"])
    return records.encode_record(kind, form, relax=vector.get("relax", ""))


def decode_entry(vector: Mapping[str, Any], data: bytes) -> Any:
    return shown(entries.decode_entry(data, vector["first_seq"], vector["time"]))


def encode_entry(vector: Mapping[str, Any]) -> bytes:
    value = dict(vector["value"])
    for name in ("record", "key", "body"):
        if name in value:
            value[name] = bytes.fromhex(value[name])
    if value["type"] == "kind":
        value["kind"] = Kind.from_json(value["kind"])
    return entries.encode_entry(value, vector["first_seq"], vector["time"])


def decode_block(vector: Mapping[str, Any], data: bytes) -> Any:
    block = blocks.decode_block(data, vector["epoch"], vector["segment"], vector["at"])
    return {"flags": block.flags, "block_bytes": block.block_bytes, "stored_bytes": len(block.payload),
            "plain_bytes": block.plain_bytes, "synced_segment": block.synced_segment,
            "synced_offset": block.synced_offset, "commits": [commit._asdict() for commit in block.commits],
            "entries": [{"type": entry.type, "seq": entry.seq, "offset": entry.start, "bytes": entry.end - entry.start}
                        for entry in block.entries]}


def encode_block(vector: Mapping[str, Any]) -> bytes:
    value = vector["value"]
    start = blocks.HEADER_BYTES + blocks.COMMIT_BYTES * len(value["commits"])
    return blocks.encode_block(blocks.Block(
        vector["epoch"], vector["segment"], vector["at"], [blocks.Commit(**row) for row in value["commits"]],
        octets(vector)[start:start + value["stored_bytes"]], value["flags"], value["synced_segment"],
        value["synced_offset"], value["plain_bytes"], value["block_bytes"]))


def decode_frames(vector: Mapping[str, Any], data: bytes) -> Any:
    if vector["type"] == "preface":
        if data != frames.PREFACE:
            raise DecodeError("bad_preface", 0, "not the preface")
        return "LARDER 1"
    decoder = frames.FrameDecoder(vector["limit"])
    found = []
    for frame in decoder.feed(data):
        messages.check_request_id(frame.type, frame.id)
        found.append({"type": frame.type, "id": frame.id, "body": frame.body.hex()})
    if decoder.buffered:
        raise DecodeError("truncated", len(data) - decoder.buffered, "more is needed")
    return found


def encode_frames(vector: Mapping[str, Any]) -> bytes:
    if vector["type"] == "preface":
        return frames.PREFACE
    return b"".join(frames.encode_frame(frame["type"], frame["id"], bytes.fromhex(frame["body"]))
                    for frame in vector["value"])


def decode_message(vector: Mapping[str, Any], data: bytes) -> Any:
    message = messages.BY_NUMBER[vector["type"]]
    value = shown(message.decode(data))
    if "runs" in value:
        body = bytes.fromhex(value["runs"])
        value["runs"] = [{"first_seq": run.first_seq, "time": run.time, "entries": body[run.start:run.end].hex()}
                         for run in entries.read_runs(body, 0)]
    return value


_BYTES = {("HELLO", "token"), ("GET", "key"), ("LIST", "token"), ("PAGE", "token"), ("PING", "bytes"),
          ("PONG", "bytes"), ("FIND", "value"), ("SEARCH", "token"), ("MATCHES", "token"), ("HISTORY", "key")}
#: In which fields of a message's lists there are bytes.
_BYTES_IN = {"WRITE": ("operations", "body", "old_key"), "WRITTEN": ("results", "key"), "PAGE": ("records", "record"),
             "COMPACT": ("purged", "key"),
             "FOUND": ("records", "record"), "COUNTED": ("groups", "value")}


def _with_bytes(item: Mapping[str, Any], *fields: str) -> Dict[str, Any]:
    return {name: bytes.fromhex(value) if name in fields else value for name, value in item.items()}


def encode_message(vector: Mapping[str, Any]) -> bytes:
    name, value = vector["message"], dict(vector["value"])
    for field in list(value):
        if (name, field) in _BYTES:
            value[field] = bytes.fromhex(value[field])
    group, *fields = _BYTES_IN.get(name, ("",))
    if group in value:
        value[group] = [_with_bytes(item, *fields) for item in value[group]]
    if name == "MATCHES":
        value["matches"] = [{**item, "record": _with_bytes(item["record"], "record")} for item in value["matches"]]
    if name == "RECORD":
        value["record"] = _with_bytes(value["record"], "record")
    if name == "DEFINE":
        value["declaration"] = Kind.from_json(value["declaration"])
    if name == "KIND_LIST":
        value["kinds"] = [Kind.from_json(form) for form in value["kinds"]]
    if "runs" in value:
        out = Writer()
        for run in value["runs"]:
            body = bytes.fromhex(run["entries"])
            out.u64(run["first_seq"]).i64(run["time"]).u32(len(body)).raw(body)
        value["runs"] = out.done()
    return messages.BY_NUMBER[vector["type"]].encode(value)


Kinds = Mapping[str, Kind]
CODECS: Dict[str, Tuple[Callable[[Kinds, Mapping[str, Any], bytes], Any],
                        Callable[[Kinds, Mapping[str, Any]], bytes]]] = {
    "primitives": (lambda _, v, data: decode_primitive(v, data), lambda _, v: encode_primitive(v)),
    "values": (lambda _, v, data: decode_value(v, data), lambda _, v: encode_value(v)),
    "kinds": (lambda _, v, data: Kind.decode(data).to_json(), lambda _, v: Kind.from_json(v["value"]).encode()),
    "records": (lambda kinds, v, data: decode_record(kinds[v["kind"]], v, data),
                lambda kinds, v: encode_record(kinds[v["kind"]], v)),
    "keys": (lambda kinds, v, data: keys.key_text(kinds[v["kind"]], _checked_key(kinds[v["kind"]], data)),
             lambda kinds, v: keys.parse_key_text(v["value"], lambda name: kinds[name])[1]),
    "entries": (lambda _, v, data: decode_entry(v, data), lambda _, v: encode_entry(v)),
    "blocks": (lambda _, v, data: decode_block(v, data), lambda _, v: encode_block(v)),
    "frames": (lambda _, v, data: decode_frames(v, data), lambda _, v: encode_frames(v)),
    "messages": (lambda _, v, data: decode_message(v, data), lambda _, v: encode_message(v)),
}


def _checked_key(kind: Kind, data: bytes) -> bytes:
    keys.decode_key(kind, data)
    return data


def kinds_of(document: Mapping[str, Any]) -> Kinds:
    """The kinds that a file declares for its vectors."""
    return {form["kind"]: Kind.from_json(form) for form in document.get("kinds", ())}
