"""Holds SPEC.md, messages.json and errors.json against each other: the table takes every example of the text apart."""
import json
import os
import re
import struct
import unittest

from read_library import parse_entry
from values import Bad, Bytes, Kind, TYPES

PROTOCOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Protocol")


def text_of(name):
    with open(os.path.join(PROTOCOL, name), encoding="utf-8") as file:
        return file.read()


SPEC, MESSAGES, ERRORS = text_of("SPEC.md"), json.loads(text_of("messages.json")), json.loads(text_of("errors.json"))
BY_NUMBER = {message["number"]: message for message in MESSAGES["messages"]}


def read_value(b, type, is_draft=False):
    if type.startswith("list of "):
        return [read_value(b, type[8:]) for _ in range(b.varint())]
    if type.endswith(" until end"):
        items = []
        while b.pos < b.end:
            items.append(read_value(b, type[:-10]))
        return items
    if type in ("varint", "svarint", "text", "u8"):
        return getattr(b, type)()
    if type in ("u32", "u64", "i64"):
        return b.fixed({"u32": "I", "u64": "Q", "i64": "q"}[type])[0]
    if type in ("bytes", "entries"):
        return b.take(b.varint() if type == "bytes" else b.fixed("I")[0])
    if type == "kind_declaration":
        return Kind(b, is_draft)
    return read_fields(b, MESSAGES["structs"][type])


def read_fields(b, fields):
    out = {}
    for field in fields:
        when = field.get("when")
        if when and not (out[when["field"]] & when["bit"] if "bit" in when else out[when["field"]] in when["values"]):
            continue
        value = out[field["name"]] = read_value(b, field["type"], is_draft=field["name"] == "declaration")
        if "bits" in field and value & ~sum(map(int, field["bits"])) or \
                "values" in field and str(value) not in field["values"]:
            raise AssertionError(f"{field['name']} is {value}")
    return out


def shown(value):
    """A value as the vectors show it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Kind):
        return {"kind": value.name, "number": value.number, "version": value.version, "fields": list(value.fields)}
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list) else value


def without_kinds(value):
    """A vector's value with what `shown` leaves out of a declaration."""
    if isinstance(value, dict) and "fields" in value:
        return {**{name: value[name] for name in ("kind", "number", "version")},
                "fields": [field["number"] for field in value["fields"]]}
    if isinstance(value, dict):
        return {name: without_kinds(item) for name, item in value.items()}
    return [without_kinds(item) for item in value] if isinstance(value, list) else value


def read_frame(data):
    """(name, id, fields, bytes of the frame) of a whole frame at the beginning of data."""
    length, type, flags, zero, id = struct.unpack_from("<IBBHI", data)
    assert (flags, zero) == (0, 0)
    b = Bytes(data, 12, 12 + length)
    fields = read_fields(b, BY_NUMBER[type]["fields"])
    b.finish()
    return BY_NUMBER[type]["name"], id, fields, 12 + length


def hex_of(block):
    """The bytes of an example: each line's leading pairs of digits."""
    return bytes.fromhex("".join(re.match(r"(?:[CH]  |   )?((?:[0-9A-F]{2}(?: |$))*)", line).group(1)
                                 for line in block.splitlines()))


class TablesTest(unittest.TestCase):
    def test_every_message_has_a_section_and_an_example_that_its_table_reads(self):
        sections = re.findall(r"^### ([0-9A-F]{2}) (\w+)\n(.*?)(?=^##)", SPEC, re.M | re.S)
        self.assertEqual([(int(n, 16), name) for n, name, _ in sections],
                         [(m["number"], m["name"]) for m in MESSAGES["messages"]])
        for _, name, body in sections:
            examples = [data for data in map(hex_of, body.split("```")[1::2]) if data]
            self.assertTrue(examples, name)
            for data in examples:
                self.assertEqual(read_frame(data)[0], name)
                self.assertEqual(read_frame(data)[3], len(data))

    def test_the_transcripts_are_frames(self):
        section = SPEC[SPEC.index("## 13."):SPEC.index("## 14.")]
        names = []
        for block in section.split("```")[1::2]:
            for chunk in re.split(r"^(?=[CH]  )", block, flags=re.M):
                data = hex_of(chunk)
                if len(data) < 12 or len(data) < 12 + struct.unpack_from("<I", data)[0]:
                    continue                                    # the preface, and the frame that is too large
                name, _, fields, length = (None,) * 4
                try:
                    name, _, fields, length = read_frame(data)
                except Exception as error:
                    self.assertIn("3 are there", chunk, error)  # the body that is cut
                    continue
                self.assertEqual(length, len(data))
                names.append(name)
                for run in fields.get("runs", []) if name == "EVENTS" else []:
                    entry, end = parse_entry(run["entries"], 0, len(run["entries"]), run["first_seq"], run["time"])
                    self.assertEqual((entry.seq, end), (run["first_seq"], len(run["entries"])))
        self.assertEqual(names.count("EVENTS"), 3)
        self.assertEqual(names.count("ERROR"), 3)

    def test_the_table_reads_every_vector(self):
        vectors = json.loads(text_of("vectors/messages.json"))
        self.assertEqual({vector["type"] for vector in vectors["valid"]}, set(BY_NUMBER))
        for vector in vectors["valid"]:
            with self.subTest(vector["name"]):
                self.assertEqual(BY_NUMBER[vector["type"]]["name"], vector["message"])
                b = Bytes(bytes.fromhex(vector["hex"]))
                fields = read_fields(b, BY_NUMBER[vector["type"]]["fields"])
                b.finish()
                self.assertEqual(shown(fields), without_kinds(vector["value"]))

    def test_vectors_that_are_cut_or_too_long_do_not_read(self):
        for vector in json.loads(text_of("vectors/messages.json"))["invalid"]:
            if not re.search("cut|trailing|lies|longer than the body|without condition", vector["name"]):
                continue
            with self.subTest(vector["name"]), self.assertRaises((Bad, struct.error, AssertionError)):
                b = Bytes(bytes.fromhex(vector["hex"]))
                read_fields(b, BY_NUMBER[vector["type"]]["fields"])
                b.finish()

    def test_numbers_and_names_are_used_once(self):
        numbers = [m["number"] for m in MESSAGES["messages"]] + [m["number"] for m in MESSAGES["reserved"]]
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertEqual([e["number"] for e in ERRORS["errors"]], list(range(1, 47)))
        self.assertEqual(len({e["name"] for e in ERRORS["errors"]}), 46)

    def test_the_errors_of_the_text_are_those_of_the_table(self):
        rows = re.findall(r"^\| (\d+) \| (\w+) \| (yes|no) \| (yes|no|after a restart) \|", SPEC, re.M)
        self.assertEqual(rows, [(str(e["number"]), e["name"], "yes" if e["fatal"] else "no",
                                 e["retry"].replace("_", " a ")) for e in ERRORS["errors"]])
        known = {e["name"] for e in ERRORS["errors"]}
        for message in MESSAGES["messages"]:
            self.assertLessEqual(set(message["errors"]), known)

    def test_each_request_names_a_final_reply_and_each_reply_a_request(self):
        by_name = {m["name"]: m for m in MESSAGES["messages"]}
        asked = {m["reply"] for m in MESSAGES["messages"] if m["class"] == "request"}
        for name in asked:
            self.assertEqual((by_name[name]["class"], by_name[name]["final"]), ("reply", True))
        self.assertEqual({m["name"] for m in MESSAGES["messages"] if m["class"] == "reply"}, asked | {"ERROR"})

    def test_the_shipped_kinds_are_well_formed(self):
        for name in ["title", "book", "joke"]:
            kind = json.loads(text_of(f"kinds/{name}.json"))
            fields = kind["fields"]
            self.assertEqual([f["number"] for f in fields], sorted({f["number"] for f in fields}))
            self.assertEqual([f["name"] for f in fields[:len(kind["key"])]], kind["key"])
            self.assertTrue(all(f["type"] in TYPES.values() for f in fields))
            self.assertTrue(all(fields[i].get("required") for i in range(len(kind["key"]))))
            self.assertLessEqual(set(kind["label"]), {f["name"] for f in fields})


if __name__ == "__main__":
    unittest.main()
