"""larder doctor on the real program: what it finds, with and without a host, and that it changes nothing."""

import json
import os
import socket
import subprocess
import unittest

from harness import HostCase, program


class DoctorTests(HostCase):
    def doctor(self, *words, environment=None, **paths):
        """The findings by name, and the exit code."""
        library = os.path.join(self.directory, "library")
        run = subprocess.run(
            [program(), "--library", paths.get("library", library), *words, "doctor", "--json"], capture_output=True,
            env={**os.environ, "XDG_RUNTIME_DIR": self.directory, "LARDER_SOCKET": "", **(environment or {})}, timeout=60)
        self.assertEqual(run.stderr, b"")
        findings = {}
        for line in run.stdout.splitlines():
            finding = json.loads(line)
            findings[finding["check"]] = finding
        return findings, run.returncode

    def tree(self):
        found = {}
        for directory, names, files in os.walk(self.directory):
            for name in names + files:
                status = os.lstat(os.path.join(directory, name))
                found[os.path.join(directory, name)] = (status.st_mode, status.st_size, status.st_mtime_ns)
        return found

    def made(self):
        host = self.host()
        self.assertEqual(host.stop(), 0)
        return host

    def test_it_changes_nothing_and_its_exit_code_is_the_worst_finding(self):
        before = self.tree()
        findings, code = self.doctor()
        self.assertEqual(self.tree(), before)
        self.assertEqual(findings["library"]["level"], "ok")
        levels = {finding["level"] for finding in findings.values()}
        self.assertEqual(code, 2 if "bad" in levels else 1 if "warn" in levels else 0)
        host = self.made()
        before = self.tree()
        findings, _ = self.doctor("--socket", host.socket)
        self.assertEqual(self.tree(), before)
        for name in ("permissions", "format", "lock", "clock", "damage", "disk", "socket", "plugins"):
            self.assertEqual(findings[name]["level"], "ok", findings[name])

    def test_a_running_host_has_the_lock_and_answers(self):
        host = self.host()
        findings, _ = self.doctor("--socket", host.socket)
        self.assertIn(str(host.pid), findings["lock"]["reason"])
        self.assertIn(str(host.pid), findings["socket"]["reason"])
        self.assertEqual((findings["host"]["level"], findings["socket_file"]["level"]), ("ok", "ok"))
        self.assertLives(host)
        findings, code = self.doctor("--socket", host.socket, library=os.path.join(self.directory, "other"))
        self.assertEqual(findings["host_library"]["level"], "warn")

    def test_open_permissions_a_stale_socket_and_put_aside_files_are_warned_of(self):
        host = self.made()
        os.chmod(host.library, 0o755)
        os.makedirs(os.path.join(host.library, "aside"), exist_ok=True)
        with open(os.path.join(host.library, "aside", "tail"), "wb") as file:
            file.write(b"x")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(host.socket)
        findings, code = self.doctor("--socket", host.socket)
        for name, words in (("permissions", "chmod"), ("socket", "next host"), ("damage", "larder serve"), ("socket_file", "chmod")):
            self.assertEqual(findings[name]["level"], "warn", findings[name])
            self.assertIn(words, findings[name]["fix"])
        self.assertEqual(code, 1)

    def test_a_newer_format_and_what_is_no_library_are_bad(self):
        host = self.made()
        path = os.path.join(host.library, "larder")
        with open(path, "r+b") as file:
            file.seek(8)
            file.write((7).to_bytes(4, "little"))
        findings, code = self.doctor()
        self.assertEqual((findings["format"]["level"], code), ("bad", 2))
        self.assertIn("newer larder", findings["format"]["fix"])
        findings, code = self.doctor(library=path)
        self.assertEqual((findings["library"]["level"], code), ("bad", 2))

    def test_a_log_from_the_future_and_missing_programs_are_warned_of(self):
        host = self.made()
        segment = os.path.join(host.library, "log", "00000001.seg")
        later = os.stat(segment).st_mtime + 86_400
        os.utime(segment, (later, later))
        findings, code = self.doctor(environment={"PATH": self.directory})
        self.assertEqual(findings["clock"]["level"], "warn")
        self.assertEqual((findings["python3"]["level"], findings["notify-send"]["level"], code), ("warn", "warn", 1))

    def test_a_plugin_whose_program_is_gone_is_told(self):
        host = self.made()
        directory = os.path.join(self.directory, "gone")
        os.makedirs(directory)
        manifest = {"name": "gone", "version": "1", "program": ["./program"], "roles": ["notifier"], "events": ["downloaded"]}
        with open(os.path.join(directory, "larder-plugin.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        with open(os.path.join(directory, "program"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(os.path.join(directory, "program"), 0o755)
        added = subprocess.run(
            [program(), "--library", host.library, "--socket", host.socket, "plugin", "add", directory], capture_output=True,
            env={**os.environ, "XDG_RUNTIME_DIR": self.directory}, timeout=60)
        self.assertEqual(added.returncode, 0, added.stderr)
        self.assertEqual(self.doctor("--socket", host.socket)[0]["plugin_gone"]["level"], "ok")
        os.remove(os.path.join(directory, "program"))
        findings, code = self.doctor("--socket", host.socket)
        self.assertEqual((findings["plugin_gone"]["level"], code), ("bad", 2))


if __name__ == "__main__":
    unittest.main()
