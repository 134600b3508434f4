"""The vectors of entries and blocks."""

from __future__ import annotations

from typing import Any, Dict, List

from vectorio import encode_entry, shown
from vectors_values import MATRIX_HEX, SAMPLE, Vector, bad

from larder.blocks import COMPRESSED, CONTINUED, CONTINUES, ENDS, REPACKED, Block, Commit, encode_block
from larder.codec import Writer
from larder.crc32c import crc32c
from larder.entries import ENDED_COUNTS, WRITTEN_COUNTS, frame_entry
from larder.varint import read_varint, varint

KEY_HEX = MATRIX_HEX[6:22]
TIME = 1_760_000_000_123
EPOCH = 0x9B1F00C2A4D3E5F6


def entry(name: str, seq: int, value: Dict[str, Any], first_seq: int = 7) -> Vector:
    vector: Vector = {"name": name, "first_seq": first_seq, "time": TIME, "hex": "", "value": {
        "type": value.pop("type"), "seq": seq, **value}}
    vector["hex"] = encode_entry(vector).hex()
    return vector


def entry_vectors() -> Dict[str, Any]:
    ended = {name: number for number, name in enumerate(ENDED_COUNTS, start=1)}
    written = {name: 100 * number for number, name in enumerate(WRITTEN_COUNTS)}
    saved = {"kind": 1, "origin": 2, "record": MATRIX_HEX}
    valid = [
        entry("created: the example of FORMAT.md", 7, {"type": "created", **saved, "first_seq": 7, "saved_at": TIME}),
        entry("created, 1000 behind its commit's first seq", 1007,
              {"type": "created", **saved, "first_seq": 1007, "saved_at": TIME}),
        entry("created as the largest seq", 2**64 - 1,
              {"type": "created", **saved, "first_seq": 2**64 - 1, "saved_at": TIME}, first_seq=1),
        entry("updated", 300, {"type": "updated", "flags": 0, "kind": 1, "origin": 3, "first_seq": 7,
                               "saved_at": TIME - 86_400_000, "previous_seq": 20, "changed": [4, 11],
                               "record": MATRIX_HEX}, 290),
        entry("updated, brought back", 300, {"type": "updated", "flags": 1, "kind": 1, "origin": 0, "first_seq": 7,
                                              "saved_at": TIME, "previous_seq": 0, "changed": [],
                                              "record": MATRIX_HEX}, 300),
        entry("updated, saved after the clock of its commit", 8, {
            "type": "updated", "flags": 0, "kind": 1, "origin": 1, "first_seq": 7, "saved_at": TIME + 5,
            "previous_seq": 7, "changed": [256], "record": MATRIX_HEX}),
        entry("deleted", 9, {"type": "deleted", "flags": 0, "kind": 1, "origin": 2, "first_seq": 7, "previous_seq": 8,
                             "key": KEY_HEX}),
        entry("deleted without a previous seq", 9, {"type": "deleted", "flags": 0, "kind": 1, "origin": 2,
                                                    "first_seq": 7, "previous_seq": 0, "key": KEY_HEX}),
        entry("kind", 7, {"type": "kind", "kind": SAMPLE}),
        entry("origin of a program", 7, {"type": "origin", "number": 1, "name": "tmdb-import", "token": ""}),
        entry("origin of an import", 8, {"type": "origin", "number": 300, "name": "한", "token": "2024-01"}),
        entry("import_began", 7, {"type": "import_began", "origin": 2, "source": "watched.csv"}),
        entry("import_ended", 7, {"type": "import_ended", "origin": 2, "outcome": 1, "counts": ended}),
        entry("import_ended, cancelled", 7, {"type": "import_ended", "origin": 2, "outcome": 3,
                                             "counts": dict.fromkeys(ENDED_COUNTS, 0)}),
        entry("token", 7, {"type": "token", "origin": 2, "batch": 1, "counts": written}),
        entry("recovered", 1_048_600, {"type": "recovered", "from": 24, "to": 1_048_599}, 1_048_600),
        entry("a type that is not known", 7, {"type": 200, "body": "00ff"}),
        entry("a type that is not known, without body", 7, {"type": 4, "body": ""}),
    ]
    created = valid[0]["hex"]
    assert created.startswith("2101000102" + MATRIX_HEX) and len(created) == 68

    def err(name: str, hexes: str, offset: int = 0, error: str = "corrupt", first_seq: int = 7) -> Vector:
        return bad(name, hexes, error, offset, first_seq=first_seq, time=TIME)

    def framed(name: str, kind: int, body: str, offset: int, error: str = "corrupt", seq: int = 7) -> Vector:
        return err(name, frame_entry(kind, seq, 7, bytes.fromhex(body.replace(" ", ""))).hex(), offset, error)

    def raw(inner: str, length: int, seq: int) -> str:
        data = varint(length) + bytes.fromhex(inner)
        return (data + crc32c(data, crc32c(seq.to_bytes(8, "little"))).to_bytes(4, "little")).hex()

    changed = bytes.fromhex(created)
    flipped = changed[:10] + bytes([changed[10] ^ 1]) + changed[11:]
    invalid = [
        err("nothing", ""), err("a cut length", "80"),
        err("a length that is not the shortest", "a100" + created[2:], 0, "not_canonical"),
        err("cut in its body", created[:40]), err("cut in its CRC", created[:-2]),
        err("a length one too large", "22" + created[2:]),
        err("a length one too small", "20" + created[2:]), err("a length of 5", "05" + created[2:12]),
        err("a length of 0", "00" + "00" * 8),
        err("a length above 1 MiB + 64 KiB", (varint(1_114_113) + b"\x01").hex()),
        err("a flipped bit in its record", flipped.hex()), err("a flipped bit in its CRC", created[:-2] + "%02x" % (
            changed[-1] ^ 0x80)), err("read as of another seq", created, first_seq=8),
        err("a seq difference that is not the shortest", raw("01" "8000" "0102", 9, 7), 2, "not_canonical"),
        err("a seq difference that reaches into the CRC", raw("01" "80", 6, 7), 2),
        err("a seq above 64 bits", raw("01" "01" "0102", 8, 0), 0, first_seq=2**64 - 1),
        err("a seq of 0", raw("01" "00" "0102", 8, 0), first_seq=0),
        err("a byte behind the entry", created + "00", 34),
        framed("created without an origin", 1, "01", 4),
        framed("created of the kind 0", 1, "00 02" + MATRIX_HEX, 3),
        framed("created of the kind 2^31", 1, "8080808008 02" + MATRIX_HEX, 3),
        framed("updated with an unknown flag", 2, "02 01 02 00 00 00 00" + MATRIX_HEX, 3),
        framed("updated with a first seq below 0", 2, "00 01 02 08 00 00 00" + MATRIX_HEX, 6),
        framed("updated with a first seq of 0", 2, "00 01 02 07 00 00 00" + MATRIX_HEX, 6),
        framed("updated with a saved time beyond 64 bits", 2, "00 01 02 00 fe" + "ff" * 8 + "01 00 00" + MATRIX_HEX, 7),
        framed("updated with a previous seq of 0", 2, "00 01 02 00 00 07 00" + MATRIX_HEX, 8),
        framed("updated with a previous seq below 0", 2, "00 01 02 00 00 08 00" + MATRIX_HEX, 8),
        framed("updated with changed fields whose last byte is 0", 2, "00 01 02 00 00 00 020100" + MATRIX_HEX, 9,
               "not_canonical"),
        framed("updated with changed fields of 33 bytes", 2, "00 01 02 00 00 00 21" + "01" * 33, 9),
        framed("updated with changed fields that are cut", 2, "00 01 02 00 00 00 0201", 9),
        framed("deleted with a flag", 3, "01 01 02 00 00" + KEY_HEX, 3),
        framed("deleted with a first seq of 0", 3, "00 01 02 07 00" + KEY_HEX, 6),
        framed("deleted with a previous seq of 0", 3, "00 01 02 00 07" + KEY_HEX, 7),
        framed("kind that does not parse", 16, "00 016b 01 01 01 01 0161 04 01 00", 3),
        framed("origin without token", 17, "01 0141", 6),
        framed("origin with a byte behind it", 17, "01 0141 00 00", 7),
        framed("import_began with a source that is not UTF-8", 18, "02 01ff", 4, "bad_text"),
        framed("import_ended with the outcome 0", 19, "02 00" + "00" * 8, 4),
        framed("import_ended with the outcome 4", 19, "02 04" + "00" * 8, 4),
        framed("import_ended with seven counts", 19, "02 01" + "00" * 7, 12),
        framed("token with nine counts", 20, "02 01" + "00" * 9, 13),
        framed("recovered without an end", 21, "05", 4),
    ]
    return {"about": "Entries, FORMAT.md section 8: each with its commit's first seq and time, and nothing behind it.",
            "valid": valid, "invalid": invalid}


def _created(seq: int, first_seq: int) -> bytes:
    return frame_entry(1, seq, first_seq, b"\x01\x02" + bytes.fromhex(MATRIX_HEX))


def block(name: str, made: Block, plain: bytes = b"") -> Vector:
    """`plain`: of a compressed block, what its payload unpacks to."""
    data = encode_block(made)
    trimmed = data.rstrip(b"\0")
    compressed = bool(made.flags & COMPRESSED)
    start, listed, at = 64 + 24 * len(made.commits), [], 0
    payload = plain or made.payload
    for commit in made.commits:
        for _ in range(commit.entry_count):
            length, behind = read_varint(payload, at)
            size = behind - at + length
            listed.append({"type": payload[behind], "seq": commit.first_seq + payload[behind + 1],
                           "offset": start + at, "bytes": size})
            at += size
    more = {"unpacked": listed} if compressed else {}
    return {"name": name, "epoch": made.epoch, "segment": made.segment, "at": made.offset, "hex": trimmed.hex(),
            "zeros": len(data) - len(trimmed), "value": {
                "flags": made.flags, "block_bytes": len(data), "stored_bytes": len(made.payload),
                "plain_bytes": made.plain_bytes if compressed else len(made.payload),
                "synced_segment": made.synced_segment, "synced_offset": made.synced_offset,
                "commits": [shown(commit._asdict()) for commit in made.commits],
                "entries": [] if compressed else listed}, **more}


def _zstd_frame(*parts: Any) -> bytes:
    """A zstd frame made by hand of raw blocks (bytes) and run-length blocks (a byte, a count): any zstd unpacks it."""
    size = sum(len(part) if isinstance(part, bytes) else part[1] for part in parts)
    frame = bytes.fromhex("28b52ffd a0") + size.to_bytes(4, "little")
    for at, part in enumerate(parts):
        kind, count = (0, len(part)) if isinstance(part, bytes) else (1, part[1])
        frame += (count << 3 | kind << 1 | (at == len(parts) - 1)).to_bytes(3, "little")
        frame += part if isinstance(part, bytes) else part[0]
    return frame


def _packed(*frames: bytes) -> bytes:
    sizes = b"".join(len(frame).to_bytes(4, "little") for frame in frames)
    return bytes.fromhex("502a4d18") + len(sizes).to_bytes(4, "little") + sizes + b"".join(frames)


def _simple(**changes: Any) -> Block:
    payload = _created(7, 7) + _created(9, 7)
    made = Block(EPOCH, 1, 0, [Commit(7, TIME, 2, len(payload))], payload)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def patched(made: Block, at: int, width: int, value: int, again: bool = True) -> bytes:
    """A block with one field overwritten, and its header's CRC made again."""
    data = bytearray(encode_block(made))
    data[at:at + width] = value.to_bytes(width, "little")
    if again:
        end = 64 + 24 * int.from_bytes(data[6:8], "little")
        data[60:64] = crc32c(bytes(data[64:end]), crc32c(bytes(data[:60]))).to_bytes(4, "little")
    return bytes(data)


def block_vectors() -> Dict[str, Any]:
    one, other = _created(7, 7) + _created(9, 7), _created(10, 10)
    two = _simple(commits=[Commit(7, TIME, 2, len(one)), Commit(10, TIME - 1, 1, len(other))], payload=one + other)
    first = _created(1, 1)
    filler = 4096 - 64 - 24 - 8  # type, difference and a length of two bytes, a CRC
    full = frame_entry(200, 7, 7, b"\x55" * filler)
    frame = _zstd_frame(one)
    packed = _packed(frame)
    compressed = _simple(flags=COMPRESSED, payload=packed, plain_bytes=len(one))
    # An entry of two pieces.
    long = frame_entry(200, 7, 7, b"\x55" * 65_600)
    pieces = _packed(_zstd_frame(long[:8], (b"\x55", 65_528)), _zstd_frame((b"\x55", len(long) - 65_536 - 4), long[-4:]))
    in_pieces = _simple(flags=COMPRESSED | REPACKED, payload=pieces, plain_bytes=len(long),
                        commits=[Commit(7, TIME, 1, len(long))])
    valid = [
        block("one commit", _simple()), block("two commits, the clock going back", two),
        block("first of a run", _simple(flags=CONTINUES)),
        block("middle of a run", _simple(flags=CONTINUES | CONTINUED, offset=4096)),
        block("last of a run", _simple(flags=CONTINUED, offset=8192)),
        block("later in the log, with a synced position", _simple(segment=3, offset=4096, synced_segment=2,
                                                                  synced_offset=12_288)),
        block("that names itself as the synced position", _simple(offset=4096, synced_segment=1, synced_offset=4096)),
        block("repacked, with more behind it", _simple(flags=REPACKED, offset=4096, synced_segment=1, synced_offset=4096)),
        block("the last block of a repacked segment, in a run", _simple(
            flags=CONTINUES | REPACKED | ENDS, offset=4096, synced_segment=1, synced_offset=4096)),
        block("with more padding than it needs", _simple(block_bytes=8192)),
        block("a compressed payload", compressed, one),
        block("a compressed payload of two pieces", in_pieces, long),
        block("the first seq", _simple(commits=[Commit(1, TIME, 1, len(first))], payload=first)),
    ]
    exact = block("a payload that ends at the block's end", _simple(
        commits=[Commit(7, TIME, 1, len(full))], payload=full))
    assert len(full) == 4096 - 88 and exact["zeros"] == 0
    valid.append(exact)

    def err(name: str, data: bytes, offset: int, error: str = "corrupt", epoch: int = EPOCH, segment: int = 1,
            place: int = 0) -> Vector:
        trimmed = data.rstrip(b"\0")
        return {"name": name, "epoch": epoch, "segment": segment, "at": place, "hex": trimmed.hex(),
                "zeros": len(data) - len(trimmed), "error": error, "offset": offset}

    whole = encode_block(_simple())

    def repacked(payload: bytes) -> bytes:
        return encode_block(_simple(flags=COMPRESSED, payload=payload, plain_bytes=len(one)))

    def replaced(data: bytes, at: int, with_bytes: bytes) -> bytes:
        return data[:at] + with_bytes + data[at + len(with_bytes):]

    descending = Writer().u64(7).done()
    two_bytes = bytearray(encode_block(two))
    two_bytes[64 + 24:64 + 32] = descending
    two_bytes[60:64] = crc32c(bytes(two_bytes[64:112]), crc32c(bytes(two_bytes[:60]))).to_bytes(4, "little")
    twice = _created(7, 7) + _created(7, 7)
    invalid: List[Vector] = [
        err("a cut header", whole[:63], 0), err("a cut commit table", whole[:80], 0),
        err("a cut payload", whole[:4095], 88),
        err("another magic", replaced(whole, 0, b"LRDX"), 0), err("format 2", patched(_simple(), 4, 1, 2), 4),
        err("all zeros", bytes(4096), 0),
        err("format 2 and a wrong header CRC", patched(_simple(), 4, 1, 2, again=False), 60),
        err("a wrong header CRC", replaced(whole, 60, bytes([whole[60] ^ 1])), 60),
        err("a flipped bit in the commit table", replaced(whole, 72, bytes([whole[72] ^ 1])), 60),
        err("an unknown flag", patched(_simple(), 5, 1, 32), 5),
        err("the last of a repacked segment that is not repacked", patched(_simple(), 5, 1, ENDS), 5),
        err("no commit", encode_block(_simple(commits=[], payload=b"")), 6),
        err("of another epoch", whole, 8, epoch=EPOCH + 1), err("of another segment", whole, 16, segment=2),
        err("misplaced by one block", whole, 16, place=4096),
        err("block bytes that are no multiple of 4096", patched(_simple(), 24, 4, 4097), 24),
        err("block bytes of 0", patched(_simple(), 24, 4, 0), 24),
        err("block bytes above 4 MiB", patched(_simple(), 24, 4, (4 << 20) + 4096), 24),
        err("stored bytes that do not fit the block", patched(_simple(), 28, 4, 4096), 28),
        err("plain bytes that differ without compression", patched(_simple(), 32, 4, 64), 32),
        err("compressed plain bytes that make more than 4 MiB with the header", encode_block(_simple(
            flags=COMPRESSED, payload=packed, plain_bytes=(4 << 20) - 87,
            commits=[Commit(7, TIME, 2, (4 << 20) - 87)])), 32),
        err("a compressed payload without its table", repacked(frame), 88),
        err("a table of two pieces for one", repacked(_packed(frame, frame)), 92),
        err("a table cut short", repacked(packed[:10]), 96),
        err("a frame that ends behind the payload", repacked(packed[:-1]), 96),
        err("a frame of 0 bytes", repacked(packed[:8] + bytes(4) + frame), 96),
        err("bytes behind the last frame", repacked(packed + b"\0"), 88 + len(packed)),
        err("an entry count that is not the sum", patched(_simple(), 36, 4, 3), 36),
        err("a synced offset behind its own", patched(_simple(segment=1, synced_segment=1), 44, 4, 4096), 40),
        err("a synced segment behind its own", patched(_simple(), 40, 4, 2), 40),
        err("reserved bytes that are not 0", patched(_simple(), 48, 8, 1), 48),
        err("a payload CRC without compression", patched(_simple(), 56, 4, 1), 56),
        err("a wrong payload CRC", patched(compressed, 56, 4, 1), 88),
        err("a commit that begins with seq 0", patched(_simple(), 64, 8, 0), 64),
        err("a commit without entries", patched(_simple(), 64 + 16, 4, 0), 80),
        err("commits' bytes that do not add up", patched(_simple(), 64 + 20, 4, 1), 32),
        err("commits that do not ascend", bytes(two_bytes), 88),
        err("a flipped bit in an entry", replaced(whole, 100, bytes([whole[100] ^ 1])), 88),
        err("a seq twice", encode_block(_simple(payload=twice)), 88 + len(twice) // 2),
        err("a commit with more bytes than its entries", encode_block(_simple(
            commits=[Commit(7, TIME, 1, len(one))])), 88 + len(one) // 2),
        err("a commit with more entries than its bytes", encode_block(_simple(
            commits=[Commit(7, TIME, 3, len(one))])), 88 + len(one)),
    ]
    return {"about": "Blocks, FORMAT.md section 7: `hex` and then so many `zeros`. They are read as the block of `epoch` "
                     "that lies in `segment` at `at`.",
            "valid": valid, "invalid": invalid}


def documents() -> Dict[str, Dict[str, Any]]:
    return {"entries": entry_vectors(), "blocks": block_vectors()}
