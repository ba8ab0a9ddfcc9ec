#!/usr/bin/python3
"""Programs under `lockstep watch` go on whatever becomes of the watcher, its memory or their own
process. What is not watched is said in one line."""
import fcntl
import glob
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
CASES = os.path.abspath("watch/preload/cases")
PLUGIN = os.path.abspath("watch/preload/libplugin.so")
STATIC = os.path.abspath("watch/preload/static_program")
# Messages need no room in /dev/shm.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
          "--mca", "btl", "self,tcp"]
# A rank without a launcher, and without the one that Open MPI would start behind it. All such ranks
# would have one folder.
ALONE = dict(os.environ, OMPI_MCA_ess_singleton_isolated="1", OMPI_MCA_btl="self",
             OMPI_MCA_orte_tmpdir_base=tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
IN_NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "sh",
                "-ec"]
MOUNTS = subprocess.run([*IN_NAMESPACE, "mount -t tmpfs tmpfs /dev/shm"], check=False,
                        capture_output=True).returncode == 0
GONE = "lockstep watch: nothing is watched any more: the watcher was ended; the program goes on"
MIB = 1 << 20


def watch(*command, **how):
    return started.run([LOCKSTEP, "watch", "--", *command], **how)


def new_folder():
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def is_ready(segment):
    """A file appears before it has a length, and the first word of its header is written last."""
    with open(segment, "rb") as file:
        return any(file.read(8))


def segments(watcher, below=""):
    """Those of a watcher whose /dev/shm is in that folder."""
    return list(filter(is_ready, glob.glob(
        f"{below}/dev/shm/lockstep-watch-{watcher.pid}-*/*.watch")))


def counts_of(segment):
    """Events that were begun, and that were read."""
    with open(segment, "rb") as file:
        return struct.unpack_from("<QQ", file.read(64), 40)


def read_of(segment):
    return counts_of(segment)[1]


def take_terminal():
    """The standard input of this process becomes its session's."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)[1])


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def gone(pid):
    """It may be a zombie that nobody reaps."""
    return started.state_of(pid) in ("", "Z", "X")


class Memory(unittest.TestCase):

    @unittest.skipIf(started.SANITIZED, "a sanitizer keeps memory that was freed")
    def test_ten_million_calls(self):
        """After each part of the calls: blocks of the segment, and memory of the watcher."""
        gate = os.path.join(new_folder(), "part")
        with started.Started([LOCKSTEP, "watch", "--", CASES, "many", gate], env=ALONE,
                             stderr=subprocess.PIPE, text=True) as watcher:
            blocks, memory = [], []
            watcher.until(lambda: segments(watcher))
            segment, = segments(watcher)
            for part in range(50):
                # Send: its entry says later that it returned, and so does the receipt of Recv.
                watcher.until(lambda: counts_of(segment)[0] >= 300_000 * (part + 1))
                watcher.until(lambda: counts_of(segment)[1] >= counts_of(segment)[0] - 3 * 4096)
                blocks.append(os.stat(segment).st_blocks * 512)
                memory.append(anonymous_kib(watcher.pid))
                touch(f"{gate}.{part}")
            said = watcher.communicate()[1]
        self.assertRegex(said, r"1 ranks, 25\d{6} events, no finding$")
        # What a part leaves when it is read late is at most its own events.
        self.assertLess(max(blocks), 300_000 * 64 + 8 * MIB)
        self.assertLess(max(memory[5:]) - max(memory[:5]), 4 * 1024)


class Processes(unittest.TestCase):

    def test_a_library_that_is_unloaded(self):
        ended = started.run([LOCKSTEP, "watch", "--on-hang=kill", "--", *MPIRUN, "-n", "2", CASES,
                             "plugin", PLUGIN])
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"HUNG, deadlock \(proved\): .*MPI_Recv.* at cases\.c:\d+")

    def test_a_rank_that_the_command_itself_ends(self):
        """As a launcher does that is told to end, and then gets no processor for long."""
        folder = new_folder()
        rank = f"echo $$ > {folder}/rank$OMPI_COMM_WORLD_RANK; exec {CASES} late {folder}/gate"
        launch = " ".join(MPIRUN) + f" -n 2 sh -c '{rank}' &"
        ends = f"until [ -e {folder}/ends ]; do sleep 0.05; done; kill $(cat {folder}/rank0); wait"
        env = dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="5")
        with started.Started([LOCKSTEP, "watch", "--", "sh", "-c", launch + ends], env=env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True) as watcher:
            watcher.until(lambda: sum(counts_of(each)[0] > 1 for each in segments(watcher)) == 2)
            touch(f"{folder}/ends")
            said = watcher.communicate()[1]
        self.assertRegex(said, r"lockstep watch: 2 ranks, \d+ events, no finding\n")

    def test_a_process_that_becomes_another_program(self):
        ended = watch(CASES, "again", env=ALONE)
        self.assertEqual((ended.returncode, ended.stdout), (0, "rank 0: 0\n"), ended.stderr)
        self.assertRegex(ended.stderr, r"lockstep watch: process \d+ is not watched: another "
                                       r"program ran in it before \(exec\)")
        self.assertRegex(ended.stderr, r"1 ranks, \d+ events, no finding; not all was watched")

    def test_a_rank_that_becomes_a_program_without_mpi(self):
        ended = watch(CASES, "becomes", env=ALONE)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, r"^lockstep watch: process \d+ is not watched: another "
                                       r"program ran in it before \(exec\)\n"
                                       r"lockstep watch: 1 ranks, \d+ events, no finding; not all "
                                       r"was watched\n$")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes a namespace of processes")
    def test_a_rank_in_another_pid_namespace(self):
        """Its number is another process's here."""
        ended = watch("unshare", "--pid", "--fork", "--mount-proc", CASES, "ring",
                      env=ALONE)
        self.assertRegex(ended.stderr, r"^lockstep watch: process 1 is not judged: it is in "
                                       r"another pid namespace\n"
                                       r"lockstep watch: 1 ranks, \d+ events, no finding; not all "
                                       r"was watched\n")

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
        with started.Started([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "2", CASES, "busy", gate],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) as watcher:
            watcher.until(lambda: len(segments(watcher)) == 2)
            watcher.until(lambda: all(counts_of(each)[1] > 0 for each in segments(watcher)))
            ranks = [int(os.path.basename(each).partition(".")[0]) for each in segments(watcher)]
            watcher.send_signal(signal.SIGKILL)
            mine = f"/dev/shm/lockstep-watch-{watcher.pid}-*"
            watcher.until(lambda: not glob.glob(mine))
            self.assertFalse(any(map(gone, ranks)))
            touch(gate + ".enough")
            output, said = watcher.communicate()
            watcher.until(lambda: all(map(gone, ranks)))
        self.assertEqual(sorted(output.splitlines()), ["rank 0 is through", "rank 1 is through"],
                         said)
        # A rank may fill its segment before the janitor gets a processor, and says so once.
        full = {f"lockstep watch: process {rank} is not watched: the watcher is too far behind, or "
                "gone" for rank in ranks}
        lines = said.splitlines()
        self.assertEqual([line for line in lines if line not in full], [GONE])
        self.assertEqual(len(lines), len(set(lines)))
        self.assertEqual(glob.glob(mine), [])

    def test_another_one_that_begins_before_the_janitor_has_a_processor(self):
        with started.Started([LOCKSTEP, "watch", "--", "cat"], stdin=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) as watcher:
            def processes():
                return {name_of(pid): pid for pid in watcher.processes()}

            watcher.until(lambda: {"cat", "lockstep-janito"} <= processes().keys())
            janitor = processes()["lockstep-janito"]
            os.kill(janitor, signal.SIGSTOP)
            watcher.kill()
            watcher.wait()
            watch("true")
            os.kill(janitor, signal.SIGCONT)
            said = watcher.communicate()[1]
        self.assertEqual(said, GONE + "\n")


    def test_a_job_that_a_shell_stops_and_lets_go_on(self):
        gate = os.path.join(new_folder(), "gate")
        with started.Started([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "2", CASES, "busy", gate],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True) as watcher:
            watcher.until(lambda: len(segments(watcher)) == 2)
            watcher.send_signal(signal.SIGSTOP)
            watcher.send_signal(signal.SIGCONT)
            before = list(map(read_of, segments(watcher)))
            # It reads on, and its folder is there: it was not told that the launch ends.
            watcher.until(lambda: len(segments(watcher)) < 2 or all(
                now > then for then, now in zip(before, map(read_of, segments(watcher)))))
            self.assertEqual(len(segments(watcher)), 2)
            touch(gate + ".enough")
            said = watcher.communicate()[1]
        self.assertRegex(said, r"^lockstep watch: 2 ranks, \d+ events, no finding\n$")

    def test_lines_that_nobody_takes(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for case, code in ("ring", 0), ("receives", 1):
                with started.Started([LOCKSTEP, "watch", "--on-hang=kill", "--", *MPIRUN, "-n",
                                      "2", CASES, case], stdout=subprocess.DEVNULL,
                                     stderr=full) as watcher:
                    self.assertEqual(watcher.wait(), code)

    def test_what_a_terminal_sends_comes_once(self):
        """The watcher stands until its program has the interrupt: of two that are pending at once
        the kernel makes one. If it sends a second one, that comes before what it sends next. A
        pipe tells of them: Python handles a signal that comes just before a read(2) after it."""
        program = ("import os, signal\n"
                   "told, tell = os.pipe()\n"
                   "os.set_blocking(tell, False)\n"
                   "signal.set_wakeup_fd(tell)\n"
                   "for number in signal.SIGINT, signal.SIGTERM:\n"
                   "    signal.signal(number, lambda *_: None)\n"
                   "print('ready', flush=True)\n"
                   "numbers = b''\n"
                   "while signal.SIGTERM not in numbers:\n"
                   "    numbers = os.read(told, 9)\n"
                   "    print(*numbers, flush=True)\n")
        ours, theirs = pty.openpty()
        with started.Started([LOCKSTEP, "watch", "--", sys.executable, "-c", program],
                             stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, start_new_session=True,
                             preexec_fn=take_terminal) as watcher:
            os.close(theirs)
            self.assertEqual(watcher.stdout.readline(), "ready\n")
            watcher.send_signal(signal.SIGSTOP)
            watcher.until(lambda: started.state_of(watcher.pid) == "T")
            os.write(ours, b"\x03")
            self.assertEqual(watcher.stdout.readline(), f"{signal.SIGINT:d}\n")
            watcher.send_signal(signal.SIGCONT)
            watcher.until(lambda: not glob.glob(f"/dev/shm/lockstep-watch-{watcher.pid}-*"))
            watcher.send_signal(signal.SIGTERM)
            self.assertEqual(watcher.communicate()[0], f"{signal.SIGTERM:d}\n")
        os.close(ours)


@unittest.skipUnless(MOUNTS, "this kernel gives no namespace of mounts")
class SharedMemory(unittest.TestCase):

    def ran(self, mounts, said):
        command = " ".join([LOCKSTEP, "watch", "--", *MPIRUN, "-n", "2", CASES, "ring"])
        ended = started.run([*IN_NAMESPACE, mounts + command])
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
        command = ["exec", LOCKSTEP, "watch", "--", CASES, "busy", gate]
        script = "mount -t tmpfs -o size=4m tmpfs /dev/shm\n" + " ".join(command)
        with started.Started([*IN_NAMESPACE, script], env=ALONE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) as watcher:
            watcher.until(lambda: segments(watcher, f"/proc/{watcher.pid}/root"))
            watcher.send_signal(signal.SIGSTOP)
            said = watcher.stderr.readline()
            touch(gate + ".enough")
            watcher.send_signal(signal.SIGCONT)
            output, rest = watcher.communicate()
        self.assertRegex(said, r"lockstep watch: process \d+ is not watched: no space for its "
                               "events\n")
        self.assertEqual((watcher.returncode, output), (0, "rank 0 is through\n"))
        self.assertRegex(rest, r"1 ranks, \d+ events, no finding; not all was watched")

    def test_that_is_absent_or_cannot_be_written(self):
        watched = [r"2 ranks, \d+ events, no finding$"]
        self.ran("mount -t tmpfs -o ro tmpfs /dev/shm\n", watched)
        self.ran(f"folder={new_folder()}\n" + """
mount -t tmpfs tmpfs $folder
for each in null zero full random urandom tty; do
  touch $folder/$each; mount --bind /dev/$each $folder/$each
done
mkdir $folder/pts; mount --bind /dev/pts $folder/pts; ln -s pts/ptmx $folder/ptmx
mount --rbind $folder /dev
""", watched)


if __name__ == "__main__":
    unittest.main()
