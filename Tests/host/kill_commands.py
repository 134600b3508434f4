"""What runs beside a host that will be killed: verify, backup and a compaction."""

import collections
import json
import os
import shutil
import subprocess
import sys

from harness import BY_KIND, READER, Closed, Wire, decode_record, has_zstd, program, record_to_json
from kill_entries import Broken

SECONDS = 120
# 2^63 - 1: no history is kept; as fast as it goes.
MOST = (1 << 63) - 1


class Commands:
    """Starts commands at random beside a host, and looks at what came of them once the host is gone."""

    def __init__(self, directory, random):
        self.directory, self.random = directory, random
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": directory, "LARDER_SOCKET": "", "NO_COLOR": "1"}
        self.running = []
        self.counts = collections.Counter()
        self.compaction = None
        # As they are; compressed; plain again. Each with the segment that is written, or without.
        self.forms = (0, 1, 2, 3, 4, 5) if has_zstd() else (0, 1)

    def run(self, *words, library=None):
        """A command to its end: its exit code, and what it said."""
        place = ["--library", library] if library else []
        done = subprocess.run([program(), *place, *words], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def _begin(self, host, *words):
        command = [program(), "--library", host.library, "--socket", host.socket, *words]
        self.running.append((words, subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)))

    def start(self, host):
        """Some commands beside a host that has begun to work."""
        rng = self.random
        self.backup = host.library + ".backup"
        if rng.random() < 0.05:
            self._begin(host, "verify", "--json")
        if rng.random() < 0.1:
            self._begin(host, "backup", self.backup)
        self.ask_for_compaction(host)

    def ask_for_compaction(self, host):
        """A compaction beside the peers, which may be cut off. Not by the command: that would start a host of its own
        where the one that is killed is gone."""
        if self.random.random() < 0.4:
            try:
                self.compaction = Wire(host.socket, "compaction")
                self.compaction.send("COMPACT", history_since=MOST, dead_share=self.random.choice((0, 0, 30)),
                                     flags=self.random.choice(self.forms), wait=0, purged=[],
                                     rate=self.random.choice((MOST, MOST, 1 << 20)))
            except (Closed, OSError):
                self._compaction_ends("cut off")

    def _compaction_ends(self, how):
        self.counts["compaction", how] += 1
        if self.compaction is not None:
            self.compaction.close()
        self.compaction = None

    def _finish_compaction(self):
        try:
            while True:
                frame = self.compaction.receive()
                if frame.name == "COMPACTED":
                    return self._compaction_ends("done")
                if frame.name == "ERROR":
                    return self._compaction_ends(f"refused ({frame.fields['error']})")
        except (Closed, OSError):
            self._compaction_ends("cut off")

    def finish(self):
        """After the kill: what they came to."""
        if self.compaction is not None:
            self._finish_compaction()
        for words, process in self.running:
            text = process.communicate(timeout=SECONDS)[0].decode("utf-8", "replace")
            code, name = process.returncode, words[0]
            self.counts[name, "done" if code == 0 else "cut off"] += 1
            if code < 0:
                raise Broken("wrong", f"larder {' '.join(words)} ended by signal {-code}: {text}")
            if name == "verify" and code != 0 or name == "backup" and "damage" in text:
                raise Broken("wrong", f"larder {' '.join(words)} beside the host: exit code {code}, {text[-1500:]}")
            if name == "backup" and code == 0 and self.random.random() < 0.3:
                self._expect("backup", "--check", self.backup)
        self.running = []

    def _expect(self, *words, library=None):
        code, text = self.run(*words, library=library)
        self.counts[words[0] + (" --check" if "--check" in words else ""), "done"] += 1
        if code != 0:
            raise Broken("wrong", f"larder {' '.join(words)}: exit code {code}, {text[-1500:]}")
        return text

    def check_files(self, host, ledger):
        """A library whose host has been stopped: verify finds nothing, the independent reader the same records, and
        what is restored from the last backup is the library as of the seq that the backup names."""
        self._expect("verify", library=host.library)
        self._expect_read(host.library, ledger.records)
        if os.path.exists(os.path.join(self.backup, "manifest")):
            with open(os.path.join(self.backup, "manifest"), encoding="ascii") as manifest:
                seq = next(int(line.split()[1]) for line in manifest if line.startswith("seq "))
            restored = host.library + ".restored"
            self._expect("restore", self.backup, restored)
            self._expect_read(restored, {entry.place: (entry.seq, entry.first_seq, entry.origin, entry.record)
                                         for entry in ledger.entries_at(seq)})
            shutil.rmtree(restored)
            shutil.rmtree(self.backup)

    def _expect_read(self, library, records):
        done = subprocess.run([sys.executable, READER, library], capture_output=True, timeout=600)
        if done.returncode != 0:
            raise Broken("wrong", f"the reader on {library}: {done.stderr.decode()[-1500:]}")
        found = [(line["saved_seq"], line["seq"], line["kind"], line["record"])
                 for line in map(json.loads, done.stdout.splitlines())]
        mine = []
        for place, (seq, first, _, record) in records.items():
            kind = BY_KIND[place[0]]
            mine.append((first, seq, kind.name, record_to_json(kind, decode_record(kind, record))))
        mine.sort(key=lambda row: row[0])
        if found != mine:
            raise Broken("wrong", f"the reader finds {len(found)} records in {library}, {len(mine)} were to be there")

    def __str__(self):
        text = ", ".join(f"{count} {name} {what}" for (name, what), count in sorted(self.counts.items()))
        return f"beside: {text or 'nothing'}"
