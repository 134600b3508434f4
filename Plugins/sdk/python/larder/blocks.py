"""Blocks of the log (FORMAT.md section 7): reading and writing one block's bytes. No client needs this; a reader of a
library's files and the shared vectors do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, NamedTuple, Tuple

from .codec import Reader, Writer
from .crc32c import crc32c
from .entries import Frame, read_frame
from .errors import DecodeError

MAGIC = b"LRDB"
# Of a skippable zstd frame.
SKIPPABLE = (0x184D2A50).to_bytes(4, "little")
ALIGNMENT, BLOCK_BYTES_MAX, PIECE_BYTES = 4096, 4 << 20, 64 << 10
CONTINUES, CONTINUED, COMPRESSED, REPACKED, ENDS = 1, 2, 4, 8, 16
HEADER_BYTES, COMMIT_BYTES = 64, 24


class Commit(NamedTuple):
    """One row of the commit table."""

    first_seq: int
    time: int
    entry_count: int
    plain_bytes: int


@dataclass
class Block:
    """A block's header, commit table and stored payload."""

    epoch: int
    segment: int
    offset: int
    commits: List[Commit]
    payload: bytes
    flags: int = 0
    synced_segment: int = 0
    synced_offset: int = 0
    plain_bytes: int = 0
    block_bytes: int = 0
    entries: List[Frame] = field(default_factory=list)


def encode_block(block: Block) -> bytes:
    """The block's bytes. Plain bytes are the payload's unless it is compressed; block bytes the fewest that do."""
    compressed = bool(block.flags & COMPRESSED)
    table = b"".join(Writer().u64(commit.first_seq).i64(commit.time).u32(commit.entry_count).u32(commit.plain_bytes)
                     .done() for commit in block.commits)
    used = HEADER_BYTES + len(table) + len(block.payload)
    size = block.block_bytes or -(-used // ALIGNMENT) * ALIGNMENT
    header = (Writer().raw(MAGIC).u8(1).u8(block.flags).u16(len(block.commits)).u64(block.epoch).u32(block.segment)
              .u32(block.offset).u32(size).u32(len(block.payload))
              .u32(block.plain_bytes if compressed else len(block.payload))
              .u32(sum(commit.entry_count for commit in block.commits)).u32(block.synced_segment)
              .u32(block.synced_offset).u64(0).u32(crc32c(block.payload) if compressed else 0).done())
    return (header + crc32c(table, crc32c(header)).to_bytes(4, "little") + table + block.payload
            + bytes(size - used))


def read_header(data: bytes, epoch: int, segment: int, offset: int) -> Tuple[Block, int, int]:
    """Header and commit table of the block at the start of `data`, its stored byte count, and where its payload begins.

    `epoch`, `segment` and `offset` say where the block lies. Raises `DecodeError` (`corrupt`): at 0 where less than the
    header with its commit table is there, else at the field that is wrong.
    """
    reader = Reader(data)
    if reader.left < HEADER_BYTES:
        raise DecodeError("corrupt", 0, "a block's header has 64 bytes")

    def check(holds: bool, at: int, reason: str) -> None:
        if not holds:
            raise DecodeError("corrupt", at, reason)

    check(reader.take(4) == MAGIC, 0, "no block begins here")
    form, flags, count = reader.u8(), reader.u8(), reader.u16()
    end = HEADER_BYTES + COMMIT_BYTES * count
    if len(data) < end:
        raise DecodeError("corrupt", 0, f"a commit table of {count} rows")
    stored_crc = int.from_bytes(data[60:64], "little")
    check(crc32c(data[HEADER_BYTES:end], crc32c(data[:60])) == stored_crc, 60, "the header's CRC does not match")
    check(form == 1, 4, "the format is not 1")
    check(flags < 32, 5, f"flags of {flags}")
    check(bool(flags & REPACKED) or not flags & ENDS, 5, "the last block of a repacked segment is not repacked")
    check(count >= 1, 6, "a block without commits")
    check(reader.u64() == epoch, 8, "the block is of another epoch")
    check((reader.u32(), reader.u32()) == (segment, offset), 16, "the block lies elsewhere")
    size, stored, plain, entry_count = reader.u32(), reader.u32(), reader.u32(), reader.u32()
    check(0 < size <= BLOCK_BYTES_MAX and size % ALIGNMENT == 0, 24, f"block bytes of {size}")
    check(end + stored <= size, 28, f"{stored} stored bytes in a block of {size}")
    compressed = bool(flags & COMPRESSED)
    check(end + plain <= BLOCK_BYTES_MAX if compressed else plain == stored, 32, f"{plain} plain bytes")
    synced = reader.u32(), reader.u32()
    check(synced <= (segment, offset), 40, "a synced position behind the block's own")
    check(reader.u64() == 0, 48, "reserved bytes are 0")
    payload_crc = reader.u32()
    check(compressed or payload_crc == 0, 56, "a payload CRC without compression")
    reader.u32()
    commits: List[Commit] = []
    for row in range(count):
        at = reader.offset
        commit = Commit(reader.u64(), reader.i64(), reader.u32(), reader.u32())
        check(commit.first_seq > (commits[-1].first_seq if commits else 0), at, "the commits ascend from seq 1")
        check(commit.entry_count >= 1, at + 16, "a commit without entries")
        commits.append(commit)
    check(sum(commit.entry_count for commit in commits) == entry_count, 36, "the entry counts do not add up")
    check(sum(commit.plain_bytes for commit in commits) == plain, 32, "the commits' bytes do not add up")
    block = Block(epoch, segment, offset, commits, b"", flags, synced[0], synced[1], plain, size)
    return block, stored, end


def piece_frames(payload: bytes, plain_bytes: int, start: int = 0) -> List[bytes]:
    """The zstd frames of a compressed payload, one for each piece of 65,536 plain bytes. `start` is where the payload lies,
    for the offsets of a `DecodeError`.
    """
    def check(holds: bool, at: int, message: str) -> None:
        if not holds:
            raise DecodeError("corrupt", start + at, message)

    count = -(-plain_bytes // PIECE_BYTES)
    check(payload[:4] == SKIPPABLE, 0, "no table of pieces")
    check(count > 0 and payload[4:8] == (4 * count).to_bytes(4, "little"), 4, f"the table is not of {count} pieces")
    end, frames = 8 + 4 * count, []
    for at in range(8, end, 4):
        size = int.from_bytes(payload[at:at + 4], "little")
        check(0 < size <= len(payload) - end, at, f"a frame of {size} bytes")
        frames.append(payload[end:end + size])
        end += size
    check(end == len(payload), end, "bytes behind the last frame")
    return frames


def decode_block(data: bytes, epoch: int, segment: int, offset: int) -> Block:
    """A whole block at the start of `data`, every entry's framing, seq and CRC checked. Raises `DecodeError`.

    A compressed payload is checked against its CRC, its table of pieces too, and left as it is: zstd unpacks it.
    """
    block, stored, start = read_header(data, epoch, segment, offset)
    if len(data) < block.block_bytes:
        raise DecodeError("corrupt", start, f"a block of {block.block_bytes} bytes, {len(data)} are there")
    block.payload = data[start:start + stored]
    if block.flags & COMPRESSED:
        if crc32c(block.payload) != int.from_bytes(data[56:60], "little"):
            raise DecodeError("corrupt", start, "the payload's CRC does not match")
        piece_frames(block.payload, block.plain_bytes, start)
        return block
    at, last = start, -1
    for commit in block.commits:
        limit = at + commit.plain_bytes
        for _ in range(commit.entry_count):
            frame = read_frame(data, at, limit, commit.first_seq)
            if frame.seq <= last:
                raise DecodeError("corrupt", at, f"the seq {frame.seq} after {last}")
            last = frame.seq
            block.entries.append(frame)
            at = frame.end
        if at != limit:
            raise DecodeError("corrupt", at, "bytes behind the commit's last entry")
    return block
