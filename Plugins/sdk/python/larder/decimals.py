"""Numbers: a mantissa times a power of ten, the mantissa without trailing zeros."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Optional, Tuple, Union

from .errors import EncodeError
from .varint import I64_MAX, I64_MIN

EXPONENT_MIN, EXPONENT_MAX = -400, 400
Number = Union[int, float, Decimal]


def parts_of(value: Number) -> Tuple[int, int]:
    """Mantissa and exponent of a number.

    A float becomes the shortest decimal that reads back as it (`repr`); ints and Decimals stay exact. Raises
    `EncodeError` for infinities, NaN, and what a 64-bit mantissa with an exponent of -400 to 400 cannot hold.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise EncodeError("bad_record", f"a number is an int, a float or a Decimal, not {type(value).__name__}")
    if isinstance(value, int):
        if abs(value).bit_length() > 1400:  # above 10^419: no mantissa of 64 bits reaches it
            raise EncodeError("bad_record", "the number is too large")
        mantissa, exponent = value, 0
    else:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise EncodeError("bad_record", f"{value} has no encoding")
            value = Decimal(repr(value))
        sign, digits, exp = value.as_tuple()
        if not isinstance(exp, int):
            raise EncodeError("bad_record", f"{value} has no encoding")
        mantissa, exponent = int("".join(map(str, digits)) or "0"), exp
        if sign:
            mantissa = -mantissa
    if mantissa == 0:
        return 0, 0
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    if not I64_MIN <= mantissa <= I64_MAX or not EXPONENT_MIN <= exponent <= EXPONENT_MAX:
        raise EncodeError("bad_record", f"{value} does not fit a 64-bit mantissa and an exponent of 400")
    return mantissa, exponent


def number_problem(mantissa: int, exponent: int) -> Optional[Tuple[str, str]]:
    """What is wrong with a stored number: error name and reason. None when it is in its one form."""
    if mantissa == 0:
        return ("not_canonical", "zero has the exponent 0") if exponent else None
    if mantissa % 10 == 0:
        return "not_canonical", "a mantissa that is a multiple of 10"
    if not EXPONENT_MIN <= exponent <= EXPONENT_MAX:
        return "out_of_range", f"the exponent {exponent} is not in -400 ... 400"
    return None


def exact(mantissa: int, exponent: int) -> Decimal:
    """The number as a Decimal, without rounding."""
    return Decimal((mantissa < 0, tuple(map(int, str(abs(mantissa)))), exponent))


def plain(mantissa: int, exponent: int) -> Union[int, float]:
    """The number as Python programs like it: an int where the exponent is 0 or more, else the nearest float."""
    return mantissa * 10 ** exponent if exponent >= 0 else float(f"{mantissa}e{exponent}")


def number_text(mantissa: int, exponent: int) -> str:
    """The number as Larder prints it in JSON: all digits, the point where ECMAScript places it (SPEC.md section 4)."""
    digits = str(abs(mantissa))
    sign = "-" if mantissa < 0 else ""
    count = len(digits)
    point = count + exponent
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = "." + digits[1:] if count > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+}"
