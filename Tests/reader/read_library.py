#!/usr/bin/env python3
"""An independent reader of Larder libraries, written from Protocol/FORMAT.md alone. Changes nothing.

    read_library.py LIBRARY            the live records in saved order, one JSON object a line
    read_library.py LIBRARY --entries  every entry of the log, one JSON object a line
    read_library.py LIBRARY --check    verify only; prints what is damaged and where; exit code 1 if anything is

A torn tail and an unfinished run are what a crash leaves. They are ignored, and said on standard error.
"""
import ctypes
import os
import struct
import sys

from values import Bad, Bytes, Kind, dump, time

MAGIC_IDENTITY, MAGIC_BLOCK = b"LARDERLB", b"LRDB"
FORMAT, PAGE, BLOCK_MAX, ENTRY_MAX = 1, 4096, 4 << 20, (1 << 20) + (64 << 10)
CONTINUES, CONTINUED, COMPRESSED, REPACKED, ENDS = 1, 2, 4, 8, 16
TYPES = {1: "created", 2: "updated", 3: "deleted", 16: "kind", 17: "origin", 18: "import_began", 19: "import_ended",
         20: "token", 21: "recovered", 22: "floor"}
IMPORT_COUNTS = ["read", "created", "updated", "unchanged", "duplicate", "already_saved", "skipped", "refused"]
TOKEN_COUNTS = ["created", "updated", "unchanged", "duplicate", "already_saved", "not_found", "deleted", "refused"]


CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [n >> 1 ^ (0x82F63B78 if n & 1 else 0) for n in CRC_TABLE]


def crc32c(*parts):
    crc, table = 0xFFFFFFFF, CRC_TABLE
    for part in parts:
        for byte in part:
            crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Newer(Bad):
    """A format above this reader's: no damage, the library is refused as a whole."""


class Entry:
    def __init__(self, type, seq, first, at, body):
        self.type, self.seq, self.first, self.time, self.body = type, seq, first, at, body


class Lost:
    """A place where bytes do not check. after/before: the last good seq before it and the first behind it."""

    def __init__(self, place, why):
        self.place, self.why, self.after, self.before = place, why, 0, None

    def __str__(self):
        seqs = f"{self.after + 1} and up" if self.before is None else f"{self.after + 1} to {self.before - 1}"
        none = self.before is not None and self.before <= self.after + 1
        return f"{name_of(self.place)}: {self.why}; " + ("no seq is lost" if none else f"seqs lost: {seqs}")


class Header:
    """Section 7. Raises Bad where the header does not check; block_bytes may still reach past the file's end."""

    def __init__(self, data, offset, segment, epoch):
        if len(data) - offset < 64:
            raise Bad("a header that is cut")
        (magic, form, self.flags, n, block_epoch, block_segment, block_offset, self.block_bytes, self.stored,
         self.plain, self.entries, synced_segment, synced_offset, zero, self.payload_crc, crc) = struct.unpack_from(
             "<4sBBHQIIIIIIIIQII", data, offset)
        if magic != MAGIC_BLOCK:
            raise Bad("no block begins here")
        self.payload_offset = 64 + 24 * n
        if form != FORMAT:
            head = data[offset + 64:offset + self.payload_offset]
            if form > FORMAT and crc32c(data[offset:offset + 60], head) == crc:
                raise Newer(f"{name_of((segment, offset))}: block format {form}, this reader's is {FORMAT}")
            raise Bad(f"block format {form}, this reader's is {FORMAT}")
        if n == 0 or self.block_bytes % PAGE or self.block_bytes > BLOCK_MAX or self.flags > 31 or self.flags & 24 == 16 or zero or \
                self.payload_offset + self.stored > self.block_bytes or offset + self.payload_offset > len(data):
            raise Bad("a header whose lengths or reserved bits cannot be")
        if crc32c(data[offset:offset + 60], data[offset + 64:offset + self.payload_offset]) != crc:
            raise Bad("the header's CRC does not match")
        if (block_epoch, block_segment, block_offset) != (epoch, segment, offset):
            raise Bad(f"misplaced: a block of epoch {block_epoch:016x}, segment {block_segment}, offset {block_offset}")
        self.commits = [struct.unpack_from("<QqII", data, offset + 64 + 24 * i) for i in range(n)]
        if self.flags & COMPRESSED:
            lengths_fit = self.payload_offset + self.plain <= BLOCK_MAX
        else:
            lengths_fit = self.plain == self.stored and self.payload_crc == 0
        if not lengths_fit or sum(c[3] for c in self.commits) != self.plain or \
                sum(c[2] for c in self.commits) != self.entries or any(c[2] == 0 for c in self.commits):
            raise Bad("a commit table that does not add up")
        self.synced = (synced_segment, synced_offset)
        if self.synced > (segment, offset):
            raise Bad("a synced position behind the block's own")


def parse_entry(data, pos, end, first, at):
    """(entry, position behind it) of section 8's entry at pos; raises Bad."""
    b = Bytes(data, pos, end)
    length = b.varint()
    if not 6 <= length <= ENTRY_MAX or length > end - b.pos:
        raise Bad("an entry's length does not fit")
    last = b.pos + length
    b.end = last - 4
    type, seq = b.u8(), first + b.varint()
    stored, = struct.unpack_from("<I", data, last - 4)
    if not 1 <= seq < 1 << 64 or crc32c(struct.pack("<Q", seq), data[pos:last - 4]) != stored:
        raise Bad("an entry's CRC does not match")
    return Entry(type, seq, first, at, b.rest()), last


def unpack(data, offset, header):
    stored = data[offset + header.payload_offset:offset + header.payload_offset + header.stored]
    if not header.flags & COMPRESSED:
        return stored
    if len(stored) < header.stored or crc32c(stored) != header.payload_crc:
        raise Bad("a compressed payload's CRC does not match")
    plain = ctypes.create_string_buffer(header.plain)
    # Frames one behind the other, the table among them: zstd takes them as one stream.
    if zstd().ZSTD_decompress(plain, header.plain, stored, len(stored)) != header.plain:
        raise Bad("a compressed payload that does not unpack to what its header says")
    return plain.raw


def zstd():
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise SystemExit(f"read_library: a block is compressed, and zstd is not installed: {error}") from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return library


class Block:
    """A whole block, or what is left of one: items are entries and Lost places in log order."""

    def __init__(self, place, data=None, header=None, why=None):
        self.place, self.header, self.items = place, header, []
        if header is None:
            self.items.append(Lost(place, why))
            return
        try:
            payload = unpack(data, place[1], header)
        except Bad as error:
            self.items.append(Lost(place, str(error)))
            return
        start = 0
        for first, at, count, plain_bytes in header.commits:
            self.commit(payload, start, min(start + plain_bytes, len(payload)), first, at, count)
            start += plain_bytes

    def commit(self, payload, pos, end, first, at, count):
        last, found, losing, begin = first - 1, 0, False, pos
        while pos < end:
            try:
                entry, behind = parse_entry(payload, pos, end, first, at)
                if entry.seq <= last:
                    raise Bad("a seq that does not ascend")
                self.items.append(entry)
                last, found, pos, losing = entry.seq, found + 1, behind, False
            except Bad as error:
                if not losing:
                    self.items.append(Lost((self.place[0], self.place[1] + self.offset_of(pos)), str(error)))
                losing, pos = True, pos + 1
        if found != count and not any(isinstance(item, Lost) for item in self.items):
            self.items.append(Lost(self.place, f"a commit of {count} entries has {found}"))

    def offset_of(self, pos):
        return 0 if self.header.flags & COMPRESSED else self.header.payload_offset + pos

    def is_whole(self):
        return not any(isinstance(item, Lost) for item in self.items)

    def first_seq(self):
        return next((item.seq for item in self.items if isinstance(item, Entry)), None)


def name_of(place):
    return f"log/{place[0]:08d}.seg, offset {place[1]}"


class Library:
    """Walks the log once. entries: what counts, in log order. damage and notes: what was found, as text."""

    def __init__(self, path):
        with open(os.path.join(path, "larder"), "rb") as file:
            identity = file.read()
        if len(identity) != 128 or identity[:8] != MAGIC_IDENTITY:
            raise Bad("not a Larder library: the identity's length or magic is wrong")
        form, zero = struct.unpack_from("<II", identity, 8)
        if form > FORMAT:
            raise Bad(f"the library's format is {form}, this reader's is {FORMAT}")
        if struct.unpack_from("<I", identity, 124)[0] != crc32c(identity[:124]) or zero or any(identity[64:124]):
            raise Bad("the identity's CRC or reserved bytes do not check")
        self.epoch, = struct.unpack_from("<Q", identity, 32)
        log = os.path.join(path, "log")
        names = [n for n in os.listdir(log) if n.endswith(".seg") and n[:-4].isdigit()] if os.path.isdir(log) else []
        self.segments = sorted((int(n[:-4]), os.path.join(log, n)) for n in names)
        self.damage, self.notes, self.entries = [], [], []
        self.synced, self.synced_of, self.looked_ahead = (0, 0), {}, False
        blocks = self.walk()
        self.settle(self.runs(blocks))

    def vouch(self, header):
        self.synced = max(self.synced, header.synced)
        self.synced_of[header.synced[0]] = max(self.synced_of.get(header.synced[0], 0), header.synced[1])

    def look_ahead(self, data, offset, segment):
        """Section 10, step 3: every further header that checks may raise the synced position. Once is enough."""
        if self.looked_ahead:
            return
        self.looked_ahead = True
        for number, path in self.segments:
            if number < segment:
                continue
            if number > segment:
                data, offset = read(path), -PAGE
            for at in range(offset + PAGE, len(data), PAGE):
                if data[at:at + 4] == MAGIC_BLOCK:
                    try:
                        self.vouch(Header(data, at, number, self.epoch))
                    except Newer:
                        raise
                    except Bad:
                        pass

    def walk(self):
        blocks, last = [], 0
        for segment, path in self.segments:
            data, offset = read(path), 0
            is_repacked = has_end = False
            while offset < len(data):
                place, header, block = (segment, offset), None, None
                try:
                    header = Header(data, offset, segment, self.epoch)
                    self.vouch(header)
                    block = Block(place, data, header)
                    if offset + header.block_bytes > len(data) and block.is_whole():
                        block.items.append(Lost(place, "the file ends inside the block"))
                    if block.first_seq() is not None and block.first_seq() <= last:
                        block.items.insert(0, Lost(place, "a seq that does not ascend"))
                except Newer:
                    raise
                except Bad as error:
                    block = Block(place, why=str(error))
                if not block.is_whole():
                    self.look_ahead(data, offset, segment)
                    if not any(data[offset:]) and self.synced_of.get(segment, 0) <= offset:
                        break                                   # room laid out ahead
                    if place >= self.synced:
                        why = next(item.why for item in block.items if isinstance(item, Lost))
                        self.notes.append(f"{name_of(place)}: a torn tail begins here ({why})")
                        return blocks
                if header is not None:
                    is_repacked = is_repacked or offset == 0 and header.flags & REPACKED != 0
                    has_end = header.flags & ENDS != 0
                blocks.append(block)
                last = max([last] + [item.seq for item in block.items if isinstance(item, Entry)])
                if header is not None:
                    offset += header.block_bytes
                else:
                    offset = self.next_header(data, offset, segment)
            if is_repacked and not has_end:
                blocks.append(Block((segment, offset), why="a repacked segment without its end"))
        return blocks

    def next_header(self, data, offset, segment):
        for at in range(offset + PAGE, len(data), PAGE):
            if data[at:at + 4] == MAGIC_BLOCK:
                try:
                    Header(data, at, segment, self.epoch)
                    return at
                except Newer:
                    raise
                except Bad:
                    pass
        return len(data)

    def runs(self, blocks):
        """Section 9: leaves out runs without an end. A hole inside a run, or in its place, does not undo the run."""
        kept, run, hole_before = [], [], False
        for block in blocks:
            hole = block.header is None
            flags = 0 if hole else block.header.flags
            if run and not hole and not flags & CONTINUED:
                if any(part.header is None for part in run):
                    kept += run
                else:
                    self.damage.append(f"{name_of(run[0].place)}: a run without its end, in the middle of the log")
                run = []
            if not run and flags & CONTINUED and not hole_before:
                self.damage.append(f"{name_of(block.place)}: a run without its beginning")
            if run or flags & CONTINUES:
                run.append(block)
                if not hole and not flags & CONTINUES:
                    kept, run = kept + run, []
            else:
                kept.append(block)
            hole_before = hole
        if run:
            self.notes.append(f"{name_of(run[0].place)}: a run that was not finished begins here")
            self.damage += [str(item) for part in run for item in part.items if isinstance(item, Lost)]
        return kept

    def settle(self, blocks):
        last, open_losses, losses = 0, [], []
        for item in (item for block in blocks for item in block.items):
            if isinstance(item, Lost):
                item.after = last
                open_losses.append(item)
                losses.append(item)
            else:
                for loss in open_losses:
                    loss.before = item.seq
                open_losses, last = [], item.seq
                self.entries.append(item)
        self.damage += map(str, losses)
        self.apply()

    def apply(self):
        self.kinds, self.live, self.floor = {}, {}, 1
        for entry in self.entries:
            try:
                entry.json = self.decode(entry)
            except Bad as error:
                entry.json = {"refused": str(error)}
                self.damage.append(f"seq {entry.seq}: {TYPES.get(entry.type)} entry: {error}")

    def decode(self, entry):
        """The entry's fields for --entries; applies it to kinds and live records."""
        b = Bytes(entry.body)
        if entry.type in (1, 2, 3):
            return self.decode_change(entry, b)
        if entry.type == 16:
            kind = Kind(b)
            b.finish()
            known = self.kinds.get(kind.number)
            if known is not None and kind.version <= known.version:
                raise Bad("a later declaration without a higher version")
            self.kinds[kind.number] = kind
            return {"kind": kind.name, "number": kind.number, "version": kind.version}
        if entry.type == 17:
            out = {"origin": b.varint(), "name": b.text(), "token": b.text()}
        elif entry.type == 18:
            out = {"origin": b.varint(), "source": b.text()}
        elif entry.type == 19:
            out = {"origin": b.varint(), "outcome": b.u8(), **{name: b.varint() for name in IMPORT_COUNTS}}
        elif entry.type == 20:
            out = {"origin": b.varint(), "batch": b.varint(), **{name: b.varint() for name in TOKEN_COUNTS}}
        elif entry.type == 21:
            out = {"from": b.varint(), "to": b.varint()}
        elif entry.type == 22:
            out = {"floor": b.varint()}
            self.floor = max(self.floor, out["floor"])
        else:
            return {"bytes": len(entry.body)}
        b.finish()
        return out

    def decode_change(self, entry, b):
        flags = b.varint() if entry.type != 1 else 0
        number, origin = b.varint(), b.varint()
        first_seq, saved, previous = entry.seq, entry.time, 0
        if flags > (1 if entry.type == 2 else 0):
            raise Bad(f"unknown flags {flags}")
        if entry.type != 1:
            first_seq = entry.seq - b.varint()
        if entry.type == 2:
            saved = entry.time + b.svarint()
        if entry.type != 1:
            difference = b.varint()
            previous = entry.seq - difference if difference else 0
        changed = b.take(b.u8()) if entry.type == 2 else b""
        if first_seq < 1 or previous < 0 or len(changed) > 32 or (changed and changed[-1] == 0):
            raise Bad("a first seq, previous seq or bitmap that cannot be")
        kind, rest = self.kinds.get(number), b.rest()
        if kind is None:
            raise Bad(f"kind {number} was not declared before it")
        key, fields = (rest, None) if entry.type == 3 else kind.record(rest)
        out = {"kind": kind.name, "key": kind.key_text(key), "seq": entry.seq, "saved_seq": first_seq}
        if entry.type == 3:
            self.live.pop((number, key), None)
            return {**out, "origin": origin, "previous": previous}
        out.update(saved_at=time(saved), changed_at=time(entry.time), origin=origin)
        out.update({"opaque": rest.hex()} if fields is None else {"record": fields})
        self.live[number, key] = out
        names = [8 * i + j + 1 for i, byte in enumerate(changed) for j in range(8) if byte >> j & 1]
        extra = {"previous": previous, "changed": names, "flags": flags} if entry.type == 2 else {}
        return {**out, **extra}

    def records(self):
        return sorted(self.live.values(), key=lambda record: record["saved_seq"])


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(arguments):
    options = {a for a in arguments if a.startswith("--")}
    paths = [a for a in arguments if not a.startswith("--")]
    if len(paths) != 1 or options - {"--entries", "--check"}:
        print(__doc__, file=sys.stderr)
        return 2
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        library = Library(paths[0])
    except (Bad, OSError) as error:
        print(f"{paths[0]}: {error}", file=sys.stderr)
        return 1 if "--check" in options else 2
    report = sys.stdout if "--check" in options else sys.stderr
    for line in library.damage + library.notes:
        print(line, file=report)
    if "--check" in options:
        print(f"{len(library.entries)} entries, {len(library.live)} records, {len(library.damage)} damaged places")
        return 1 if library.damage else 0
    if "--entries" in options:
        for e in library.entries:
            print(dump({"seq": e.seq, "time": e.time, "type": TYPES.get(e.type, e.type), **e.json}))
    else:
        for record in library.records():
            print(dump(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
