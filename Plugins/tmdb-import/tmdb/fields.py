"""Values as The Movie Database sends them, as values of fields. What cannot be used is `Dropped`, None is absent."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, List, Mapping, Optional, Union

from larder import EncodeError, PartialDate

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\Z")
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?\Z")
I64_MAX = (1 << 63) - 1


class Dropped(Exception):
    """The value is of no use to its field; the argument says why."""


def text(value: Any) -> Optional[str]:
    """A text as it is; blank is absent."""
    if not isinstance(value, str):
        raise Dropped(f"a text is needed, not a {type(value).__name__}: left out")
    return value if value.strip() else None


def _parsed(value: Any) -> Union[int, Decimal, None]:
    if isinstance(value, str):
        shown = value.strip()
        if not shown:
            return None
        if len(shown) > 60 or not _NUMBER.match(shown):
            raise Dropped(f"{ascii(value[:40])} is no number: left out")
        value = Decimal(shown) if re.search("[.eE]", shown) else int(shown)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise Dropped("no number: left out")
    return value


def number(value: Any) -> Union[int, float, None]:
    """A number, also from its text. A fraction is the nearest double's shortest decimal: 8.5999999999999996 is 8.6."""
    found = _parsed(value)
    if found is None:
        return None
    if isinstance(found, int) and abs(found) <= I64_MAX:
        return found
    double = float(found) if abs(found) < Decimal("1e308") else math.inf
    if math.isinf(double):
        raise Dropped("the number is too large: left out")
    return double


def integer(value: Any) -> Optional[int]:
    """A whole number of 64 bits, also from its text."""
    found = _parsed(value)
    if found is None:
        return None
    if isinstance(found, Decimal) and (abs(found) > I64_MAX or found != found.to_integral_value()):
        raise Dropped("no whole number: left out")
    if abs(int(found)) > I64_MAX:
        raise Dropped("the number is too large: left out")
    return int(found)


def positive(value: Any) -> Optional[int]:
    """A whole number of which 0 means that it is not known."""
    return integer(value) or None


def boolean(value: Any) -> bool:
    """A truth value, also from its text."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise Dropped("neither true nor false: left out")


def date(value: Any) -> Optional[PartialDate]:
    """A date, of which only the year or the month may be known; the time of a day is left out."""
    if isinstance(value, str) and not value.strip():
        return None
    match = _DATE.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise Dropped(f"{ascii(str(value)[:40])} is no date: left out")
    year, month, day = (int(part or 0) for part in match.groups())
    try:
        if year == 0:
            raise ValueError
        return PartialDate(year, month, day)
    except (ValueError, EncodeError):
        raise Dropped(f"{value[:40]} is no date: left out") from None


def _names(value: Any, keys: tuple) -> List[str]:  # type: ignore[type-arg]
    if not isinstance(value, list):
        raise Dropped(f"a list is needed, not a {type(value).__name__}: left out")
    found = []
    for item in value:
        name = next((item[key] for key in keys if item.get(key)), None) if isinstance(item, Mapping) else item
        if isinstance(name, str) and name.strip() and name.isprintable():
            found.append(name)
    return found


def genres(value: Any) -> Optional[List[str]]:
    """Names of genres; their numbers mean nothing outside the service."""
    return _names(value, ("name",)) or None


def country(value: Any) -> Optional[str]:
    """Codes of countries, with commas between them."""
    return ", ".join(_names(value, ("iso_3166_1", "name"))) or None


def runtime(value: Any) -> Optional[int]:
    """Minutes of a series' episodes: the first that is given."""
    if not isinstance(value, list):
        raise Dropped("a list is needed: left out")
    return positive(value[0]) if value else None
