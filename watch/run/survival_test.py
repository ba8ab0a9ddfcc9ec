#!/usr/bin/python3
"""Programs under `lockstep watch` go on whatever becomes of the watcher, its memory or their own
process. What is not watched is said in one line."""
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

LOCKSTEP = os.path.abspath("cli/lockstep")
CASES = os.path.abspath("watch/preload/cases")
PLUGIN = os.path.abspath("watch/preload/libplugin.so")
STATIC = os.path.abspath("watch/preload/static_program")
# Messages need no room in /dev/shm.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
          "--mca", "btl", "self,tcp"]
IN_NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh",
                "-ec"]
MOUNTS = subprocess.run([*IN_NAMESPACE, "mount -t tmpfs tmpfs /dev/shm"], check=False,
                        capture_output=True).returncode == 0
MIB = 1 << 20


def watch(*command, **how):
    return subprocess.run([LOCKSTEP, "watch", "--", *command], check=False, capture_output=True,
                          text=True, timeout=250, **how)


def new_folder():
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def await_that(condition):
    """Only bounds a hang."""
    deadline = time.monotonic() + 250
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def segments(watcher):
    return glob.glob(f"/dev/shm/lockstep-watch-{watcher.pid}-*/*.watch")


def counts_of(segment):
    """Events that were begun, and that were read."""
    with open(segment, "rb") as file:
        return struct.unpack_from("<QQ", file.read(64), 40)


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)[1])


def gone(pid):
    """It may be a zombie that nobody reaps."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class Memory(unittest.TestCase):

    def test_ten_million_calls(self):
        """After each part of the calls: blocks of the segment, and memory of the watcher."""
        gate = os.path.join(new_folder(), "part")
        with subprocess.Popen([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "1", CASES, "many", gate],
                              stderr=subprocess.PIPE, text=True) as watcher:
            blocks, memory = [], []
            await_that(lambda: segments(watcher))
            segment, = segments(watcher)
            for part in range(50):
                # Send: its entry says later that it returned, and so does the receipt of Recv.
                await_that(lambda: counts_of(segment)[0] >= 300_000 * (part + 1))
                await_that(lambda: counts_of(segment)[1] >= counts_of(segment)[0] - 3 * 4096)
                blocks.append(os.stat(segment).st_blocks * 512)
                memory.append(anonymous_kib(watcher.pid))
                touch(f"{gate}.{part}")
            said = watcher.communicate(timeout=250)[1]
        self.assertRegex(said, r"1 ranks, 25\d{6} events, no finding$")
        # What a part leaves when it is read late is at most its own events.
        self.assertLess(max(blocks), 300_000 * 64 + 8 * MIB)
        self.assertLess(max(memory[5:]) - max(memory[:5]), 4 * 1024)


class Processes(unittest.TestCase):

    def test_a_library_that_is_unloaded(self):
        ended = subprocess.run([LOCKSTEP, "watch", "--on-hang=kill", "--", *MPIRUN, "-n", "2",
                                CASES, "plugin", PLUGIN],
                               check=False, capture_output=True, text=True, timeout=250)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"HUNG, deadlock \(proved\): .*MPI_Recv.* at cases\.c:\d+")

    def test_a_process_that_becomes_another_program(self):
        ended = watch(CASES, "again")
        self.assertEqual((ended.returncode, ended.stdout), (0, "rank 0: 0\n"), ended.stderr)
        self.assertRegex(ended.stderr, r"lockstep watch: process \d+ is not watched: another "
                                       r"program ran in it before \(exec\)")
        self.assertRegex(ended.stderr, r"1 ranks, \d+ events, no finding; not all was watched")

    def test_a_static_program(self):
        ended = watch(STATIC)
        self.assertEqual((ended.returncode, ended.stdout), (7, "it ran\n"))
        self.assertEqual(ended.stderr, f"lockstep watch: {STATIC} is not watched: it is linked "
                                       "statically\n")
        ended = watch(*MPIRUN, "-n", "1", STATIC)
        self.assertIn(f"lockstep watch: {STATIC} is not watched: it is linked statically\n",
                      ended.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root gives a program to another user")
    def test_a_program_of_another_user(self):
        path = os.path.join(tempfile.mkdtemp(dir="/tmp"), "program")
        try:
            os.chmod(os.path.dirname(path), 0o755)
            shutil.copy("/bin/echo", path)
            try:
                os.chown(path, 65534, -1)
            except OSError:
                self.skipTest("there is no other user here")
            os.chmod(path, 0o4755)
            ended = watch(path, "it", "ran")
            self.assertEqual((ended.returncode, ended.stdout), (0, "it ran\n"))
            self.assertEqual(ended.stderr, f"lockstep watch: {path} is not watched: it runs as "
                                           "another user or group (set-user-ID)\n")
        finally:
            shutil.rmtree(os.path.dirname(path))


class Watchers(unittest.TestCase):

    def test_a_watcher_that_is_killed(self):
        """The program does not notice, and nothing is left of what they shared."""
        gate = os.path.join(new_folder(), "gate")
        with subprocess.Popen([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "2", CASES, "busy", gate],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as watcher:
            await_that(lambda: len(segments(watcher)) == 2)
            await_that(lambda: all(counts_of(each)[1] > 0 for each in segments(watcher)))
            ranks = [int(os.path.basename(each).partition(".")[0]) for each in segments(watcher)]
            watcher.send_signal(signal.SIGKILL)
            mine = f"/dev/shm/lockstep-watch-{watcher.pid}-*"
            await_that(lambda: not glob.glob(mine))
            self.assertFalse(any(map(gone, ranks)))
            touch(gate + ".enough")
            output, said = watcher.communicate(timeout=250)
        self.assertEqual(sorted(output.splitlines()), ["rank 0 is through", "rank 1 is through"],
                         said)
        # A rank may fill its segment before the janitor gets a processor, and says so once.
        full = {f"lockstep watch: process {rank} is not watched: the watcher is too far behind, or "
                "gone" for rank in ranks}
        lines = said.splitlines()
        self.assertEqual([line for line in lines if line not in full],
                         ["lockstep watch: nothing is watched any more: the watcher was ended; the "
                          "program goes on"])
        self.assertEqual(len(lines), len(set(lines)))
        await_that(lambda: all(map(gone, ranks)))
        self.assertEqual(glob.glob(mine), [])


@unittest.skipUnless(MOUNTS, "this kernel gives no namespace of mounts")
class SharedMemory(unittest.TestCase):

    def ran(self, mounts, said):
        command = " ".join([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "2", CASES, "ring"])
        ended = subprocess.run([*IN_NAMESPACE, mounts + command], check=False, capture_output=True,
                               text=True, timeout=250)
        self.assertEqual((ended.returncode, sorted(ended.stdout.splitlines())),
                         (0, ["rank 0: 1", "rank 1: 1"]), ended.stderr)
        lines = [line for line in ended.stderr.splitlines() if line.startswith("lockstep")]
        self.assertEqual(len(lines), len(said), ended.stderr)
        for line, pattern in zip(lines, said):
            self.assertRegex(line, pattern)

    def test_that_is_full(self):
        unwatched = r"process \d+ is not watched: No space left on device"
        self.ran("mount -t tmpfs -o size=32k tmpfs /dev/shm\n",
                 [unwatched, unwatched, "no program of MPI, gloo or NCCL was seen"])

    def test_that_becomes_full(self):
        """Nobody reads, so the rank needs more and more of it."""
        gate = os.path.join(new_folder(), "gate")
        command = ["exec", LOCKSTEP, "watch", "--", *MPIRUN, "-n", "1", CASES, "busy", gate]
        script = "mount -t tmpfs -o size=4m tmpfs /dev/shm\n" + " ".join(command)
        with subprocess.Popen([*IN_NAMESPACE, script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as watcher:
            pattern = f"/proc/{watcher.pid}/root/dev/shm/lockstep-watch-{watcher.pid}-*/*.watch"
            await_that(lambda: glob.glob(pattern))
            watcher.send_signal(signal.SIGSTOP)
            said = watcher.stderr.readline()
            touch(gate + ".enough")
            watcher.send_signal(signal.SIGCONT)
            output, rest = watcher.communicate(timeout=250)
        self.assertRegex(said, r"lockstep watch: process \d+ is not watched: no space for its "
                               "events\n")
        self.assertEqual((watcher.returncode, output), (0, "rank 0 is through\n"))
        self.assertRegex(rest, r"1 ranks, \d+ events, no finding; not all was watched")

    def test_that_is_absent_or_cannot_be_written(self):
        watched = [r"2 ranks, \d+ events, no finding$"]
        self.ran("mount -t tmpfs -o ro tmpfs /dev/shm\n", watched)
        self.ran("""folder=$(mktemp -d)
for each in null zero full random urandom tty; do touch $folder/$each; done
mount -t tmpfs tmpfs $folder
for each in null zero full random urandom tty; do
  touch $folder/$each; mount --bind /dev/$each $folder/$each
done
mkdir $folder/pts; mount --bind /dev/pts $folder/pts; ln -s pts/ptmx $folder/ptmx
mount --rbind $folder /dev
""", watched)


if __name__ == "__main__":
    unittest.main()
