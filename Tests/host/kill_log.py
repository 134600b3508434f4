"""What a library must hold after its host was killed: the log as it is read back, and the batches that were sent.

A batch lies in the log as entries of one origin, one behind the other. Which batch it is tells its first record, which
no other batch has, or the token entry that ends a numbered one. Given the records as they were before it, every
operation's outcome and entry is known, so the log must be what the batches make, entry for entry.
"""

import bisect

from kill_entries import (BEGAN, CREATED, DELETED, ENDED, KEY_BYTES, ORIGIN, OUTCOMES, RECOVERED, TOKEN, UPDATED,
                          Broken, key_in, name_of)

SAVE, INSERT, DELETE = "save", "insert", "delete"
#: Outcomes that leave an entry, and its type.
ENTRY_OF = {"created": CREATED, "updated": UPDATED, "deleted": DELETED}
#: Outcomes that an atomic batch may not have.
NOT_ATOMIC = {"duplicate", "already_saved", "not_found", "refused"}


class Sent:
    """A batch as it was sent, and what was answered: `results` as (outcome, seq) each, or the error's name."""

    __slots__ = ("label", "number", "operations", "is_atomic", "results", "error", "is_found", "clears")

    def __init__(self, label, operations, is_atomic=False, number=0, clears=None):
        self.label, self.operations, self.is_atomic, self.number = label, operations, is_atomic, number
        self.results = self.error = None
        self.is_found = False
        #: The kind that is cleared, 0 for all; None where it is no clear.
        self.clears = clears

    @property
    def is_answered(self):
        return self.results is not None or self.error is not None

    @property
    def has_changes(self):
        """Something of it must be in the log."""
        return bool(self.results) and any(OUTCOMES[outcome] in ENTRY_OF for outcome, _ in self.results)

    @property
    def may_change_nothing(self):
        """It may have been decided and left no entry."""
        if self.is_answered:
            return not self.has_changes
        return self.is_atomic or self.number > 0 or self.clears is not None


class Ledger:
    """A library as its log says, entry by entry from the first."""

    def __init__(self):
        self.log = []
        self.seqs = []
        self.records = {}       # place to (seq, first seq, origin, record)
        self.origins = {}       # number to (program, token)
        self.last_token = {}    # origin to the highest number of a batch
        self.open_imports = set()
        self.recovered = 0
        self.numbered_found = set()
        # Numbered batches that had survived and were sent again: how many changed nothing, and how many something, as
        # others had changed those records meanwhile.
        self.retried_idle = self.retried_again = 0

    @property
    def last_seq(self):
        return self.seqs[-1] if self.seqs else 0

    def has(self, seq, data):
        """The log has this entry."""
        at = bisect.bisect_left(self.seqs, seq)
        return at < len(self.seqs) and self.seqs[at] == seq and self.log[at].data == data

    def between(self, after, through):
        return self.log[bisect.bisect_right(self.seqs, after):bisect.bisect_right(self.seqs, through)]

    def entries_at(self, seq, is_wanted=lambda entry: True):
        """The entries of the records that were there as of `seq`."""
        state = {}
        for entry in self.between(0, seq):
            if entry.place and is_wanted(entry):
                if entry.type == DELETED:
                    state.pop(entry.place, None)
                else:
                    state[entry.place] = entry
        return list(state.values())

    def state_at(self, seq, is_wanted):
        """Place to seq of the records that were there as of `seq`."""
        return {entry.place: entry.seq for entry in self.entries_at(seq, is_wanted)}

    def append(self, entries):
        """Takes entries that were read behind the last ones, whatever they say."""
        for entry in entries:
            if entry.seq <= self.last_seq:
                raise Broken("wrong", f"{entry} comes behind seq {self.last_seq}")
            self.log.append(entry)
            self.seqs.append(entry.seq)

    def account(self, entries, sent_by):
        """Finds the batches that made these entries. `sent_by` has of each program what it sent, in order."""
        at, reached = 0, {}
        while at < len(entries):
            entry = entries[at]
            if entry.place is None and entry.type != TOKEN:
                self._note(entry)
                at += 1
                continue
            program = self.origins[entry.origin][0]
            group = self._group(entries, at)
            sent = self._find(program, group, sent_by.get(program, []))
            self._expect_order(program, sent, sent_by[program], reached)
            if sent.clears is None:
                group = self._replay(program, sent, group)
            else:
                self._clear(program, sent, group)
            at += len(group)
        for program, batches in sent_by.items():
            for sent in batches:
                if sent.is_answered and not sent.is_found and sent.label in self.numbered_found:
                    self.retried_idle += 1
                if sent.has_changes and not sent.is_found:
                    first = name_of(sent.operations[0][1]) if sent.operations else "none"
                    raise Broken("lost", f"{program}, batch {sent.label}: it was answered, and nothing of it is in the "
                                         f"log; first key {first}")

    def _note(self, entry):
        fields = entry.fields
        if entry.type == ORIGIN:
            self.origins[fields["number"]] = fields["name"], fields["token"]
        elif entry.type == BEGAN:
            self.open_imports.add(entry.origin)
        elif entry.type == ENDED:
            self.open_imports.discard(entry.origin)
        elif entry.type == RECOVERED:
            self.recovered += 1

    def _group(self, entries, at):
        """Neighbours of one origin; up to the token where there is one."""
        origin, end = entries[at].origin, at
        while end < len(entries) and entries[end].origin == origin and entries[end].place:
            end += 1
        if end < len(entries) and entries[end].origin == origin and entries[end].type == TOKEN:
            end += 1
        return entries[at:end]

    def _find(self, program, group, batches):
        first, last = group[0], group[-1]
        if last.type == TOKEN:
            label = self.origins[last.origin][1], last.fields["batch"]
            found = [sent for sent in batches if sent.number and sent.label == label]
        elif first.type == DELETED:
            found = [sent for sent in batches if sent.clears is not None]
        else:
            found = [sent for sent in batches
                     if not sent.number and sent.operations and sent.operations[0][2] == first.record]
        found = [sent for sent in found if not sent.is_found]
        if not found:
            raise Broken("half", f"{program}: {first} begins no batch that was sent; {len(group)} entries of it")
        return found[0]

    def _expect_order(self, program, sent, batches, reached):
        begin, at = reached.get(program, 0), batches.index(sent)
        for skipped in batches[begin:at]:
            if not skipped.may_change_nothing:
                raise Broken("lost", f"{program}, batch {skipped.label}: it is not in the log, {sent.label}, which "
                                     "was sent after it, is")
        if at < begin:
            raise Broken("wrong", f"{program}, batch {sent.label}: it lies behind one that was sent after it")
        reached[program] = at + 1
        sent.is_found = True

    def decide(self, sent, origin, first_seq):
        """What must become of a batch: (outcome, seq, place, record) of each operation."""
        pending, seq, decided = {}, first_seq, []
        for verb, place, record in sent.operations:
            there = pending[place] if place in pending else self.records.get(place)
            if verb == DELETE:
                outcome = "deleted" if there else "not_found"
            elif there is None:
                outcome = "created"
            elif sent.number and there[2] == origin:
                outcome = "duplicate"
            elif verb == INSERT:
                outcome = "already_saved"
            else:
                outcome = "unchanged" if there[3] == record else "updated"
            if outcome in ENTRY_OF:
                decided.append((outcome, seq, place, record))
                pending[place] = None if verb == DELETE else (seq, there[1] if there else seq, origin, record)
                seq += 1
            else:
                decided.append((outcome, there[0] if there else 0, place, record))
        return decided, pending

    def _replay(self, program, sent, group):
        """Compares a batch with its entries; gives those that are its own."""
        where = f"{program}, batch {sent.label}"
        decided, pending = self.decide(sent, group[0].origin, group[0].seq)
        expected = [item for item in decided if item[0] in ENTRY_OF]
        if sent.is_atomic and any(item[0] in NOT_ATOMIC for item in decided):
            raise Broken("half", f"{where}: it is atomic and could not be done whole, {group[0]} is there")
        own = group[:len(expected) + (1 if sent.number else 0)]
        for (outcome, seq, place, record), entry in zip(expected, own):
            if (entry.type, entry.place, entry.seq) != (ENTRY_OF[outcome], place, seq):
                raise Broken("half", f"{where}: {outcome} {name_of(place)} at seq {seq} was to come, there is {entry}")
            if entry.type != DELETED and entry.record != record:
                raise Broken("wrong", f"{where}: {name_of(place)} has other content at seq {seq}")
        if len(own) < len(expected):
            raise Broken("half", f"{where}: of {len(expected)} entries {len(own)} are there, the next were to be "
                                 f"{expected[len(own)][0]} {name_of(expected[len(own)][2])}")
        if sent.number and (not expected or own[-1].type != TOKEN):
            raise Broken("half", f"{where}: {len(expected)} entries were to come, then there is {group[len(expected)]}")
        if sent.results is not None:
            mine = [(OUTCOMES.index(outcome), seq) for outcome, seq, _, _ in decided]
            if sent.results != mine:
                at = next(at for at, pair in enumerate(zip(mine, sent.results)) if pair[0] != pair[1])
                raise Broken("wrong", f"{where}: {name_of(decided[at][2])} came to {decided[at][:2]}, "
                                      f"{sent.results[at]} was answered")
        elif sent.error:
            raise Broken("wrong", f"{where}: {sent.error} was answered, and it is in the log")
        self._apply(pending)
        if sent.number:
            token = own[-1]
            self.retried_again += sent.label in self.numbered_found
            self.last_token[token.origin] = max(self.last_token.get(token.origin, 0), sent.number)
            self.numbered_found.add(sent.label)
        return own

    def _apply(self, pending):
        for place, record in pending.items():
            if record is None:
                self.records.pop(place, None)
            else:
                self.records[place] = record

    def _clear(self, program, sent, group):
        gone = {entry.place for entry in group if entry.type == DELETED}
        expected = {place for place in self.records if sent.clears in (0, place[0])}
        if gone != expected or len(group) != len(expected):
            raise Broken("half", f"{program}: a clear of {len(expected)} records deleted {len(group)}; "
                                 f"{[name_of(place) for place in sorted(expected ^ gone)[:3]]}")
        if sent.results is not None and sent.results[0][1] != group[-1].seq:
            raise Broken("wrong", f"{program}: the clear ends at {group[-1].seq}, answered was {sent.results[0][1]}")
        self._apply(dict.fromkeys(expected))

    def check_listed(self, listed, counts):
        """LIST in saved order, and COUNT, say the same."""
        mine = sorted(((first, place, seq, record) for place, (seq, first, _, record) in self.records.items()))
        theirs = [(item["first_seq"], (item["kind"], key_in(item["kind"], item["record"])), item["seq"], item["record"])
                  for item in listed]
        if mine != theirs:
            wrong = sorted({row[1] for row in set(mine) ^ set(theirs)})
            raise Broken("wrong", f"LIST has {len(theirs)} records, the log {len(mine)}; "
                                  + (f"first {name_of(wrong[0])}" if wrong else "in another order"))
        for kind in KEY_BYTES:
            if counts.get(kind, 0) != sum(1 for place in self.records if place[0] == kind):
                raise Broken("wrong", f"COUNT of kind {kind} is {counts.get(kind, 0)}")
