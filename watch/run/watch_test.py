#!/usr/bin/python3
"""Real MPI programs under `lockstep watch`: wrong ones are named, of right ones nothing is said.

  watch_test.py LAUNCHER CASES           testing/cases.c, built for the launcher's MPI
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.abspath("core/base/testing"))
import started  # pylint: disable=wrong-import-position

LOCKSTEP = os.path.abspath("cli/lockstep")
LAUNCHER = sys.argv[1]
CASES = os.path.abspath(sys.argv[2])
OPTIONS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"] \
    if LAUNCHER == "mpirun" else []

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
IN_NAMESPACE = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
READ_ONLY = """for folder in /dev/shm /tmp; do
  mount --bind $folder $folder; mount -o remount,ro,bind $folder
done
"""
OWN_MOUNTS = subprocess.run([*IN_NAMESPACE, READ_ONLY], check=False,
                            capture_output=True).returncode == 0


def launch(case, ranks=3, options=("--on-hang=kill",), env=None):
    command = [LOCKSTEP, "watch", *options, "--", LAUNCHER, "-n", str(ranks), *OPTIONS, CASES,
               case]
    return started.run(command, cwd=FOLDER, env=env)


def shown(ended):
    """What `lockstep show` says of the file that was named."""
    path = re.search(r"^lockstep watch: lockstep show (\S+)$", ended.stderr, re.M)[1]
    return subprocess.run([LOCKSTEP, "show", path], check=True, capture_output=True, text=True,
                          timeout=60, cwd=FOLDER).stdout


def findings(ended):
    """[(cause, text)]: what the watcher told, without its remedies."""
    return re.findall(r"^lockstep watch: (?:HUNG, )?(\w+) \(\w+\): (.*)$", ended.stderr, re.M)


NEW = "Open MPI 4 has no calls of MPI 4"


class RightPrograms(unittest.TestCase):

    def right(self, case, ranks=3, options=(), env=None):
        ended = launch(case, options=("--on-hang=kill", *options), env=env)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(findings(ended), [])
        self.assertRegex(ended.stderr, r"%d ranks, \d+ events, no finding" % ranks)
        self.assertNotIn("lockstep show", ended.stderr)
        return ended

    def test_their_output_is_their_own(self):
        self.assertEqual(sorted(self.right("ring").stdout.splitlines()),
                         ["rank 0: 3", "rank 1: 3", "rank 2: 3"])

    def test_wildcards_and_types_and_communicators(self):
        self.right("master")
        self.right("objects")

    def test_many_requests_at_once(self):
        self.right("window")

    def test_messages_that_are_probed(self):
        self.right("probes")
        self.right("imrecv")
        self.right("statuses")

    def test_a_request_of_a_call_that_is_not_followed(self):
        self.right("neighbors")

    def test_windows_that_are_locked(self):
        self.right("locks")

    @unittest.skipIf(LAUNCHER != "mpirun", "MPICH 4.0 refuses to put where a window is posted, too")
    def test_windows_of_some_ranks(self):
        self.right("epochs")

    def test_processes_that_fork(self):
        self.right("forks")

    def test_loops_whose_calls_are_counted(self):
        """No call is lost: an entry and a return each, beside those of MPI_Init and the end."""
        ended = self.right("loops")
        events = int(re.search(r"3 ranks, (\d+) events", ended.stderr)[1])
        calls = 3 * 1000 * (1 + 2 + 3 + 4 + 5) + 8
        self.assertGreaterEqual(events, 2 * calls)
        self.assertLess(events, 2 * calls + 100)

    def test_many_communicators(self):
        self.right("communicators")

    def test_communicators_that_only_some_ranks_get(self):
        self.right("regroups")
        self.right("unites")

    def test_handles_that_come_again(self):
        self.right("new_types")
        self.right("new_communicators")
        self.right("refused")
        self.right("given_types")
        for case in "shared_types", "frees_inside", "calls_inside", "jumps", "jumps_again":
            self.right(case, options=("--leaks",))

    @unittest.skipIf(LAUNCHER != "mpirun", "MPICH shares handles itself")
    def test_a_handle_of_a_type_that_is_given_again(self):
        shares = os.path.abspath("watch/preload/libshared_types.so")
        self.right("shared_types", options=("--leaks",), env=dict(os.environ, LD_PRELOAD=shares))

    def test_calls_that_the_library_makes_itself(self):
        """ROMIO's: part of MPICH, a module of Open MPI."""
        self.right("shared_file", options=("--leaks",),
                   env=dict(os.environ, OMPI_MCA_io="^ompio"))

    def test_who_gives_nothing_may_name_any_type(self):
        self.right("nothing")

    @unittest.skipIf(started.SANITIZED, "the runtime isn't ready to look up")
    def test_a_call_that_the_library_lacks_is_absent(self):
        alone = subprocess.check_output([CASES, "asks"], text=True, timeout=60)
        self.assertEqual(self.right("asks").stdout, alone)

    @unittest.skipIf(LAUNCHER == "mpirun", NEW)
    def test_counts_of_both_sizes(self):
        self.right("sizes")

    @unittest.skipIf(LAUNCHER == "mpirun", NEW)
    def test_sends_and_receives_in_one_request(self):
        self.right("exchanges")

    @unittest.skipIf(LAUNCHER == "mpirun", NEW)
    def test_calls_that_are_not_followed_are_named(self):
        for case, calls in (("partitions", "MPI_Barrier_init, MPI_Precv_init, MPI_Psend_init"),
                            ("unfollowed", "MPI_Comm_create_from_group")):
            self.assertIn(f"no finding; not followed: {calls}\n", self.right(case).stderr)

    def test_requests_that_are_cancelled_or_freed(self):
        self.right("given_up")

    def test_callbacks_in_finalize_call_what_they_like(self):
        self.right("callbacks")

    def test_threads_whose_handles_come_again_in_other_threads(self):
        self.right("thread_requests")
        self.right("thread_types")

    def test_threads_of_which_one_makes_the_collectives(self):
        self.right("thread_orders")

    def test_a_thread_that_frees_another_one(self):
        self.right("thread_helps")

    @unittest.skipIf(LAUNCHER != "mpirun", "Debian's Hydra spawns nothing")
    def test_processes_that_the_program_starts(self):
        self.right("spawned", ranks=5)

    def test_threads_that_call_at_a_time(self):
        """No event is lost: a Sendrecv is a message, an entry, a receipt and a return."""
        ended = self.right("threads")
        events = int(re.search(r"3 ranks, (\d+) events", ended.stderr)[1])
        calls = 3 * 4 * 5000
        self.assertGreaterEqual(events, 4 * calls)
        self.assertLess(events, 4 * calls + 200)

    def test_a_rank_that_is_slow_or_polls_is_not_hung(self):
        self.right("slow")
        self.right("poll")

    def test_the_exit_code_is_passed_on(self):
        for code in (0, 7):
            ended = subprocess.run([LOCKSTEP, "watch", "--", "sh", "-c", "exit %d" % code],
                                   check=False, capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, code)
            self.assertIn("no program of MPI, gloo or NCCL was seen", ended.stderr)

    def test_where_nothing_was_watched_nothing_passes(self):
        file = os.path.join(FOLDER, "nothing.h5")
        watched = subprocess.run([LOCKSTEP, "watch", f"--output={file}", "--", "true"], check=False,
                                 capture_output=True, text=True, timeout=60, cwd=FOLDER)
        self.assertEqual(watched.returncode, 0)
        self.assertIn("INCONCLUSIVE: no finding; not all was watched", shown(watched))

    @unittest.skipUnless(OWN_MOUNTS, "this kernel gives no namespace of mounts")
    def test_without_a_writable_folder_the_program_runs(self):
        script = READ_ONLY + LOCKSTEP + " watch -- sh -c 'echo it ran; exit 7'"
        ended = subprocess.run([*IN_NAMESPACE, script], check=False, capture_output=True, text=True,
                               timeout=60, env=dict(os.environ, TMPDIR="/no/such/folder"))
        self.assertEqual((ended.returncode, ended.stdout), (7, "it ran\n"), ended.stderr)
        self.assertEqual(ended.stderr, "lockstep watch: sh is not watched: no folder for events: "
                                       "make /dev/shm or /tmp writable\n")

    def test_a_command_that_is_not_there(self):
        ended = subprocess.run([LOCKSTEP, "watch", "--", "/no/such/launcher"], check=False,
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("/no/such/launcher: cannot be started", ended.stderr)


class WrongPrograms(unittest.TestCase):

    def wrong(self, case, cause, pattern, *options):
        ended = launch(case, options=("--on-hang=kill", *options))
        told = findings(ended)
        self.assertEqual([each[0] for each in told], [cause], ended.stderr)
        self.assertRegex(told[0][1], pattern)
        self.assertIn(cause, shown(ended))
        return ended

    def test_hangs_are_proved_and_ended(self):
        at = r"cases\.c:\d+"
        ended = self.wrong("receives", "deadlock",
                           r"rank 0 waits in MPI_Recv from rank 1, tag 7, at " + at)
        self.assertEqual(ended.returncode, 1)
        self.wrong("tag", "tag_mismatch", "tag 6, at " + at + "; the message came with tag 5")
        # Whoever comes second is named first.
        self.wrong("mismatch", "call_mismatch", "(?=.*rank 1 calls MPI_Allreduce at " + at +
                   ")(?=.*rank [02] calls MPI_Barrier at " + at + ")")

    def test_ranks_that_hang_because_their_calls_differ_are_ended(self):
        self.assertEqual(self.wrong("outrun", "call_mismatch", "MPI_Bcast").returncode, 1)
        self.assertEqual(self.wrong("roots", "root_mismatch", "MPI_Bcast").returncode, 1)
        ended = self.wrong("swapped", "call_mismatch", "MPI_Bcast")
        self.assertEqual(ended.returncode == 0, LAUNCHER == "mpirun")  # MPICH calls it truncated

    @unittest.skipIf(LAUNCHER == "mpirun", NEW)
    def test_hangs_in_calls_of_mpi_4(self):
        at = r"new_cases\.c:\d+"
        self.wrong("receives_large", "deadlock", "rank 0 waits in MPI_Recv from rank 1, tag 7, at "
                   + at)
        self.wrong("exchanges_tags", "tag_mismatch", "rank 0 waits in MPI_Wait for MPI_Isendrecv "
                   f"from rank 1, tag 2, at {at}; the message came with tag 1")
        self.wrong("exchanges_one_way", "deadlock", "rank 0 waits in MPI_Wait for MPI_Isendrecv "
                   f"from rank 1, tag 1, at {at}; rank 1 is ")

    def test_calls_that_make_a_communicator_of_some_ranks(self):
        at = r"cases\.c:\d+"
        ends = "rank 2 ends without %s, which rank [01] called at wrong_" + at
        self.wrong("ungrouped", "missing_call", ends % "MPI_Comm_create_group")
        self.wrong("unmerged", "missing_call", ends % "MPI_Intercomm_merge")
        self.wrong("unbridged", "deadlock", "rank 0 waits in MPI_Intercomm_create at wrong_" + at)

    def test_a_message_that_ends_the_launch(self):
        self.wrong("truncated", "truncation", r"rank 0 sends 3 elements at cases\.c:\d+; "
                                              r"rank 1 has room for 2 at cases\.c:\d+")

    def test_messages_that_are_too_large_and_a_program_that_goes_on(self):
        """Each receive took its message: so the last one waits for one that nobody sends."""
        ended = launch("too_small")
        told = findings(ended)
        self.assertEqual([cause for cause, _ in told], ["truncation"] * 8, ended.stderr)
        self.assertEqual(ended.returncode, 1)

    def test_a_launcher_that_does_not_end_its_ranks(self):
        """The ranks are ended before it is: so it may go on."""
        script = 'trap : TERM; "$@" & wait $!; wait $!; echo "ended with $?"'
        ended = started.run([LOCKSTEP, "watch", "--on-hang=kill", "--", "sh", "-c", script, "sh",
                             LAUNCHER, "-n", "3", *OPTIONS, CASES, "receives"], cwd=FOLDER)
        self.assertEqual([cause for cause, _ in findings(ended)], ["deadlock"], ended.stderr)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, r"ended with \d+")

    def test_a_loop_that_one_rank_leaves(self):
        self.wrong("leaves_loop", "missing_call", "rank 2 ends without MPI_Allreduce, which rank "
                   r"[01] called at wrong_cases\.c:\d+")

    def test_a_neighbor_that_never_comes(self):
        self.wrong("alone", "deadlock", r"rank 0 waits in MPI_Wait for MPI_Ineighbor_allgather at "
                   r"wrong_cases\.c:\d+; rank 1 is in MPI_Barrier at wrong_cases\.c:\d+")

    def test_a_root_that_never_sends(self):
        self.wrong("gathers", "deadlock", r"rank 0 waits in MPI_Gatherv at \S+; rank 2 is in MPI_R")

    def test_windows_that_are_not_given_back(self):
        at = r"wrong_cases\.c:\d+"
        self.wrong("uncompleted", "deadlock",
                   rf"rank 0 waits in MPI_Win_wait at {at}; rank 1 is in MPI_Barrier at {at}")
        self.wrong("locked", "deadlock", rf"rank 1 is in MPI_Win_lock at {at}")

    def test_threads_that_are_all_stuck(self):
        self.wrong("thread_receives", "deadlock", r"rank 0 waits in MPI_Recv from rank 1, "
                   r"tag [12], at wrong_cases\.c:\d+")

    def until_said(self, options, case, last):
        """What was said up to the line that has `last`; then the launch is told to end."""
        command = [LOCKSTEP, "watch", *options, "--", LAUNCHER, "-n", "3", *OPTIONS, CASES, case]
        with started.Started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, cwd=FOLDER) as watcher:
            said = ""
            for line in watcher.stderr:
                said += line
                if last in line:
                    watcher.send_signal(signal.SIGTERM)
            watcher.wait(250)
        return subprocess.CompletedProcess(command, watcher.returncode, stderr=said)

    def test_stacks_of_all_ranks_that_hang(self):
        ended = self.until_said(["--on-hang=stacks"], "receives", "lockstep show")
        self.assertEqual([each[0] for each in findings(ended)], ["deadlock"], ended.stderr)
        for text in (ended.stderr, shown(ended)):
            stacks = text[text.index("Stacks and errors"):]
            if "built without elfutils" not in stacks:
                self.assertIn("receives@%s" % os.path.basename(CASES), stacks)
            ends = text[text.index("Ranks that did not finish"):text.index("Stacks and errors")]
            for rank in range(3):
                self.assertRegex(ends, r"rank %d: hung: in MPI_Recv from rank %d, tag 7" %
                                 (rank, (rank + 1) % 3))

    def test_the_file_is_there_before_the_launch_ends(self):
        ended = self.until_said([], "receives", "lockstep show")
        self.assertIn("deadlock", shown(ended))
        self.assertNotIn("Stacks and errors", ended.stderr)

    def test_where_ranks_were_when_the_launch_was_told_to_end(self):
        go = os.path.join(FOLDER, "never")
        command = [LOCKSTEP, "watch", "--", LAUNCHER, "-n", "3", *OPTIONS, CASES, "late", go]
        with started.Started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, cwd=FOLDER) as watcher:
            while self.calls_of(watcher.pid).count("MPI_Barrier") < 2:
                self.assertIsNone(watcher.poll())
                time.sleep(0.05)
            watcher.send_signal(signal.SIGTERM)
            said = watcher.communicate()[1]
        self.assertRegex(said, r"(?m)^lockstep watch: when the launch ended\n"
                               r"  rank 0 is in MPI_Barrier at cases\.c:\d+\n"
                               r"  rank 2 is in MPI_Barrier at cases\.c:\d+$")
        self.assertNotIn("lockstep show", said)

    def calls_of(self, watcher):
        told = subprocess.run([LOCKSTEP, "status", "--format=json"], check=True,
                              capture_output=True, text=True, timeout=60)
        return [call["call"] for job in json.loads(told.stdout)["jobs"]
                if job["watcher"] == watcher for rank in job["ranks"] for call in rank["calls"]
                if call["inside"]]

    def test_misuse_and_leaks(self):
        self.wrong("invalid", "invalid_rank", r"rank \d gives MPI_Send rank 6 of 3 at cases\.c:")
        self.wrong("leak", "communicator_leak", r"MPI_Comm_dup at cases\.c:", "--leaks")
        self.assertEqual(findings(launch("leak")), [])
        self.wrong("unawaited", "unfinished_request",
                   r"rank 0 never waits for its MPI_Imrecv at cases\.c:")

    def test_a_main_thread_that_ends_is_no_end_of_its_process(self):
        self.assertEqual(findings(launch("main_leaves")), [])

    def test_ranks_that_end(self):
        self.wrong("leaves", "lost_rank", "rank 1 exited with code 0 without MPI_Finalize")
        for case, end in ("exits", "exited with code 3"), ("killed", "died"):
            named = f"rank 1 {end} without MPI_Finalize"
            if LAUNCHER == "mpirun":
                # A second after a rank died the launcher would end the others: a look comes before.
                with mock.patch.dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="10"):
                    self.wrong(case, "lost_rank", named)
                continue
            # Hydra kills the others at once. Where no look came between, nobody is named, or all
            # that are gone while one is left; the tests of the judge and of jobs have both.
            for cause, text in findings(launch(case)):
                self.assertEqual(cause, "lost_rank")
                self.assertRegex(text, f"{named}|rank [012](, rank [012])* ended without")

    def test_one_watcher_a_rank_leaves_nothing_behind(self):
        """Also where the launcher kills all that is left at once, as Hydra does."""
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        script = f'echo > "{folder}/$$"; exec "$@"'
        ended = started.run(
            [LAUNCHER, "-n", "3", *OPTIONS, "sh", "-c", script, "sh", LOCKSTEP, "watch", "--",
             CASES, "killed"])
        self.assertEqual([cause for cause, _ in findings(ended)], ["lost_rank"], ended.stderr)
        pids = os.listdir(folder)
        self.assertEqual(len(pids), 3)
        ours = re.compile("lockstep-watch-(%s)-" % "|".join(pids))
        deadline = time.monotonic() + 60  # the launcher does not wait for what it killed
        while time.monotonic() < deadline and any(map(ours.match, os.listdir("/dev/shm"))):
            time.sleep(0.05)
        self.assertEqual([name for name in os.listdir("/dev/shm") if ours.match(name)], [])

    def test_nothing_is_left_behind(self):
        command = [LOCKSTEP, "watch", "--", LAUNCHER, "-n", "2", *OPTIONS, CASES, "killed"]
        with started.Started(command, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) as watcher:
            watcher.wait(250)
        mine = "lockstep-watch-%d-" % watcher.pid
        self.assertEqual([name for name in os.listdir("/dev/shm") if name.startswith(mine)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
