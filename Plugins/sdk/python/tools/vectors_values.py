"""The vectors of primitives, values, kinds, records and keys."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from vectorio import PROTOCOL, decode_value, encode_record, encode_value, number_form

from larder import keys, values
from larder.decimals import parts_of
from larder.kinds import Kind
from larder.varint import svarint, varint

Vector = Dict[str, Any]
FAMILY = "\U0001F468\u200d\U0001F469\u200d\U0001F467"


def ok(name: str, hexes: str, value: Any, **more: Any) -> Vector:
    return {"name": name, **more, "hex": hexes.replace(" ", "").lower(), "value": value}


def bad(name: str, hexes: str, error: str, offset: int, **more: Any) -> Vector:
    return {"name": name, **more, "hex": hexes.replace(" ", "").lower(), "error": error, "offset": offset}


def primitives() -> Dict[str, Any]:
    full = "ff" * 9
    valid = [
        ok("varint 0", "00", 0, type="varint"), ok("varint 1", "01", 1, type="varint"),
        ok("varint 127", "7f", 127, type="varint"), ok("varint 128", "8001", 128, type="varint"),
        ok("varint 16383", "ff7f", 16383, type="varint"), ok("varint 16384", "808001", 16384, type="varint"),
        ok("varint 2^32 - 1", "ffffffff0f", 2**32 - 1, type="varint"),
        ok("varint 2^63 - 1", "ffffffffffffffff7f", 2**63 - 1, type="varint"),
        ok("varint 2^63", "80808080808080808001", 2**63, type="varint"),
        ok("varint 2^64 - 1", full + "01", 2**64 - 1, type="varint"),
        ok("svarint 0", "00", 0, type="svarint"), ok("svarint -1", "01", -1, type="svarint"),
        ok("svarint 1", "02", 1, type="svarint"), ok("svarint -2", "03", -2, type="svarint"),
        ok("svarint 63", "7e", 63, type="svarint"), ok("svarint -64", "7f", -64, type="svarint"),
        ok("svarint 64", "8001", 64, type="svarint"),
        ok("svarint 2^63 - 1", "fe" + "ff" * 8 + "01", 2**63 - 1, type="svarint"),
        ok("svarint -2^63", full + "01", -2**63, type="svarint"),
        ok("text empty", "00", "", type="text"), ok("text ASCII", "04746d6462", "tmdb", type="text"),
        ok("text Hangul in NFC", "03 ed959c", "\ud55c", type="text"),
        ok("text Hangul in NFD stays as given", "09 e18492 e185a1 e186ab", "\u1112\u1161\u11ab", type="text"),
        ok("text of the highest scalar", "04 f48fbfbf", "\U0010ffff", type="text"),
        ok("text of the scalars around the surrogates", "06 ed9fbf ee8080", "\ud7ff\ue000", type="text"),
        ok("text of a noncharacter", "03 efbfbf", "\uffff", type="text"),
        ok("text of an emoji with joiners", "12 f09f91a8 e2808d f09f91a9 e2808d f09f91a7", FAMILY, type="text"),
        ok("text with a byte order mark", "04 efbbbf 61", "\ufeffa", type="text"),
        ok("text of 128 bytes", "8001" + "61" * 128, "a" * 128, type="text"),
        ok("bytes empty", "00", "", type="bytes"), ok("bytes of any value", "03 00ff80", "00ff80", type="bytes"),
        ok("u8", "ff", 255, type="u8"), ok("u16", "0201", 258, type="u16"), ok("u32", "04030201", 0x01020304, type="u32"),
        ok("u64", "0807060504030201", 0x0102030405060708, type="u64"),
        ok("u64 largest", "ff" * 8, 2**64 - 1, type="u64"), ok("i64 -1", "ff" * 8, -1, type="i64"),
        ok("i64 least", "00" * 7 + "80", -2**63, type="i64"),
    ]
    invalid = [
        bad("varint of nothing", "", "truncated", 0, type="varint"),
        bad("varint cut", "80", "truncated", 0, type="varint"),
        bad("varint cut after nine bytes", full, "truncated", 0, type="varint"),
        bad("varint 0 in two bytes", "8000", "not_canonical", 0, type="varint"),
        bad("varint 127 in two bytes", "ff00", "not_canonical", 0, type="varint"),
        bad("varint with a tenth byte of 0", full + "00", "not_canonical", 0, type="varint"),
        bad("varint with a tenth byte of 2", full + "02", "not_canonical", 0, type="varint"),
        bad("varint of 11 bytes", "80" * 10 + "01", "not_canonical", 0, type="varint"),
        bad("svarint cut", "ff", "truncated", 0, type="svarint"),
        bad("svarint 0 in two bytes", "8000", "not_canonical", 0, type="svarint"),
        bad("text longer than the bytes left", "05746d6462", "truncated", 0, type="text"),
        bad("text with a lying huge count", full + "01" + "61", "truncated", 0, type="text"),
        bad("text without its count's end", "80", "truncated", 0, type="text"),
        bad("text whose count is not the shortest", "810061", "not_canonical", 0, type="text"),
        bad("text with U+0000", "03 610062", "bad_text", 0, type="text"),
        bad("text with U+0000 in two bytes", "02 c080", "bad_text", 0, type="text"),
        bad("text with an overlong slash", "02 c0af", "bad_text", 0, type="text"),
        bad("text overlong in three bytes", "03 e09f80", "bad_text", 0, type="text"),
        bad("text overlong in four bytes", "04 f08f8080", "bad_text", 0, type="text"),
        bad("text with a surrogate", "03 eda080", "bad_text", 0, type="text"),
        bad("text with a pair of surrogates", "06 eda081 edb080", "bad_text", 0, type="text"),
        bad("text above U+10FFFF", "04 f4908080", "bad_text", 0, type="text"),
        bad("text with a byte that never occurs", "01 ff", "bad_text", 0, type="text"),
        bad("text with a lone continuation", "01 80", "bad_text", 0, type="text"),
        bad("text cut inside a character", "02 ed95", "bad_text", 0, type="text"),
        bad("bytes longer than the bytes left", "0300ff", "truncated", 0, type="bytes"),
        bad("u8 of nothing", "", "truncated", 0, type="u8"), bad("u16 cut", "02", "truncated", 0, type="u16"),
        bad("u32 cut", "040302", "truncated", 0, type="u32"), bad("u64 cut", "08070605040302", "truncated", 0, type="u64"),
        bad("i64 cut", "ff" * 7, "truncated", 0, type="i64"),
        bad("a byte behind a varint", "0100", "trailing", 1, type="varint"),
    ]
    return {"about": "Primitives, FORMAT.md section 1. Each vector is one primitive and nothing behind it.",
            "valid": valid, "invalid": invalid}


def _value(type_name: str, name: str, value: Any, **more: Any) -> Vector:
    vector = {"name": f"{type_name} {name}", "type": type_name, **more, "hex": "", "value": value}
    vector["hex"] = encode_value(vector).hex()
    assert decode_value(vector, bytes.fromhex(vector["hex"])) == value
    return vector


def _numbers() -> List[Vector]:
    cases = [0, 1, -1, 10, 100, 603, 2**63 - 1, -2**63, 10**18, -0.1, 0.1, 8.6, 7.0, -0.0, 1e300, 1e22, 5e-324,
             1.7976931348623157e308, 2.2250738585072014e-308, 0.30000000000000004, 123456789.125]
    vectors = []
    for case in cases:
        mantissa, exponent = parts_of(case)
        vectors.append(_value("number", repr(case) + (" of a double" if isinstance(case, float) else ""),
                              number_form(mantissa, exponent)))
    for mantissa, exponent in ((1, 400), (-1, -400), (2**63 - 1, 400), (-2**63, -400)):
        vectors.append({"name": f"number {mantissa} x 10^{exponent}", "type": "number",
                        "hex": (svarint(mantissa) + svarint(exponent)).hex(), "value": number_form(mantissa, exponent)})
    return vectors


def _dates() -> List[Vector]:
    named = {"1999": "a year", "1999-03": "a month", "1999-03-31": "a day", "0000": "year 0, which is 1 BC",
             "-0001": "a year BCE", "-0044-03-15": "a day BCE", "-0001-12": "a month BCE", "2000-02-29": "a leap day",
             "2024-02-29": "another leap day", "0000-02-29": "the leap day of year 0", "-0004-02-29": "a leap day BCE",
             "-9999": "the first year", "-9999-01-01": "the first day", "9999-12-31": "the last day",
             "1582-10-10": "a day that the Julian reform left out", "1970-01-01": "the day of the epoch"}
    return [_value("date", name, text) for text, name in named.items()]


def value_vectors() -> Dict[str, Any]:
    choices = {"1": "movie", "2": "tv", "300": "유행어"}
    valid = [ok("bool false", "00", False, type="bool"), ok("bool true", "01", True, type="bool"),
             *(_value("int", str(n), n) for n in (0, 1, -1, 136, 2**53 + 1, 2**63 - 1, -2**63)), *_numbers(),
             _value("text", "empty", ""), _value("text", "The Matrix", "The Matrix"), _value("text", "family", FAMILY),
             _value("text", "in NFD", "\u1112\u1161\u11ab"),
             ok("identifier 0", "00", 0, type="identifier"), ok("identifier 603", "b609", 603, type="identifier"),
             _value("identifier", "2^63 - 1", 2**63 - 1),
             _value("identifier", "with a leading zero", "0140449132"), _value("identifier", "00", "00"),
             _value("identifier", "tt0133093", "tt0133093"), _value("identifier", "-1", "-1"),
             _value("identifier", "+1", "+1"), _value("identifier", "2^63 is no number", str(2**63)),
             _value("identifier", "2^64 + 1 is no number", str(2**64 + 1)),
             _value("identifier", "with a space", "603 "), _value("identifier", "of other digits", "\u0666\u0660\u0663"),
             _value("identifier", "한", "한"), _value("identifier", "of 64 bytes, a head of two", "x" * 64),
             _value("bytes", "empty", ""), _value("bytes", "of any value", "AP+A"), *_dates(),
             *(_value("time", name, text) for name, text in (
                 ("0", "1970-01-01T00:00:00.000Z"), ("1 ms before 1970", "1969-12-31T23:59:59.999Z"),
                 ("of a release", "1999-03-31T08:00:00.000Z"), ("first", "-9999-01-01T00:00:00.000Z"),
                 ("last", "9999-12-31T23:59:59.999Z"), ("year 0", "0000-02-29T12:34:56.789Z"))),
             _value("uuid", "in printed order", "00112233-4455-6677-8899-aabbccddeeff"),
             _value("uuid", "nil", "00000000-0000-0000-0000-000000000000"),
             _value("choice", "1", "movie", values=choices), _value("choice", "300", "유행어", values=choices),
             _value("list", "empty", []), _value("list", "of an empty text", [""]),
             _value("list", "in the order given, twice the same", ["b", "a", "b"]),
             _value("list", "of 130", ["x"] * 130)]

    def date(year: int, month: int, day: int) -> str:
        return svarint((year * 13 + month) * 32 + day).hex()

    def number(mantissa: int, exponent: int) -> str:
        return (svarint(mantissa) + svarint(exponent)).hex()

    digits, huge = b"603".hex(), str(2**63 - 1).encode()
    invalid = [
        bad("bool of nothing", "", "truncated", 0, type="bool"), bad("bool 2", "02", "out_of_range", 0, type="bool"),
        bad("bool with a byte behind it", "0100", "trailing", 1, type="bool"),
        bad("int not the shortest", "8000", "not_canonical", 0, type="int"),
        bad("number without exponent", "02", "truncated", 1, type="number"),
        bad("number with a cut exponent", "0280", "truncated", 1, type="number"),
        bad("number with an exponent that is not the shortest", "028000", "not_canonical", 1, type="number"),
        bad("number 10 with a trailing zero", number(10, 0), "not_canonical", 0, type="number"),
        bad("number -10 with a trailing zero", number(-10, 0), "not_canonical", 0, type="number"),
        bad("number 0 with an exponent", number(0, 1), "not_canonical", 0, type="number"),
        bad("number with the exponent 401", number(1, 401), "out_of_range", 0, type="number"),
        bad("number with the exponent -401", number(1, -401), "out_of_range", 0, type="number"),
        bad("number with the least exponent of 64 bits", number(1, -2**63), "out_of_range", 0, type="number"),
        bad("text with U+0000", "0100", "bad_text", 0, type="text"),
        bad("identifier of nothing", "", "truncated", 0, type="identifier"),
        bad("identifier of an empty text", "01", "not_canonical", 0, type="identifier"),
        bad("identifier 603 as text", "07" + digits, "not_canonical", 0, type="identifier"),
        bad("identifier 0 as text", "0330", "not_canonical", 0, type="identifier"),
        bad("identifier 2^63 - 1 as text", varint(len(huge) << 1 | 1).hex() + huge.hex(), "not_canonical", 0,
            type="identifier"),
        bad("identifier of a text that is cut", "09" + digits, "truncated", 0, type="identifier"),
        bad("identifier with a surrogate", "07eda080", "bad_text", 0, type="identifier"),
        bad("identifier with U+0000", "056100", "bad_text", 0, type="identifier"),
        bad("bytes cut", "0201", "truncated", 0, type="bytes"),
        bad("date with a day and month 0", date(1999, 0, 1), "out_of_range", 0, type="date"),
        bad("date February 29 of a common year", date(1999, 2, 29), "out_of_range", 0, type="date"),
        bad("date February 29 of 1900", date(1900, 2, 29), "out_of_range", 0, type="date"),
        bad("date February 30", date(2000, 2, 30), "out_of_range", 0, type="date"),
        bad("date April 31", date(1999, 4, 31), "out_of_range", 0, type="date"),
        bad("date of the year 10000", date(10000, 0, 0), "out_of_range", 0, type="date"),
        bad("date of the year -10000", date(-10000, 0, 0), "out_of_range", 0, type="date"),
        bad("date of the year -10000, last day", date(-10000, 12, 31), "out_of_range", 0, type="date"),
        bad("date of the largest svarint", svarint(2**63 - 1).hex(), "out_of_range", 0, type="date"),
        bad("date of the least svarint", svarint(-2**63).hex(), "out_of_range", 0, type="date"),
        bad("time before the year -9999", svarint(-377705116800001).hex(), "out_of_range", 0, type="time"),
        bad("time after the year 9999", svarint(253402300800000).hex(), "out_of_range", 0, type="time"),
        bad("uuid cut", "00" * 15, "truncated", 0, type="uuid"),
        bad("choice 0", "00", "unknown_choice", 0, type="choice", values=choices),
        bad("choice of an undeclared number", "03", "unknown_choice", 0, type="choice", values=choices),
        bad("choice of nothing", "", "truncated", 0, type="choice", values=choices),
        bad("list of a lying count", "05 0161", "truncated", 0, type="list"),
        bad("list of a lying huge count", "ff" * 9 + "01", "truncated", 0, type="list"),
        bad("list whose last text is cut", "02 0161 0262", "truncated", 3, type="list"),
        bad("list with a text that is not UTF-8", "02 0161 01ff", "bad_text", 3, type="list"),
    ]
    return {"about": "Values, FORMAT.md section 2. Each vector is one value and nothing behind it.",
            "valid": valid, "invalid": invalid}


SAMPLE: Dict[str, Any] = {
    "kind": "sample", "number": 64, "version": 3, "key": ["a", "when"], "label": ["blob_name", "a"], "fields": [
        {"number": 1, "name": "a", "type": "text", "required": True, "not_blank": True},
        {"number": 2, "name": "when", "type": "date", "required": True},
        {"number": 3, "name": "yes", "type": "bool"}, {"number": 4, "name": "amount", "type": "number"},
        {"number": 5, "name": "blob", "type": "bytes"}, {"number": 6, "name": "blob_name", "type": "text"},
        {"number": 7, "name": "at", "type": "time", "indexed": True}, {"number": 8, "name": "uid", "type": "uuid"},
        {"number": 9, "name": "sort", "type": "choice", "values": {"1": "one", "7": "seven"}},
        {"number": 10, "name": "words", "type": "list", "personal": True},
        {"number": 17, "name": "count", "type": "int", "not_zero": True},
        {"number": 18, "name": "external", "type": "identifier", "not_zero": True},
        {"number": 256, "name": "last", "type": "text"}]}
MIXED: Dict[str, Any] = {
    "kind": "mixed", "number": 65, "version": 1, "key": ["yes", "whole", "amount", "uid", "at", "id"], "label": [],
    "fields": [
        {"number": 1, "name": "yes", "type": "bool", "required": True},
        {"number": 2, "name": "whole", "type": "int", "required": True},
        {"number": 3, "name": "amount", "type": "number", "required": True},
        {"number": 4, "name": "uid", "type": "uuid", "required": True},
        {"number": 5, "name": "at", "type": "time", "required": True},
        {"number": 6, "name": "id", "type": "identifier", "required": True}]}


def shipped() -> List[Dict[str, Any]]:
    """The shipped kinds without what is only for people."""
    forms = []
    for name in ("title", "book", "joke"):
        form = json.loads((PROTOCOL / "kinds" / f"{name}.json").read_text(encoding="utf-8"))
        forms.append(Kind.from_json(form).to_json())
    return forms


def kind_vectors() -> Dict[str, Any]:
    small: Dict[str, Any] = {"kind": "k", "number": 64, "version": 1, "key": ["a"], "label": [], "fields": [
        {"number": 1, "name": "a", "type": "text", "required": True}]}
    longest = {**small, "kind": "k" * 64, "number": 2**31 - 1, "version": 300}
    largest = {**small, "kind": "largest", "number": 2**31 - 1, "version": 2**31 - 1, "fields": [
        {"number": 1, "name": "a", "type": "choice", "required": True, "values": {str(2**31 - 1): "x"}},
        {"number": 256, "name": "b", "type": "int", "not_zero": True, "indexed": True, "personal": True}]}
    forms = [*shipped(), SAMPLE, MIXED, small, longest, largest]
    valid = [ok(f"kind {form['kind'][:8]}" + (" of a long name" if form is longest else ""),
                Kind.from_json(form).encode().hex(), form) for form in forms]
    # number 64, name "k", version 1, key 1, fields 1: number 1 "a" text required; label 0
    assert Kind.from_json(small).encode().hex() == "40016b010101" + "010161" + "0401" + "00"

    def err(name: str, hexes: str, offset: int, error: str = "bad_message") -> Vector:
        return bad(name, hexes.replace(" ", ""), error, offset)

    head, first = "40016b01", "0101610401"
    invalid = [
        err("nothing", "", 0), err("number 0", "00016b0101" "01" + first + "00", 0),
        err("empty name", "4000010101" + first + "00", 1), err("name with an upper case letter", "40014b010101" + first + "00", 1),
        err("name that begins with a digit", "400131010101" + first + "00", 1),
        err("name of 65 bytes", "4041" + "6b" * 65 + "010101" + first + "00", 1),
        err("number 2^31", "8080808008016b010101" + first + "00", 0),
        err("number of 64 bits", "ff" * 9 + "01016b010101" + first + "00", 0),
        err("number that is not the shortest", "c000016b010101" + first + "00", 0, "not_canonical"),
        err("name that is not UTF-8", "4001ff010101" + first + "00", 1, "bad_text"), err("cut in its name", "40026b", 1),
        err("version 2^31", "40016b" "8080808008" "0101" + first + "00", 3),
        err("a key field count of 64 bits", head + "ff" * 9 + "01" "01" + first + "00", 14),
        err("version 0", "40016b00" "0101" + first + "00", 3), err("no key field", head + "0001" + first + "00", 4),
        err("more key fields than fields", head + "0201" + first + "00", 5),
        err("a lying field count", head + "017f" + first + "00", 5),
        err("a field numbered 0", head + "0101" "0001610401" "00", 6),
        err("a field numbered 257", head + "0102" + first + "8102016204 00 00", 11),
        err("fields that descend", head + "0103" + first + "0301620400" "0201630400" "00", 16),
        err("a field number twice", head + "0102" + first + "0101620401" "00", 11),
        err("a field name twice", head + "0102" + first + "0201610400" "00", 11),
        err("a field name that is none", head + "0101" "0101410401" "00", 7),
        err("cut behind a field's number", head + "0101" "01", 7), err("cut behind a field's name", head + "0101" "010161", 9),
        err("type 0", head + "0101" "0101610001" "00", 9), err("type 12", head + "0101" "0101610c01" "00", 9),
        err("an unknown constraint", head + "0101" "0101610421" "00", 10),
        err("not blank on a number", head + "0102" + first + "0201620302" "00", 15),
        err("not blank on an identifier", head + "0102" + first + "0201620502" "00", 15),
        err("not zero on a number", head + "0102" + first + "0201620304" "00", 15),
        err("not zero on a text", head + "0102" + first + "0201620404" "00", 15),
        err("a key field that is not required", head + "0101" "0101610400" "00", 6),
        err("a key field that is a list", head + "0101" "0101610b01" "00", 6),
        err("a key field that is bytes", head + "0101" "0101610601" "00", 6),
        err("a key field that is personal", head + "0101" "0101610411" "00", 6),
        err("a key that does not begin at field 1", head + "0101" "0201610401" "00", 6),
        err("a choice without values", head + "0102" + first + "0201620a00" "00" "00", 16),
        err("a choice with the value 0", head + "0102" + first + "0201620a00" "01" "000178" "00", 17),
        err("a choice with the value 2^31", head + "0102" + first + "0201620a00" "01" "80808080080178" "00", 17),
        err("a choice value twice", head + "0102" + first + "0201620a00" "02" "010178" "010179" "00", 20),
        err("a choice's name twice", head + "0102" + first + "0201620a00" "02" "010178" "020178" "00", 20),
        err("a choice's name that is empty", head + "0102" + first + "0201620a00" "01" "0100" "00", 17),
        err("a choice's name that is not UTF-8", head + "0102" + first + "0201620a00" "01" "0101ff" "00", 18, "bad_text"),
        err("a lying choice count", head + "0102" + first + "0201620a00" "7f" "010178" "00", 16),
        err("choice values that descend", head + "0102" + first + "0201620a00" "02" "020178" "010179" "00", 20),
        err("a label that is not declared", head + "0101" + first + "0102", 12),
        err("a label twice", head + "0101" + first + "020101", 13),
        err("a cut label", head + "0101" + first + "01", 11),
        err("a byte behind the declaration", head + "0101" + first + "0000", 12),
    ]
    return {"about": "Kind declarations, FORMAT.md section 3. The value is the form of Protocol/kinds, without `about`.",
            "valid": valid, "invalid": [{**v, "hex": v["hex"].replace(" ", "")} for v in invalid]}


MATRIX_HEX = "020f04" "04746d6462" "01" "b609" "0a546865204d6174726978" "bec365"
MATRIX = {"source": "tmdb", "media_type": "movie", "id": 603, "title": "The Matrix", "release_date": "1999-03-31"}
UUID_TEXT = "00112233-4455-6677-8899-aabbccddeeff"


def record_vectors() -> Dict[str, Any]:
    forms = [*shipped(), SAMPLE]
    kinds = {form["kind"]: Kind.from_json(form) for form in forms}

    def good(name: str, kind: str, value: Dict[str, Any], **more: Any) -> Vector:
        vector = {"name": name, "kind": kind, **more, "hex": "", "value": value}
        data = encode_record(kinds[kind], vector)
        vector["hex"] = data.hex()
        if not more:
            key = keys.key_of_record(kinds[kind], data)
            vector.update(key=key.hex(), key_text=keys.key_text(kinds[kind], key))
        return vector

    key = {"source": "tmdb", "media_type": "movie", "id": 603}
    valid = [
        good("the example of FORMAT.md", "title", MATRIX), good("only the key", "title", key),
        good("a zero, an empty text, an empty list and a false are not absent", "title",
             {**key, "title": "", "vote_count": 0, "vote_average": 0, "genres": [], "adult": False}),
        good("numbers", "title", {**key, "vote_count": 25_000, "vote_average": 8.2, "popularity": 61.416}),
        good("text outside the key stays in NFD", "title", {**key, "title": "\u1112\u1161\u11ab"}),
        good("an emoji with joiners", "title", {**key, "title": FAMILY}),
        good("a series of another source", "title", {"source": "imdb", "media_type": "tv", "id": "tt0944947"}),
        good("a personal field", "title", {**key, "rating": 8.5, "watched": "2024-02-29", "tags": ["a/b", "50%"]}),
        good("a book by its ISBN", "book", {"source": "isbn", "id": 9780140449136, "authors": ["Dostoyevsky"],
                                             "published": "2003", "price": 9.99}),
        good("a book of an ISBN with a leading zero", "book", {"source": "isbn10", "id": "0140449132"}),
        good("a joke", "joke", {"id": UUID_TEXT, "body": "Knock knock.", "category": "아재개그"}),
        good("a joke without uuid, of a save", "joke", {"body": "Knock knock."}, relax="uuid"),
        good("every type", "sample", {
            "a": "%/한", "when": "-0044-03-15", "yes": True, "amount": -0.1, "blob": "AP+A", "blob_name": "x",
            "at": "1999-03-31T08:00:00.000Z", "uid": UUID_TEXT, "sort": "seven", "words": ["", "w"], "count": -1,
            "external": 1, "last": "z"}),
        good("a bitmap of 32 bytes", "sample", {"a": "a", "when": "1999", "last": ""}),
    ]
    assert valid[0]["hex"] == MATRIX_HEX
    tmdb = "04746d6462" "01" "b609"

    def err(name: str, kind: str, hexes: str, error: str, offset: int, field: int = 0) -> Vector:
        more: Dict[str, Any] = {"field": field} if field else {}
        return bad(name, hexes, error, offset, kind=kind, **more)

    joke_id = UUID_TEXT.replace("-", "")
    invalid = [
        err("nothing", "title", "", "bad_record", 0), err("a cut bitmap", "title", "020f", "bad_record", 0),
        err("an empty bitmap", "title", "00", "missing_field", 0, 1),
        err("a bitmap whose last byte is 0", "title", "020700" + tmdb, "not_canonical", 0),
        err("a bitmap of 33 bytes", "sample", "2103" + "00" * 31 + "01" "0161" "00", "bad_record", 0),
        err("a bit of an undeclared field", "title", "06070000000002" + tmdb + "00", "unknown_field", 0, 42),
        err("a bit between declared fields", "sample", "020308" "0161" "00" "00", "unknown_field", 0, 12),
        err("a key field is missing", "title", "0105" "04746d6462" "b609", "missing_field", 0, 2),
        err("a required field is missing", "joke", "0101" + joke_id, "missing_field", 0, 2),
        err("a joke without uuid, stored", "joke", "0102" "0141", "missing_field", 0, 1),
        err("a blank source", "title", "0107" "0120" "01" "b609", "blank_field", 2, 1),
        err("an empty source", "title", "0107" "00" "01" "b609", "blank_field", 2, 1),
        err("a body of white space outside ASCII", "joke", "0103" + joke_id + "06 e38080 e280a8", "blank_field", 18, 2),
        err("an id of zero", "title", "0107" "04746d6462" "01" "00", "zero_field", 8, 3),
        err("a count of zero", "sample", "030300 01" + "0161" "00" "00", "zero_field", 7, 17),
        err("a choice that is not declared", "title", "0107" "04746d6462" "08" "b609", "unknown_choice", 7, 2),
        err("an id of digits as text", "title", "0107" "04746d6462" "01" "07363033", "not_canonical", 8, 3),
        err("a count that is not the shortest", "title", "0107" "8400746d6462" "01" "b609", "not_canonical", 2, 1),
        err("text in the key in NFD", "title", "0107" "09e18492e185a1e186ab" "01" "b609", "key_not_normalised", 2, 1),
        err("an identifier in the key in NFD", "title", "0107" "04746d6462" "01" "13e18492e185a1e186ab",
            "key_not_normalised", 8, 3),
        err("text with U+0000", "title", "010f" + tmdb + "020061", "bad_text", 10, 4),
        err("text that is not UTF-8", "title", "010f" + tmdb + "01ff", "bad_text", 10, 4),
        err("a value is missing", "title", "010f" + tmdb, "bad_record", 10, 4),
        err("a cut title", "title", "010f" + tmdb + "0a546865", "bad_record", 10, 4),
        err("a byte behind the last value", "title", "0107" + tmdb + "00", "bad_record", 10),
        err("a list with a lying count", "title", "020780" + tmdb + "7f", "bad_record", 11, 16),
        err("a leap day that was none", "title", "020704" + tmdb + svarint((1999 * 13 + 2) * 32 + 29).hex(),
            "bad_record", 11, 11),
        err("a bool of 2", "sample", "0107" "0161" "00" "02", "bad_record", 5, 3),
        err("an exponent of 401", "sample", "010b" "0161" "00" + (svarint(1) + svarint(401)).hex(), "bad_record", 5, 4),
        err("a number without exponent", "sample", "010b" "0161" "00" "02", "bad_record", 6, 4),
        err("a number with a trailing zero", "sample", "010b" "0161" "00" + (svarint(10) + svarint(0)).hex(),
            "not_canonical", 5, 4),
        err("a time after the year 9999", "sample", "0143" "0161" "00" + svarint(253402300800000).hex(), "bad_record",
            5, 7),
        err("a list whose last text is not UTF-8", "sample", "020302" "0161" "00" "02016101ff", "bad_text", 9, 10),
        err("an identifier with U+0000", "title", "0107" "04746d6462" "01" "056100", "bad_text", 8, 3),
    ]
    return {"about": "Records, FORMAT.md section 4, of the kinds declared here.", "kinds": forms, "valid": valid,
            "invalid": invalid}


def key_vectors() -> Dict[str, Any]:
    forms = [*shipped(), SAMPLE, MIXED]
    kinds = {form["kind"]: Kind.from_json(form) for form in forms}

    def good(text: str) -> Vector:
        kind, data = keys.parse_key_text(text, lambda name: kinds[name])
        return {"name": text, "kind": kind.name, "hex": data.hex(), "value": text}

    valid = [good(text) for text in (
        "title:tmdb/movie/603", "title:imdb/tv/tt0944947", "book:isbn/9780140449136", "book:isbn10/0140449132",
        "book:a:b/c d", "book:50%25/a%2Fb", "book:%2525/%252F", "book:kakao/한", f"joke:{UUID_TEXT}",
        "sample:x/1999-03", "sample:x/-0044-03-15",
        f"mixed:true/-1/8.6/{UUID_TEXT}/1999-03-31T08:00:00.000Z/0", f"mixed:false/0/0/{UUID_TEXT}/1970-01-01T00:00:00.000Z/-1")]
    assert valid[0]["hex"] == "04746d6462" "01" "b609"
    invalid = [
        bad("nothing", "", "bad_key", 0, kind="title", field=1),
        bad("an id is missing", "04746d646201", "bad_key", 6, kind="title", field=3),
        bad("a byte behind the key", "04746d646201b60900", "bad_key", 8, kind="title"),
        bad("a blank source", "012001b609", "blank_field", 0, kind="title", field=1),
        bad("an id of zero", "04746d64620100", "zero_field", 6, kind="title", field=3),
        bad("text in NFD", "09e18492e185a1e186ab" "01" "b609", "key_not_normalised", 0, kind="title", field=1),
        bad("a choice that is not declared", "04746d646208b609", "unknown_choice", 5, kind="title", field=2),
        bad("a date that does not exist", "0178" + svarint((1999 * 13 + 2) * 32 + 29).hex(), "bad_key", 2, kind="sample",
            field=2),
        bad("a bool of 2", "02", "bad_key", 0, kind="mixed", field=1),
        bad("an exponent of -401", "0101" + (svarint(1) + svarint(-401)).hex(), "bad_key", 2, kind="mixed", field=3),
        bad("an id of digits as text", "04746d646201" "07363033", "not_canonical", 6, kind="title", field=3),
        bad("an identifier in NFD", "04746d646201" "13e18492e185a1e186ab", "key_not_normalised", 6, kind="title", field=3),
        bad("an identifier that is not UTF-8", "04746d646201" "03ff", "bad_text", 6, kind="title", field=3),
        bad("a cut uuid", "00" * 15, "bad_key", 0, kind="joke", field=1),
    ]
    assert values.TYPE_NAMES[1] == "bool"
    return {"about": "Keys, FORMAT.md section 4, and their text form, SPEC.md section 4.", "kinds": forms,
            "valid": valid, "invalid": invalid}


def documents() -> Dict[str, Dict[str, Any]]:
    return {"primitives": primitives(), "values": value_vectors(), "kinds": kind_vectors(), "records": record_vectors(),
            "keys": key_vectors()}
