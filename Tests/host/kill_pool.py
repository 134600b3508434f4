"""The records that importers and deleters share: few places, and each text there once."""

from harness import BY_KIND, JOKE, TITLE, delete, joke, save, title
from kill_entries import KEY_BYTES, key_in
from kill_log import DELETE, INSERT, SAVE
from larder.varint import put_varint

MODES = {SAVE: "replace", INSERT: "insert"}


class Pool:
    """The places of all records, and the making of records there, each with a text that no other has."""

    def __init__(self, title_count, joke_count):
        self.heads = {}
        samples = [(TITLE, title(1000 + n, "x", "pool")) for n in range(title_count)]
        samples += [(JOKE, joke(1 + n, "x")) for n in range(joke_count)]
        for kind, record in samples:
            self.heads[kind.number, key_in(kind.number, record)] = record[:1 + record[0] + KEY_BYTES[kind.number]]
        self.places = list(self.heads)
        self.text_count = 0

    def mark(self, name):
        """A place for one writer alone, whose four letters these are."""
        record = title(1000, "x", name)
        place = TITLE.number, key_in(TITLE.number, record)
        self.heads[place] = record[:1 + record[0] + KEY_BYTES[TITLE.number]]
        return place

    def record(self, place, byte_count):
        self.text_count += 1
        text = f"{self.text_count} ".encode().ljust(byte_count, b"x")
        out = bytearray(self.heads[place])
        put_varint(out, len(text))
        return bytes(out + text)


def operation(verb, place, record):
    """An operation's bytes."""
    kind = BY_KIND[place[0]]
    return delete(place[1], kind) if verb == DELETE else save(record, kind, MODES[verb])
