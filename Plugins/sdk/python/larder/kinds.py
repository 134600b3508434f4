"""Kinds: what the fields of a record are (FORMAT.md section 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field as dataclass_field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .codec import Reader, Writer
from .errors import DecodeError, EncodeError, named_in
from .values import (BYTES, CHOICE, IDENTIFIER, INT, LIST, READERS, TEXT, TYPE_NAMES, TYPE_NUMBERS, WRITERS, Read, Write,
                     choice_reader, choice_writer)
from .varint import U64_MAX

REQUIRED, NOT_BLANK, NOT_ZERO, INDEXED, PERSONAL = 1, 2, 4, 8, 16
_CONSTRAINTS = (("required", REQUIRED), ("not_blank", NOT_BLANK), ("not_zero", NOT_ZERO), ("indexed", INDEXED),
                ("personal", PERSONAL))
#: The largest number of a kind, of its version, and of a choice's value.
NUMBER_MAX = (1 << 31) - 1
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")

#: What counts as white space where a text must not be blank.
WHITE_SPACE = "".join(map(chr, (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                                0x205F, 0x3000)))


def is_blank(text: str) -> bool:
    """Whether a text has nothing but white space."""
    return not text.strip(WHITE_SPACE)


@dataclass(frozen=True)
class Field:
    """One field of a kind. `type` is a type's number; `values` names the numbers of a choice."""

    number: int
    name: str
    type: int
    constraints: int = 0
    values: Mapping[int, str] = dataclass_field(default_factory=dict)

    @property
    def type_name(self) -> str:
        return TYPE_NAMES[self.type]

    @property
    def required(self) -> bool:
        return bool(self.constraints & REQUIRED)

    @property
    def not_blank(self) -> bool:
        return bool(self.constraints & NOT_BLANK)

    @property
    def not_zero(self) -> bool:
        return bool(self.constraints & NOT_ZERO)

    @property
    def indexed(self) -> bool:
        return bool(self.constraints & INDEXED)

    @property
    def personal(self) -> bool:
        return bool(self.constraints & PERSONAL)

    def reader(self) -> Read:
        """The function that reads a value of the field."""
        return choice_reader(dict(self.values)) if self.type == CHOICE else READERS[self.type]

    def writer(self) -> Write:
        """The function that writes a value of the field."""
        return choice_writer(dict(self.values)) if self.type == CHOICE else WRITERS[self.type]


class Kind:
    """A type of record: its fields in ascending order of number, its key, its label. Not changed after it is made.

    A draft, as `Client.define` takes it, may leave number and version to the library: they are 0 then.
    """

    def __init__(self, number: int, name: str, version: int, fields: Iterable[Field], key_count: int,
                 label: Iterable[int] = (), *, is_draft: bool = False) -> None:
        self.is_draft = is_draft
        self.number = number
        self.name = name
        self.version = version
        self.fields: Tuple[Field, ...] = tuple(fields)
        self.key_count = key_count
        self.label: Tuple[int, ...] = tuple(label)
        wrong = self._problem()
        if wrong:
            raise EncodeError("bad_message", wrong, name)
        self.by_name: Dict[str, Field] = {item.name: item for item in self.fields}
        self.by_number: Dict[int, Field] = {item.number: item for item in self.fields}
        self.key_fields: Tuple[Field, ...] = self.fields[:key_count]
        self.highest = self.fields[-1].number
        self.writers: Dict[int, Write] = {item.number: item.writer() for item in self.fields}
        #: Decoders by bitmap, kept by `records`; bounded there.
        self.plans: Dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<Kind {self.number} {self.name} version {self.version}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash((self.number, self.version))

    def _problem(self) -> str:
        least = 0 if self.is_draft else 1
        if not least <= self.number <= NUMBER_MAX or not least <= self.version <= NUMBER_MAX:
            return f"number and version are {least} ... {NUMBER_MAX}"
        if not _NAME.match(self.name):
            return f"{self.name!r} is not a name"
        if self.key_count < 1 or len(self.fields) < self.key_count:
            return "a kind has a key, and its key fields are fields"
        if len({item.name for item in self.fields}) != len(self.fields):
            return "a name is given twice"
        last = 0
        for item in self.fields:
            wrong = field_problem(item, last)
            if wrong:
                return wrong
            last = item.number
        for position, item in enumerate(self.fields[:self.key_count], start=1):
            if item.number != position or not item.required or item.personal or item.type in (LIST, BYTES):
                return "the key is the fields 1 ... k: required, no list, no bytes, not personal"
        numbers = {item.number for item in self.fields}
        if len(set(self.label)) != len(self.label) or not set(self.label) <= numbers:
            return "a label field that is not declared, or twice"
        return ""

    @classmethod
    def decode(cls, data: bytes, *, is_draft: bool = False) -> "Kind":
        """Reads one declaration to its last byte."""
        reader = Reader(data)
        kind = cls.read(reader, is_draft=is_draft)
        reader.finish("bad_message")
        return kind

    @classmethod
    def read(cls, reader: Reader, *, is_draft: bool = False) -> "Kind":
        """Reads a declaration where the reader is. Every rule is checked where the offending value begins."""
        try:
            return cls._read(reader, is_draft)
        except DecodeError as error:
            raise named_in(error, "bad_message")

    @classmethod
    def _read(cls, reader: Reader, is_draft: bool) -> "Kind":
        least = 0 if is_draft else 1
        number = _number(reader, "a kind's number", least=least)
        name = _name(reader)
        version = _number(reader, "a version", least=least)
        key_count = _number(reader, "a key field count", U64_MAX)
        at = reader.offset
        count = reader.count()
        if count < key_count:
            raise DecodeError("bad_message", at, f"{count} fields, {key_count} in the key")
        fields: List[Field] = []
        last, names = 0, set()
        for position in range(1, count + 1):
            at = reader.offset
            item = _read_field(reader)
            wrong = field_problem(item, last)
            if not wrong and item.name in names:
                wrong = f"the name {item.name} is given twice"
            if not wrong and position <= key_count and (
                    item.number != position or not item.required or item.personal or item.type in (LIST, BYTES)):
                wrong = "the key is the fields 1 ... k: required, no list, no bytes, not personal"
            if wrong:
                raise DecodeError("bad_message", at, wrong)
            fields.append(item)
            last = item.number
            names.add(item.name)
        numbers = {item.number for item in fields}
        label: List[int] = []
        for _ in range(reader.count()):
            at = reader.offset
            field_number = reader.varint()
            if field_number not in numbers or field_number in label:
                raise DecodeError("bad_message", at, f"the label field {field_number} is not declared, or twice")
            label.append(field_number)
        return cls(number, name, version, fields, key_count, label, is_draft=is_draft)

    def encode(self) -> bytes:
        """The declaration's bytes."""
        out = Writer().varint(self.number).text(self.name).varint(self.version)
        out.varint(self.key_count).varint(len(self.fields))
        for item in self.fields:
            out.varint(item.number).text(item.name).u8(item.type).varint(item.constraints)
            if item.type == CHOICE:
                out.varint(len(item.values))
                for number, name in sorted(item.values.items()):
                    out.varint(number).text(name)
        out.varint(len(self.label))
        for number in self.label:
            out.varint(number)
        return out.done()

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Kind":
        """From the form of `Protocol/kinds/*.json`. Without number or version, or with 0, it is a draft."""
        fields = []
        for item in form["fields"]:
            constraints = sum(bit for name, bit in _CONSTRAINTS if item.get(name))
            values = {int(number): name for number, name in item.get("values", {}).items()}
            fields.append(Field(item["number"], item["name"], TYPE_NUMBERS[item["type"]], constraints, values))
        fields.sort(key=lambda item: item.number)
        names = {item.name: item.number for item in fields}
        key = list(form["key"])
        if [names.get(name) for name in key] != list(range(1, len(key) + 1)):
            raise EncodeError("bad_message", "the key is not the fields 1 ... k in their order", form["kind"])
        number, version = form.get("number", 0), form.get("version", 0)
        return cls(number, form["kind"], version, fields, len(key), [names[name] for name in form.get("label", ())],
                   is_draft=number == 0 or version == 0)

    def to_json(self) -> Dict[str, Any]:
        """The same form, without what is only for people (`about`)."""
        fields = []
        for item in self.fields:
            entry: Dict[str, Any] = {"number": item.number, "name": item.name, "type": item.type_name}
            entry.update((name, True) for name, bit in _CONSTRAINTS if item.constraints & bit)
            if item.type == CHOICE:
                entry["values"] = {str(number): name for number, name in sorted(item.values.items())}
            fields.append(entry)
        return {"kind": self.name, "number": self.number, "version": self.version,
                "key": [item.name for item in self.key_fields],
                "label": [self.by_number[number].name for number in self.label], "fields": fields}

    def label_of(self, record: Mapping[str, Any]) -> Optional[str]:
        """What to call a record: the first label field that is present and not blank."""
        for number in self.label:
            value = record.get(self.by_number[number].name)
            if value is not None and not (isinstance(value, str) and is_blank(value)):
                return str(value)
        return None


def field_problem(item: Field, last: int) -> str:
    """What is wrong with a field that follows the field numbered `last`; empty when nothing is."""
    if not 1 <= item.number <= 256 or item.number <= last:
        return f"the field number {item.number}: 1 ... 256, ascending"
    if not _NAME.match(item.name):
        return f"{item.name!r} is not a name"
    if item.type not in TYPE_NAMES:
        return f"there is no type {item.type}"
    if item.constraints & ~31:
        return f"constraints of {item.constraints}"
    if item.not_blank and item.type != TEXT or item.not_zero and item.type not in (INT, IDENTIFIER):
        return "not blank is for texts, not zero for identifiers and ints"
    if (item.type == CHOICE) != bool(item.values):
        return "a choice has values, no other type has"
    if item.values and not (1 <= min(item.values) and max(item.values) <= NUMBER_MAX and all(item.values.values())
                            and len(set(item.values.values())) == len(item.values)):
        return f"the values of a choice are 1 ... {NUMBER_MAX}, each with a name of its own"
    return ""


def _number(reader: Reader, what: str, most: int = NUMBER_MAX, least: int = 1) -> int:
    at = reader.offset
    value = reader.varint()
    if not least <= value <= most:
        raise DecodeError("bad_message", at, f"{what} is {least} ... {most}")
    return value


def _name(reader: Reader) -> str:
    at = reader.offset
    name = reader.text()
    if not _NAME.match(name):
        raise DecodeError("bad_message", at, f"{name!r} is not a name")
    return name


def _read_field(reader: Reader) -> Field:
    number = _number(reader, "a field's number", 256)
    name = _name(reader)
    at = reader.offset
    type_number = reader.u8()
    if type_number not in TYPE_NAMES:
        raise DecodeError("bad_message", at, f"there is no type {type_number}")
    at = reader.offset
    constraints = reader.varint()
    probe = field_problem(Field(1, name, type_number, constraints, {1: "x"} if type_number == CHOICE else {}), 0)
    if probe:
        raise DecodeError("bad_message", at, probe)
    values: Dict[int, str] = {}
    if type_number == CHOICE:
        at = reader.offset
        count = reader.count()
        if count == 0:
            raise DecodeError("bad_message", at, "a choice without values")
        last = 0
        for _ in range(count):
            at = reader.offset
            value = _number(reader, "a choice's value")
            if value <= last:
                raise DecodeError("bad_message", at, f"the value {value} after {last}: they ascend")
            text = reader.text()
            if not text or text in values.values():
                raise DecodeError("bad_message", at, f"the name of the value {value} is empty or taken")
            values[value] = text
            last = value
    return Field(number, name, type_number, constraints, values)
