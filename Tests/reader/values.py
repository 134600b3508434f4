"""Values, kinds and records of a Larder library (FORMAT.md sections 1 to 4), and their JSON form (SPEC.md section 4).

Reading only, and strict: a value has one encoding and every other raises Bad.
"""
import base64
import struct
import unicodedata

TYPES = {1: "bool", 2: "int", 3: "number", 4: "text", 5: "identifier", 6: "bytes", 7: "date", 8: "time", 9: "uuid",
         10: "choice", 11: "list"}
TIME_MIN, TIME_MAX = -377705116800000, 253402300799999
INT64_MAX = 2 ** 63 - 1
WHITE = set(map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
                      0x3000]))
NAME_REST = "abcdefghijklmnopqrstuvwxyz0123456789_"


class Bad(Exception):
    """Bytes that do not parse; the text names what was seen."""


class UnknownField(Bad):
    """A bit for a field that the kind does not declare: the end of its value cannot be known."""


class Bytes:
    """A cursor over data[pos:end]."""

    def __init__(self, data, pos=0, end=None):
        self.data, self.pos, self.end = data, pos, len(data) if end is None else end

    def take(self, count):
        if count > self.end - self.pos:
            raise Bad(f"{count} bytes needed, {self.end - self.pos} left")
        self.pos += count
        return bytes(self.data[self.pos - count:self.pos])

    def rest(self):
        return self.take(self.end - self.pos)

    def finish(self):
        if self.pos != self.end:
            raise Bad(f"{self.end - self.pos} bytes too many")

    def u8(self):
        return self.take(1)[0]

    def fixed(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def varint(self):
        value = shift = 0
        while True:
            byte = self.u8()
            if shift == 63 and byte > 1:
                raise Bad("a varint of more than 64 bits")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise Bad("a varint that is not the shortest")
                return value
            shift += 7

    def svarint(self):
        n = self.varint()
        return (n >> 1) ^ -(n & 1)

    def utf8(self, count):
        try:
            text = self.take(count).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Bad("not UTF-8") from error
        if "\0" in text:
            raise Bad("U+0000 in a text")
        return text

    def text(self):
        return self.utf8(self.varint())


def is_plain_decimal(text):
    digits = text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
    return digits and len(text) <= 19 and int(text) <= INT64_MAX


def number(mantissa, exponent):
    """The JSON form of mantissa x 10^exponent: as ECMAScript's Number-to-String places the point."""
    sign, digits = ("-" if mantissa < 0 else ""), str(abs(mantissa))
    point = len(digits) + exponent               # the value is 0.digits x 10^point
    if mantissa == 0:
        return "0"
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def year_text(year):
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


def date(packed):
    day, quotient = packed % 32, packed // 32
    month, year = quotient % 13, quotient // 13
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [0, 31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
    if not -9999 <= year <= 9999 or day > days:
        raise Bad("a date that does not exist")
    return year_text(year) + (f"-{month:02d}" if month else "") + (f"-{day:02d}" if day else "")


def time(ms):
    """ISO 8601 of milliseconds since 1970, proleptic Gregorian (days to civil date as in Hinnant's algorithms)."""
    if not TIME_MIN <= ms <= TIME_MAX:
        raise Bad("a time outside the years -9999 to 9999")
    days, ms = divmod(ms, 86400000)
    era, doe = divmod(days + 719468, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    return (f"{year_text(year)}-{month:02d}-{doy - (153 * mp + 2) // 5 + 1:02d}T{ms // 3600000:02d}:"
            f"{ms // 60000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z")


class Raw(str):
    """Text that stands in JSON as it is (a number of any size)."""


def quote(text):
    out = ['"']
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    for char in text:
        out.append(short.get(char) or (f"\\u{ord(char):04x}" if char < " " else char))
    return "".join(out) + '"'


def dump(value):
    """Compact JSON, names in the order given, non-ASCII verbatim."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join(quote(name) + ":" + dump(item) for name, item in value.items()) + "}"
    return "[" + ",".join(map(dump, value)) + "]"


class Field:
    def __init__(self, b):
        self.number, self.name, self.type, self.constraints = b.varint(), b.text(), b.u8(), b.varint()
        if not 1 <= self.number <= 256 or self.type not in TYPES or self.constraints > 31:
            raise Bad(f"a field declaration out of range: {self.name}")
        check_name(self.name)
        self.values, last = {}, 0
        if self.type == 10:
            for _ in range(b.varint()):
                value, name = b.varint(), b.text()
                if value <= last:
                    raise Bad("the values of a choice do not ascend")
                self.values[value], last = name, value
            if not self.values:
                raise Bad("a choice without values")

    def value(self, b):
        """One value, checked, in its JSON form."""
        kind = TYPES[self.type]
        if kind == "bool":
            byte = b.u8()
            if byte > 1:
                raise Bad("a bool that is neither 0 nor 1")
            return byte == 1
        if kind == "int":
            return self.nonzero(b.svarint())
        if kind == "number":
            mantissa, exponent = b.svarint(), b.svarint()
            if (exponent if mantissa == 0 else mantissa % 10 == 0) or abs(exponent) > 400:
                raise Bad("a number that is not canonical")
            return Raw(number(mantissa, exponent))
        if kind == "text":
            text = b.text()
            if self.constraints & 2 and all(char in WHITE for char in text):
                raise Bad(f"{self.name} is blank")
            return text
        if kind == "identifier":
            h = b.varint()
            if h % 2 == 0:
                return self.nonzero(h // 2)
            text = b.utf8(h // 2)
            if not text or is_plain_decimal(text):
                raise Bad("an identifier that is not canonical")
            return text
        if kind == "bytes":
            return base64.b64encode(b.take(b.varint())).decode()
        if kind == "date":
            return date(b.svarint())
        if kind == "time":
            return time(b.svarint())
        if kind == "uuid":
            h = b.take(16).hex()
            return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        if kind == "choice":
            value = b.varint()
            if value not in self.values:
                raise Bad(f"{self.name} has no choice {value}")
            return self.values[value]
        count = b.varint()
        if count > b.end - b.pos:
            raise Bad("a list of more texts than bytes")
        return [b.text() for _ in range(count)]

    def nonzero(self, value):
        if value == 0 and self.constraints & 4:
            raise Bad(f"{self.name} is zero")
        return value


def check_name(name):
    if not 1 <= len(name) <= 64 or not "a" <= name[0] <= "z" or any(char not in NAME_REST for char in name):
        raise Bad(f"not a name: {name!r}")


class Kind:
    """A kind declaration. A draft, that of DEFINE, may leave number and version to the library: 0."""

    def __init__(self, b, is_draft=False):
        self.number, self.name, self.version, self.key_count = b.varint(), b.text(), b.varint(), b.varint()
        check_name(self.name)
        fields = [Field(b) for _ in range(b.varint())]
        self.fields = {field.number: field for field in fields}
        numbers = [field.number for field in fields]
        is_unnumbered = not is_draft and not (self.number and self.version)
        if numbers != sorted(set(numbers)) or is_unnumbered or not self.key_count:
            raise Bad("a kind declaration out of order")
        for n in range(1, self.key_count + 1):
            field = self.fields.get(n)
            if field is None or not field.constraints & 1 or field.constraints & 16 or field.type in (6, 11):
                raise Bad(f"field {n} cannot be part of a key")
        if any(b.varint() not in self.fields for _ in range(b.varint())):
            raise Bad("a label field that is not declared")

    def key_value(self, b, n):
        value = self.fields[n].value(b)
        if isinstance(value, str) and not isinstance(value, Raw) and not unicodedata.is_normalized("NFC", value):
            raise Bad("text in a key that is not in NFC")
        return value

    def key_text(self, key):
        b = Bytes(key)
        parts = [self.key_value(b, n) for n in range(1, self.key_count + 1)]
        b.finish()
        plain = [part if isinstance(part, str) else dump(part) for part in parts]
        return self.name + ":" + "/".join(part.replace("%", "%25").replace("/", "%2F") for part in plain)

    def record(self, data):
        """(key bytes, fields in JSON form), the fields None where one is not declared."""
        b = Bytes(data)
        bitmap = b.take(b.u8())
        if len(data) > 1 << 20 or len(bitmap) > 32 or (bitmap and bitmap[-1] == 0):
            raise Bad("a record that is too large, or with a bitmap that is not the shortest")
        present = [8 * i + j + 1 for i, byte in enumerate(bitmap) for j in range(8) if byte >> j & 1]
        if present[:self.key_count] != list(range(1, self.key_count + 1)):
            raise Bad("a record without its key")
        start, fields, key = b.pos, {}, None
        for n in present:
            if n not in self.fields:
                return key, None
            fields[self.fields[n].name] = self.key_value(b, n) if n <= self.key_count else self.fields[n].value(b)
            if n == self.key_count:
                key = bytes(data[start:b.pos])
        b.finish()
        missing = [f.name for f in self.fields.values() if f.constraints & 1 and f.name not in fields]
        if missing:
            raise Bad("a record without " + ", ".join(missing))
        return key, fields
