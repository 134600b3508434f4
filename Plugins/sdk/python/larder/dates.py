"""Dates known to a year, a month or a day, and times in milliseconds; both over the years -9999 to 9999."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Tuple, Union

from .errors import EncodeError

YEAR_MIN, YEAR_MAX = -9999, 9999
TIME_MIN, TIME_MAX = -377_705_116_800_000, 253_402_300_799_999
_DAY = 86_400_000
_DATE = re.compile(r"(-?[0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?\Z")
_TIME = re.compile(r"(-?[0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}))?Z\Z")


def days_in_month(year: int, month: int) -> int:
    """How many days a month has in the proleptic Gregorian calendar."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def problem(year: int, month: int, day: int) -> str:
    """What is wrong with a date; empty when it is one."""
    if not YEAR_MIN <= year <= YEAR_MAX:
        return f"the year {year} is not in -9999 ... 9999"
    if not 0 <= month <= 12:
        return f"there is no month {month}"
    if month == 0 and day != 0:
        return "a day without a month"
    if day < 0 or (month and day > days_in_month(year, month)):
        return f"there is no day {day} in month {month} of {year}"
    return ""


@dataclass(frozen=True, order=True)
class PartialDate:
    """A date of which only the year, or year and month, may be known: then `month` and `day` are 0.

    Years are astronomical: 0 is 1 BC. `str()` is the JSON form: `1999`, `1999-03`, `1999-03-31`, `-0044-03-15`.
    """

    year: int
    month: int = 0
    day: int = 0

    def __post_init__(self) -> None:
        wrong = problem(self.year, self.month, self.day)
        if wrong:
            raise EncodeError("bad_record", wrong)

    @classmethod
    def of(cls, value: Union["PartialDate", datetime.date, str]) -> "PartialDate":
        """From another one, a `datetime.date`, or its JSON form."""
        if isinstance(value, PartialDate):
            return value
        if isinstance(value, datetime.date):
            return cls(value.year, value.month, value.day)
        match = _DATE.match(value) if isinstance(value, str) else None
        if match is None or match[1] == "-0000" or match[2] == "00" or match[3] == "00":
            raise EncodeError("bad_record", f"{value!r} is not a date: write 1999, 1999-03 or 1999-03-31")
        return cls(int(match[1]), int(match[2] or 0), int(match[3] or 0))

    @classmethod
    def unpack(cls, packed: int) -> "PartialDate":
        """From the value that is stored. Raises `EncodeError` when it is no date."""
        rest, day = divmod(packed, 32)
        year, month = divmod(rest, 13)
        return cls(year, month, day)

    @property
    def packed(self) -> int:
        """The value that is stored."""
        return (self.year * 13 + self.month) * 32 + self.day

    def __str__(self) -> str:
        text = year_text(self.year)
        if self.month:
            text += f"-{self.month:02}"
        if self.day:
            text += f"-{self.day:02}"
        return text


def year_text(year: int) -> str:
    """Four digits, with `-` before them when the year is before 0."""
    return f"-{-year:04}" if year < 0 else f"{year:04}"


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 (Howard Hinnant's algorithm)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> Tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year_of_era + era * 400 + (month <= 2), month, day


def time_text(milliseconds: int) -> str:
    """The JSON form of a time: `1999-03-31T08:00:00.000Z`."""
    days, rest = divmod(milliseconds, _DAY)
    year, month, day = civil_from_days(days)
    seconds, ms = divmod(rest, 1000)
    return (f"{year_text(year)}-{month:02}-{day:02}T"
            f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z")


def time_of(value: Union[int, datetime.datetime, str]) -> int:
    """Milliseconds since 1970 from themselves, an aware `datetime`, or the JSON form."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise EncodeError("bad_record", "a time needs a time zone")
        span = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        ms = span // datetime.timedelta(milliseconds=1)
    elif isinstance(value, str):
        match = _TIME.match(value)
        if match is None:
            raise EncodeError("bad_record", f"{value!r} is not a time: write 1999-03-31T08:00:00.000Z")
        year, month, day, hour, minute, second, milli = (int(part or 0) for part in match.groups())
        if problem(year, month, day) or not month or not day or hour > 23 or minute > 59 or second > 59:
            raise EncodeError("bad_record", f"{value!r} is not a time")
        ms = days_from_civil(year, month, day) * _DAY + (hour * 3600 + minute * 60 + second) * 1000 + milli
    elif isinstance(value, int) and not isinstance(value, bool):
        ms = value
    else:
        raise EncodeError("bad_record", f"a time is an int, a datetime or a str, not {type(value).__name__}")
    if not TIME_MIN <= ms <= TIME_MAX:
        raise EncodeError("bad_record", f"the time {ms} is not in the years -9999 ... 9999")
    return ms
