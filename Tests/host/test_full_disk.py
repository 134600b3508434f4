"""A library on a file system that is full: a small tmpfs that only root can mount; skipped for others."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import threading
import time
import unittest

from harness import TITLE, HostCase, as_model, delete, list_all, program, read_log, replay, save, title, title_key


class MountCase(HostCase):
    """A test with a small file system of its own."""

    def mount(self, size, name="disk"):
        path = os.path.join(self.directory, name)
        os.mkdir(path)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path],
                                               capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        # Before the directory is removed, and after the hosts are gone.
        self.addCleanup(subprocess.run, ["umount", "-l", path], capture_output=True)
        self.addCleanup(self._reap)
        return path

    def occupy(self, disk, leave=0, name="filler"):
        """Takes all room but `leave` bytes; removing the file gives it back."""
        path = os.path.join(disk, name)
        status = os.statvfs(disk)
        with open(path, "wb") as file, contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(0, status.f_bavail * status.f_frsize - leave))
        return path


def large(number, byte_count=100_000):
    return save(title(number, overview=f"{number} " * (byte_count // (len(str(number)) + 1))))


class FullDiskTests(MountCase):
    def fill(self, wire, first=1000):
        """Saves until it is refused; gives how many were taken, and the refusal."""
        for number in range(first, first + 2000):
            reply = wire.reply(wire.write([large(number)]))
            if reply.name == "ERROR":
                return number - first, reply
            self.assertEqual(reply["created"], 1)
        self.fail("the disk is never full")

    def assertWhole(self, host):
        """What is listed is what the log says."""
        with host.wire() as wire:
            listed = as_model(list_all(wire))
        self.assertEqual(listed, replay(read_log(host, 3)))
        return listed

    def doctor(self, host):
        run = subprocess.run([program(), "--library", host.library, "--socket", host.socket, "doctor", "--json"],
                             capture_output=True, timeout=60)
        return {line["check"]: line for line in map(json.loads, run.stdout.splitlines())}

    def test_saves_are_refused_whole_deletes_go_on_and_saving_resumes(self):
        disk = self.mount("24m")
        ballast = self.occupy(disk, 16 << 20, "ballast")
        host = self.host(library="disk/library")
        with host.wire() as wire:
            count, reply = self.fill(wire)
            self.assertGreater(count, 50)
            self.assertError(reply, "store_full")
            self.assertIn("No space left on device", reply["message"])
            self.occupy(disk)
            # A batch of many is refused whole, also where its first would fit.
            self.assertError(wire.reply(wire.write([save(title(1))] + [large(n) for n in range(2, 20)])), "store_full")
            self.assertEqual(wire.call("GET", kind=1, key=title_key(1)).error, "not_found")
            status = wire.call("STATUS")
            self.assertEqual(status["state"], "full")
            self.assertIn("No space left", status["reason"])
            self.assertEqual(self.doctor(host)["host"]["level"], "bad")
            self.assertEqual(self.doctor(host)["disk"]["level"], "bad")
            # Many deletes in the room of the reserve.
            for number in range(1000, 1000 + count // 2):
                self.assertEqual(wire.saved([delete(title_key(number))])["deleted"], 1)
            self.assertEqual(len(self.assertWhole(host)), count - count // 2)
            os.unlink(ballast)
            self.assertEqual(wire.saved([large(1)])["created"], 1)
            self.assertEqual(wire.call("STATUS")["state"], "serving")
        expected = self.assertWhole(host)
        self.assertEqual(host.stop(), 0)
        host.start()
        self.assertEqual(self.assertWhole(host), expected)
        self.assertFalse(os.path.exists(os.path.join(host.library, "aside")))

    def test_a_library_is_served_on_a_full_disk_also_after_a_kill(self):
        disk = self.mount("24m")
        ballast = self.occupy(disk, 12 << 20, "ballast")
        host = self.host(library="disk/library")
        with host.wire() as wire:
            count, _ = self.fill(wire)
        for end in (host.stop, host.kill, lambda: (host.send(signal.SIGKILL), host.wait())):
            end()
            filler = self.occupy(disk)
            host.start()
            with host.wire() as wire:
                self.assertError(wire.reply(wire.write([large(1)])), "store_full")
                count -= 1
                self.assertEqual(wire.saved([delete(title_key(1000 + count))])["deleted"], 1)
                self.assertEqual(wire.call("STATUS")["state"], "full")
            self.assertEqual(len(self.assertWhole(host)), count)
            os.unlink(filler)
        os.unlink(ballast)
        with host.wire() as wire:
            self.assertEqual(wire.saved([large(1)])["created"], 1)
            self.assertEqual(wire.call("STATUS")["state"], "serving")

    def test_a_clear_goes_on_in_the_reserve(self):
        disk = self.mount("12m")
        host = self.host(library="disk/library")
        with host.wire() as wire:
            self.fill(wire)
            self.occupy(disk)
            self.assertEqual(wire.call("CLEAR", kind=0).name, "CLEARED")
        self.assertEqual(len(self.assertWhole(host)), 0)

    def full_of_versions(self, size="24m"):
        """A host whose disk has no byte left, with segments of 1 MiB of which a tenth is current."""
        disk = self.mount(size)
        host = self.host(library="disk/library", start=False)
        host.start("--segment", "1024", "--no-compact")
        with host.wire() as wire:
            wire.saved([save(title(number, "old")) for number in range(1, 301)])
            wire.saved([save(title(7_731, "a secret title")), save(title(1, "new"))])
            wire.saved([delete(title_key(7_731))])
            for at in range(10_000):
                reply = wire.reply(wire.write([large(2_000 + at % 10, 60_000 + at)]))
                if reply.name == "ERROR":
                    break
            self.assertError(reply, "store_full")
        self.occupy(disk)
        return disk, host

    def larder(self, host, *words, code=0):
        run = subprocess.run([program(), "--library", host.library, "--socket", host.socket, *words],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, code, f"{words}: {run.stdout}{run.stderr}")
        return run.stdout

    def assertSaving(self, host):
        with host.wire() as wire:
            self.assertEqual(wire.call("STATUS")["state"], "serving")
            self.assertEqual(wire.saved([large(8_000)])["created"], 1)
        self.assertReopens(host)

    def assertReopens(self, host):
        """After a kill, and after a close, the same records are there, and the log is whole."""
        with host.wire() as wire:
            expected = as_model(list_all(wire))
        for end in (host.kill, host.stop):
            end()
            self.larder(host, "verify")
            host.start()
            with host.wire() as wire:
                self.assertEqual(as_model(list_all(wire)), expected)

    def test_compact_makes_room_out_of_the_reserve_and_saving_resumes(self):
        disk, host = self.full_of_versions()
        gone, stop, problems = [], threading.Event(), []

        def deletes():
            try:
                with host.wire("deleting") as wire:
                    while not stop.is_set() or len(gone) < 20:
                        number = 2 + len(gone)
                        self.assertEqual(wire.saved([delete(title_key(number))])["deleted"], 1)
                        gone.append(number)
                        time.sleep(0.01)
            except Exception as error:  # the test's own thread says it
                problems.append(error)

        with host.wire() as wire:
            before = wire.call("STATUS")
            self.assertEqual(before["state"], "full")
            thread = threading.Thread(target=deletes)
            thread.start()
            try:
                self.larder(host, "compact", "--keep-history", "none", "--rate", "0")
            finally:
                stop.set()
                thread.join()
            self.assertEqual(problems, [])
            self.assertLess(wire.call("STATUS")["log_bytes"] * 4, before["log_bytes"])
            listed = as_model(list_all(wire))
            self.assertFalse([number for number in gone if (TITLE.number, title_key(number)) in listed])
            self.assertEqual(len(listed), 300 - len(gone) + 10)
            self.assertEqual(wire.saved([delete(title_key(299))])["deleted"], 1)
        self.assertSaving(host)

    def test_purge_takes_every_byte_on_a_full_disk(self):
        disk, host = self.full_of_versions()
        self.assertTrue(self.holding(host, b"a secret title"))
        with host.wire() as wire:
            key = {"kind": TITLE.number, "key": title_key(7_731)}
            reply = wire.call("COMPACT", history_since=-(1 << 63), dead_share=0, flags=1, rate=(1 << 63) - 1,
                              wait=10_000, purged=[key])
            self.assertEqual(reply.name, "COMPACTED", reply)
        self.assertEqual(self.holding(host, b"a secret title"), [])
        self.assertReopens(host)

    def holding(self, host, needle):
        """Files of the log that hold some bytes."""
        found = []
        for name in os.listdir(os.path.join(host.library, "log")):
            with open(os.path.join(host.library, "log", name), "rb") as file:
                found += [name] if needle in file.read() else []
        return found

    def test_a_new_library_on_a_full_disk_is_refused_with_the_reason(self):
        disk = self.mount("1m")
        self.occupy(disk)
        host = self.host(library="disk/library", start=False).start(wait=False)
        self.assertNotEqual(host.wait(), 0)
        self.assertIn(os.strerror(errno.ENOSPC), host.log())
        self.assertIn(host.library, host.log())


class PlaceTests(MountCase):
    def test_a_library_on_a_file_system_that_is_read_only(self):
        disk = self.mount("16m")
        host = self.host(library="disk/library")
        with host.wire() as wire:
            wire.saved([save(title(1))])
        host.stop()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True, capture_output=True)
        host.start(wait=False)
        self.assertNotEqual(host.wait(), 0)
        self.assertIn(os.strerror(errno.EROFS), host.log())
        self.assertIn("copy the library", host.log())
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True, capture_output=True)
        host.start()
        with host.wire() as wire:
            self.assertEqual(len(list_all(wire)), 1)

    def test_a_second_host_is_refused_with_the_pid_of_the_first(self):
        host = self.host()
        second = self.host(name="second", start=False).start(wait=False)
        self.assertNotEqual(second.wait(), 0)
        self.assertIn(f"process {host.pid}", second.log())
        self.assertLives(host)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_a_library_of_another_owner_is_refused_with_the_reason(self):
        host = self.host()
        host.stop()
        os.chmod(self.directory, 0o777)
        run = subprocess.run(
            [program(), "serve", "--library", host.library, "--socket", os.path.join(self.directory, "other.sock")],
            capture_output=True, text=True, user=65534, group=65534, extra_groups=[], timeout=60)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(os.strerror(errno.EACCES), run.stderr)
        self.assertIn(host.library, run.stderr)


if __name__ == "__main__":
    unittest.main()
