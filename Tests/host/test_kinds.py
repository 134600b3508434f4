"""Kinds of one's own: declared over the wire, grown through versions, with clients that know an older one."""

import unittest

from harness import RESULTS, TITLE, HostCase, Kind, decode_record, encode_record, save

FIELDS = [
    {"number": 1, "name": "id", "type": "identifier", "required": True},
    {"number": 2, "name": "name", "type": "text", "required": True, "not_blank": True},
]
LATER = [
    {"number": 3, "name": "opened", "type": "date"},
    {"number": 4, "name": "colour", "type": "choice", "values": {"1": "red", "2": "white"}},
    {"number": 5, "name": "grapes", "type": "list", "indexed": True},
    {"number": 6, "name": "stars", "type": "number", "personal": True},
]


def wine(field_count, number=0, version=0, **changes):
    """The declaration of a kind `wine` with so many fields."""
    form = {"kind": "wine", "number": number, "version": version, "key": ["id"], "label": ["name"],
            "fields": (FIELDS + LATER)[:field_count]}
    form.update(changes)
    return form


def kind_of(form, number, version):
    return Kind.from_json({**form, "number": number, "version": version})


class Kinds(HostCase):
    def setUp(self):
        super().setUp()
        self.larder = self.host()

    def define(self, wire, form):
        return wire.call_body("DEFINE", Kind.from_json(form).encode())

    def test_a_kind_through_five_versions_with_old_and_new_clients_at_once(self):
        with self.larder.wire("newest") as newest, self.larder.wire("oldest") as oldest:
            forms, kinds = [], []
            for version in range(1, 6):
                form = wine(version + 1)
                defined = self.define(newest, form)
                self.assertEqual(defined.name, "DEFINED", defined)
                self.assertEqual((defined["version"], defined["is_changed"]), (version, 1))
                again = self.define(oldest, form)
                self.assertEqual((again["number"], again["version"], again["is_changed"]), (defined["number"], version, 0))
                forms.append(form)
                kinds.append(kind_of(form, defined["number"], version))
                # The client of each version saves a bottle of its own, and all that are there already once more.
                for owner, kind in enumerate(kinds):
                    for bottle in range(version):
                        record = encode_record(kind, {"id": bottle + 1, "name": f"by {owner + 1} at {version}"},
                                               relax="partial")
                        newest.saved([save(record, kind, "merge")])
                # The newest one adds what only it knows.
                values = {"id": version, "name": "a bottle", "opened": "1999-03", "colour": "white", "grapes": ["Riesling"]}
                known = {field["name"] for field in form["fields"]}
                newest.saved([save(encode_record(kinds[-1], {k: v for k, v in values.items() if k in known}), kinds[-1])])
            self.larder.kill()
        self.larder.start()
        with self.larder.wire("old again") as wire:
            listed = {kind.number: kind for kind in wire.call("KINDS")["kinds"]}
            self.assertEqual(listed[kinds[-1].number].version, 5)
            # Saved by the oldest client, which knows two fields: what it does not know is kept, in every mode.
            first = kinds[0]
            for mode in ("merge", "replace"):
                wire.saved([save(encode_record(first, {"id": 5, "name": f"by {mode}"}), first, mode)])
                found = wire.call("GET", kind=first.number, key=b"\x0a")["record"]
                record = decode_record(kinds[-1], found["record"])
                self.assertEqual(record["name"], f"by {mode}")
                self.assertEqual((str(record["opened"]), record["grapes"]), ("1999-03", ["Riesling"]))
            found = wire.call("FIND", kind=first.number, field=5, value=b"\x08RIESLING", limit=10)
            self.assertEqual([decode_record(kinds[-1], one["record"])["id"] for one in found["records"]], [4, 5])

    def test_conflicts_are_refused_with_both_sides(self):
        with self.larder.wire() as wire:
            number = self.define(wire, wine(4))["number"]
            self.assertGreaterEqual(number, 64)
            renamed = [dict(field, name="title") if field["number"] == 2 else field for field in (FIELDS + LATER)[:4]]
            retyped = [dict(field, type="text") if field["number"] == 3 else field for field in (FIELDS + LATER)[:4]]
            stricter = [dict(field, required=True) if field["number"] == 3 else field for field in (FIELDS + LATER)[:4]]
            choice = [dict(field, values={"1": "red", "2": "rosé"}) if field["number"] == 4 else field
                      for field in (FIELDS + LATER)[:4]]
            added = (FIELDS + LATER)[:4] + [{"number": 9, "name": "cellar", "type": "text", "required": True}]
            for form, words in (
                    (wine(3), ["colour"]), (wine(4, fields=renamed, label=["title"]), ["name", "title"]),
                    (wine(4, fields=retyped), ["opened", "date", "text"]), (wine(4, fields=stricter), ["opened"]),
                    (wine(4, fields=choice), ["colour", "white", "rosé"]), (wine(4, fields=added), ["cellar"]),
                    (wine(4, key=["id", "name"]), ["key"]), (wine(4, number=1), ["wine", "kind 1"])):
                with self.subTest(words=words):
                    reply = self.define(wire, form)
                    self.assertError(reply, "kind_conflict")
                    for word in words:
                        self.assertIn(word, reply["message"] + " ".join(f"{f['name']} {f['value']}" for f in reply["facts"]))
            same = self.define(wire, wine(4))
            self.assertEqual((same["version"], same["is_changed"]), (1, 0))

    def test_fields_of_ones_own_on_a_kind_that_comes_with_larder(self):
        with self.larder.wire() as wire:
            shipped = next(kind for kind in wire.call("KINDS")["kinds"] if kind.name == "title")
            title = TITLE.to_json()
            for number, is_right in ((129, True), (100, False)):
                form = {**title, "version": 0, "fields": title["fields"] + [
                    {"number": number, "name": f"shelf{number}", "type": "text", "indexed": True}]}
                reply = self.define(wire, form)
                if is_right:
                    self.assertEqual((reply.name, reply["version"]), ("DEFINED", shipped.version + 1))
                else:
                    self.assertEqual(reply.name, "ERROR")
            self.larder.stop()
        self.larder.start()
        with self.larder.wire() as wire:
            names = [field.name for kind in wire.call("KINDS")["kinds"] if kind.name == "title" for field in kind.fields]
            self.assertIn("shelf129", names)
            self.assertNotIn("shelf100", names)

    def test_what_is_no_declaration_changes_nothing(self):
        with self.larder.wire() as wire:
            whole = Kind.from_json(wine(6)).encode()
            before = wire.call("KINDS")["kinds"]
            for _ in range(400):
                body = bytearray(whole)
                for _ in range(self.random.randrange(1, 4)):
                    body[self.random.randrange(len(body))] = self.random.randrange(256)
                reply = wire.call_body("DEFINE", bytes(body[:self.random.choice((len(body), self.random.randrange(len(body))))]))
                if reply.name == "DEFINED":
                    continue
                self.assertIn(reply.error, ("bad_message", "kind_conflict", "not_permitted", "bad_text"))
            after = wire.call("KINDS")["kinds"]
            self.assertEqual(after[:len(before)], before)
            self.assertLives(self.larder)

    def test_a_record_of_a_version_that_is_not_there_is_refused(self):
        with self.larder.wire() as wire:
            number = self.define(wire, wine(3))["number"]
            ahead = kind_of(wine(6), number, 5)
            record = encode_record(ahead, {"id": 1, "name": "x", "grapes": ["Merlot"]})
            written = wire.saved([save(record, ahead)], flags=RESULTS)
            self.assertEqual([refusal["error"] for refusal in written["refusals"]] != [], True, written)


if __name__ == "__main__":
    unittest.main()
