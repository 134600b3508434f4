"""Layouts: how the fields of message bodies lie one behind the other, as values that read and write dicts."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .codec import Reader, Writer
from .errors import DecodeError, EncodeError
from .kinds import Kind
from .varint import U64_MAX


class Layout:
    """One shape of bytes. `get` reads a value where the reader is; `put` writes one."""

    #: What `put` takes when a message's field is not given; `...` when it must be.
    default: Any = ...

    def get(self, reader: Reader) -> Any:
        raise NotImplementedError

    def put(self, writer: Writer, value: Any) -> None:
        raise NotImplementedError


class Primitive(Layout):
    """A primitive of FORMAT.md section 1, by its `Reader` and `Writer` method."""

    def __init__(self, name: str, default: Any = ...) -> None:
        self.name = name
        self.default = default

    def get(self, reader: Reader) -> Any:
        return getattr(reader, self.name)()

    def put(self, writer: Writer, value: Any) -> None:
        getattr(writer, self.name)(value)


class Checked(Layout):
    """A primitive whose value must satisfy a rule: else `bad_message` where it begins."""

    def __init__(self, base: Layout, holds: Callable[[Any], bool], rule: str, default: Any = ...) -> None:
        self.base = base
        self.holds = holds
        self.rule = rule
        self.default = default

    def get(self, reader: Reader) -> Any:
        at = reader.offset
        value = self.base.get(reader)
        if not self.holds(value):
            raise DecodeError("bad_message", at, f"{value!r} is not {self.rule}")
        return value

    def put(self, writer: Writer, value: Any) -> None:
        if not self.holds(value):
            raise EncodeError("bad_message", f"{value!r} is not {self.rule}")
        self.base.put(writer, value)


class Judged(Layout):
    """A field that must suit the ones before it: `problem` is told all of them, and this one, and says what is wrong."""

    def __init__(self, base: Layout, problem: Callable[[Mapping[str, Any]], str]) -> None:
        self.base = base
        self.problem = problem
        self.default = base.default

    def get(self, reader: Reader) -> Any:
        return self.base.get(reader)

    def put(self, writer: Writer, value: Any) -> None:
        self.base.put(writer, value)


class ListOf(Layout):
    """A varint count, then as many items; at least `least`, at most `most`."""

    default: Any = ()

    def __init__(self, item: Layout, least: int = 0, most: int = U64_MAX) -> None:
        self.item = item
        self.least = least
        self.most = most
        if least:
            self.default = ...

    def _problem(self, count: int) -> str:
        if count < self.least:
            return f"{count} items, at least {self.least} are needed"
        return f"{count} items, at most {self.most} may be" if count > self.most else ""

    def get(self, reader: Reader) -> List[Any]:
        at = reader.offset
        count = reader.count()
        if self._problem(count):
            raise DecodeError("bad_message", at, self._problem(count))
        return [self.item.get(reader) for _ in range(count)]

    def put(self, writer: Writer, value: Any) -> None:
        if self._problem(len(value)):
            raise EncodeError("bad_message", self._problem(len(value)))
        writer.varint(len(value))
        for item in value:
            self.item.put(writer, item)


class When(Layout):
    """A field that is there only when the fields before it say so; else it takes no bytes and its value is None."""

    default = None

    def __init__(self, base: Layout, present: Callable[[Mapping[str, Any]], bool]) -> None:
        self.base = base
        self.present = present

    def get(self, reader: Reader) -> Any:
        return self.base.get(reader)

    def put(self, writer: Writer, value: Any) -> None:
        self.base.put(writer, value)


class Struct(Layout):
    """Named fields one behind the other, as a dict. `rule` tells what is wrong with the whole, or nothing."""

    def __init__(self, *fields: Tuple[str, Layout], rule: Optional[Callable[[Mapping[str, Any]], str]] = None) -> None:
        self.fields = fields
        self.rule = rule

    def get(self, reader: Reader) -> Dict[str, Any]:
        at = reader.offset
        value: Dict[str, Any] = {}
        for name, layout in self.fields:
            if isinstance(layout, When) and not layout.present(value):
                continue
            begin = reader.offset
            value[name] = layout.get(reader)
            wrong = layout.problem(value) if isinstance(layout, Judged) else ""
            if wrong:
                raise DecodeError("bad_message", begin, wrong)
        if self.rule and self.rule(value):
            raise DecodeError("bad_message", at, self.rule(value))
        return value

    def put(self, writer: Writer, value: Mapping[str, Any]) -> None:
        unknown = set(value) - {name for name, _ in self.fields}
        if unknown:
            raise EncodeError("bad_message", f"there is no {', '.join(sorted(unknown))} in this message")
        if self.rule and self.rule(value):
            raise EncodeError("bad_message", self.rule(value))
        for name, layout in self.fields:
            item = value.get(name, layout.default)
            if isinstance(layout, When):
                if layout.present(value) != (item is not None):
                    raise EncodeError("bad_message", f"{name} belongs here only where it is announced")
                if item is None:
                    continue
            if item is ...:
                raise EncodeError("bad_message", f"{name} is needed")
            wrong = layout.problem({**value, name: item}) if isinstance(layout, Judged) else ""
            if wrong:
                raise EncodeError("bad_message", wrong)
            layout.put(writer, item)


class Declaration(Layout):
    """A kind declaration."""

    def get(self, reader: Reader) -> Kind:
        return Kind.read(reader)

    def put(self, writer: Writer, value: Kind) -> None:
        writer.raw(value.encode())


class Draft(Declaration):
    """A kind declaration whose number and version may be 0: left to the library."""

    def get(self, reader: Reader) -> Kind:
        return Kind.read(reader, is_draft=True)


class Rest(Layout):
    """Bytes up to the end of the body, after a check that may refuse them."""

    def __init__(self, check: Optional[Callable[[bytes, int], None]] = None) -> None:
        self.check = check

    def get(self, reader: Reader) -> bytes:
        if self.check:
            self.check(reader.data, reader.offset)
        return reader.rest()

    def put(self, writer: Writer, value: bytes) -> None:
        writer.raw(value)


U8, U32, U64, I64, VARINT, SVARINT, TEXT, BYTES = (
    Primitive(name) for name in ("u8", "u32", "u64", "i64", "varint", "svarint", "text", "bytes"))
EMPTY_TEXT = Primitive("text", "")
EMPTY_BYTES = Primitive("bytes", b"")
ZERO = Primitive("varint", 0)


def among(base: Layout, *values: int) -> Checked:
    """A number that is one of a few."""
    return Checked(base, lambda value: value in values, f"one of {values}")


def flags(base: Layout, mask: int) -> Checked:
    """Bits of which only those of `mask` may be set; 0 when not given."""
    return Checked(base, lambda value: value & ~mask == 0, f"flags within {mask}", default=0)


def within(base: Layout, least: int, most: int, default: Any = ...) -> Checked:
    """A number of a range."""
    return Checked(base, lambda value: least <= value <= most, f"in {least} ... {most}", default)


def sized(base: Layout, least: int, most: int, default: Any = ...) -> Checked:
    """A text or bytes of so many bytes."""

    def holds(value: Any) -> bool:
        return least <= len(value.encode() if isinstance(value, str) else value) <= most

    return Checked(base, holds, f"of {least} ... {most} bytes", default)


def counts(names: Sequence[str]) -> List[Tuple[str, Layout]]:
    """Varints with names, 0 when not given."""
    return [(name, ZERO) for name in names]
