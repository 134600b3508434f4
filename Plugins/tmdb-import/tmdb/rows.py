"""One row of The Movie Database as a record of kind title, or why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .fields import Dropped, boolean, country, date, genres, integer, number, positive, runtime, text

ID_MAX = (1 << 63) - 1
LABELS = ("title", "original_title", "name", "original_name")
_PERSON = ("known_for", "known_for_department", "profile_path")
_MOVIE = ("title", "original_title", "release_date")
_TV = ("original_name", "first_air_date")
#: What a series has and a collection has not.
_TV_ONLY = ("first_air_date", "origin_country", "genre_ids", "popularity", "vote_average", "vote_count")

#: Row key, field, conversion. Of two keys for one field the first that gives something counts.
FIELDS: Tuple[Tuple[str, str, Callable[[Any], Any]], ...] = (
    ("overview", "overview", text), ("poster_path", "poster_path", text), ("backdrop_path", "backdrop_path", text),
    ("release_date", "release_date", date), ("first_air_date", "release_date", date),
    ("vote_count", "vote_count", integer), ("vote_average", "vote_average", number), ("imdb_id", "imdb_id", text),
    ("runtime", "runtime", positive), ("episode_run_time", "runtime", runtime), ("genres", "genres", genres),
    ("original_language", "language", text), ("origin_country", "country", country),
    ("production_countries", "country", country), ("popularity", "popularity", number), ("adult", "adult", boolean),
    ("revenue", "revenue", positive), ("budget", "budget", positive), ("status", "status", text),
    ("tagline", "tagline", text), ("homepage", "homepage", text),
)


class Skipped(Exception):
    """The row is no title, and nothing is wrong with it. The argument is what it is."""


class Refused(Exception):
    """The row is wrong. `reason` is one word, `message` is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message


@dataclass
class Choices:
    """What an import was told about its rows."""

    #: For rows that do not say theirs; empty: from their keys.
    media_type: str = ""
    source: str = "tmdb"
    #: Values for other fields that a row leaves absent.
    preset: Dict[str, Any] = field(default_factory=dict)


Warn = Callable[[str, str], None]


def record_of(row: Any, choices: Choices, warn: Warn, hint: str = "") -> Dict[str, Any]:
    """The record of a row. `hint` is what the file or the list is about: a media type, or what no title is.

    `warn` is told field and reason of what was left out. Raises `Skipped` and `Refused`.
    """
    if not isinstance(row, Mapping):
        raise Refused("not-a-row", f"an object is needed, not {_short(row)}")
    _skip_what_is_no_title(row, hint)
    record: Dict[str, Any] = {"source": choices.source, "media_type": "", "id": identifier(row)}
    record["media_type"] = media_type(row, choices, hint)
    _take_labels(row, record, warn)
    for key, name, convert in FIELDS:
        value = row.get(key)
        if value is None or value == "" or name in record:
            continue
        try:
            found = convert(value)
        except Dropped as error:
            warn(key, str(error))
            continue
        if isinstance(found, str):
            found = _clean(found, key, warn)
        if found is not None:
            record[name] = found
    for name, value in choices.preset.items():
        record.setdefault(name, value)
    return record


def _skip_what_is_no_title(row: Mapping[str, Any], hint: str) -> None:
    said = row.get("media_type")
    if said in ("person", "collection"):
        raise Skipped(said)
    if said in (None, ""):
        if any(key in row for key in _PERSON):
            raise Skipped("person")
        if "list_type" in row and "item_count" in row:
            raise Skipped("list")
        if hint and hint not in ("movie", "tv"):
            raise Skipped(hint)


def identifier(row: Mapping[str, Any]) -> int:
    """The row's id, exactly. Raises `Refused`."""
    if "id" not in row:
        raise Refused("bad-id", "there is no id")
    value = row["id"]
    if isinstance(value, str) and value.isascii() and value.strip().isdigit() and len(value) < 40:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused("bad-id", f"an id is a whole number, not {_short(value)}")
    if not 1 <= value <= ID_MAX:
        raise Refused("bad-id", f"an id is 1 to {ID_MAX}, not {_short(value)}")
    return value


def media_type(row: Mapping[str, Any], choices: Choices, hint: str) -> str:
    """`movie` or `tv`: what the row says, else what its list is of, else what the import was told, else what its keys
    say without doubt. Raises `Refused` where none of these does, `Skipped` for a collection."""
    said = row.get("media_type")
    if said not in (None, ""):
        if said not in ("movie", "tv"):
            raise Refused("bad-media-type", f"media_type is movie or tv, not {_short(said)}")
        return str(said)
    if hint or choices.media_type:
        return hint or choices.media_type
    is_movie, is_tv = any(key in row for key in _MOVIE), any(key in row for key in _TV)
    if is_movie and not is_tv:
        return "movie"
    if is_tv and not is_movie:
        if not any(key in row for key in _TV_ONLY):
            raise Skipped("collection")
        return "tv"
    if not any(row.get(key) for key in LABELS):
        raise Refused("missing-title", "no title and no name")
    raise Refused("no-media-type", "neither the row nor its keys say whether it is a movie or tv: say --media-type")


def _take_labels(row: Mapping[str, Any], record: Dict[str, Any], warn: Warn) -> None:
    for key in LABELS:
        value = row.get(key)
        if value is None:
            continue
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise Refused("bad-title", f"{key} is a text, not {_short(value)}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Refused("bad-unicode", f"{key} has half a character")
        cleaned = _clean(value, key, warn)
        if cleaned:
            record[key] = cleaned
    if not any(key in record for key in LABELS):
        raise Refused("missing-title", "no title and no name")


def _clean(value: str, key: str, warn: Warn) -> Optional[str]:
    if any("\ud800" <= character <= "\udfff" for character in value):
        warn(key, "half a character: left out")
        return None
    if "\0" in value:
        warn(key, "U+0000 was taken out")
        value = value.replace("\0", "")
    return value if value.strip() else None


def _short(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return ascii(value[:60])
    return str(value)[:60] if isinstance(value, (int, Decimal)) else f"a {type(value).__name__}"


def parts_of(form: Mapping[str, Any]) -> List[Tuple[str, List[Any], str]]:
    """The lists of rows in an object: where it is, its rows, and what they are. Raises `Refused`."""
    if isinstance(form.get("results"), list):
        return [("results", form["results"], "")]
    found = [(key, form[key], hint) for key, hint in (
        ("movie_results", "movie"), ("tv_results", "tv"), ("person_results", "person"), ("tv_season_results", "season"),
        ("tv_episode_results", "episode"), ("items", ""), ("parts", "movie")) if isinstance(form.get(key), list)]
    if found:
        return found
    if "status_code" in form and "status_message" in form:
        raise Refused("tmdb-error", f"the service answered: {str(form['status_message'])[:200]}")
    if "id" in form and "total_results" not in form and any(form.get(key) for key in LABELS):
        return [("", [form], "")]
    raise Refused("no-results-array", "there is no list of results in it")
