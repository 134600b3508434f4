"""Makes `Protocol/vectors/*.json`. Deterministic: running it again changes nothing.

    python3 Plugins/sdk/python/tools/make_vectors.py

Every valid vector is encoded, compared with its hand-written bytes where it has some, and decoded again; every invalid
one must fail with the error and the offset written beside it. Nothing is written when one of them does not hold.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List

import vectors_log
import vectors_values
import vectors_wire
from vectorio import CODECS, VECTORS, kinds_of, octets

from larder.errors import DecodeError


def check(file: str, document: Dict[str, Any]) -> None:
    """Raises AssertionError for a vector that does not hold."""
    decode, encode = CODECS[file]
    kinds = kinds_of(document)
    names: List[str] = [vector["name"] for group in ("valid", "invalid") for vector in document[group]]
    assert len(set(names)) == len(names), f"{file}: a name is given twice"
    for vector in document["valid"]:
        where = f"{file}: {vector['name']}"
        found = decode(kinds, vector, octets(vector))
        assert found == vector["value"], f"{where}: {found}, not {vector['value']}"
        assert encode(kinds, vector) == octets(vector), f"{where}: {encode(kinds, vector).hex()}"
    for vector in document["invalid"]:
        where = f"{file}: {vector['name']}"
        try:
            found = decode(kinds, vector, octets(vector))
        except DecodeError as error:
            got = (error.name, error.offset, vector.get("field") and error.field)
            assert got == (vector["error"], vector["offset"], vector.get("field")), f"{where}: {error}"
        else:
            raise AssertionError(f"{where}: decodes to {found}")


def render(document: Dict[str, Any]) -> str:
    """One vector a line, so that a change shows as one."""
    parts = []
    for name, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join("    " + json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
        else:
            parts.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def documents() -> Dict[str, Dict[str, Any]]:
    """All files by name."""
    return {**vectors_values.documents(), **vectors_log.documents(), **vectors_wire.documents()}


def main() -> None:
    made = documents()
    for file, document in made.items():
        check(file, document)
    VECTORS.mkdir(exist_ok=True)
    for file, document in made.items():
        (VECTORS / f"{file}.json").write_text(render(document), encoding="utf-8")
        print(f"{file}.json: {len(document['valid'])} valid, {len(document['invalid'])} invalid")


if __name__ == "__main__":
    main()
