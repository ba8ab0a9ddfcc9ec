#!/usr/bin/python3
"""One watcher a rank, on one host and on four (namespaces): hung and lost ranks are named with
their hosts, of right programs nothing is said, exit codes are passed on."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

LOCKSTEP = os.path.abspath("cli/lockstep")
CASES = os.path.abspath("watch/preload/cases")
HOSTS = os.path.abspath("scripts/test_hosts")
OPTIONS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def run(command, **variables):
    return subprocess.run(command, check=False, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, cwd=FOLDER,
                          env=dict(os.environ, HOME=FOLDER, **variables))


def watch(*words):
    return [LOCKSTEP, "watch", *words]


def one_host(*words, ranks=4, **variables):
    return run(["mpirun", "-np", str(ranks), *OPTIONS, *words], **variables)


def remove_files(said):
    """Ranks of hosts do not begin in our folder, so their result files are elsewhere."""
    for path in re.findall(r"lockstep show (/\S+-watch-\w+\.h5)$", said, re.M):
        os.remove(path)


def hosts(number, *words, ranks=1, options=()):
    ended = run([HOSTS, str(number), f"--ranks-per-host={ranks}", *options, "--", *words])
    remove_files(ended.stderr)
    return ended


def until_named(command):
    """What was said up to the name of the result file; then the launch is ended. A launcher that is
    killed before it has ended its ranks, because others have its processors, leaves them behind."""
    with subprocess.Popen(["timeout", "-k", "60", "1000", *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, cwd=FOLDER,
                          env=dict(os.environ, HOME=FOLDER)) as launch:
        said = ""
        for line in launch.stderr:
            said += line
            if "lockstep show" in line:
                launch.send_signal(signal.SIGTERM)
    remove_files(said)
    return said


def judged_by_dumps(said):
    return re.findall(r"^lockstep watch: (\w+) \(suspected, by PyTorch's Flight Recorder\): (.*)$",
                      said, re.M)


def findings(ended):
    return re.findall(r"^lockstep watch: (?:HUNG, )?(\w+) \(\w+\): (.*)$", ended.stderr, re.M)


PYTHON = "/usr/bin/python3"
TRAIN = os.path.abspath("watch/run/testing/train.py")
# A rank that is played, of PyTorch with NCCL; rank 1 lacks a call.
DUMPS = os.path.abspath("cli/diagnose/testing")
FAKE_RANK = [PYTHON, os.path.abspath("watch/run/testing/fake_rank.py"), DUMPS]
IS_RANK = "RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE exec \"$@\""
# What a launcher of PyTorch says, and nothing of another's.
AS_PYTORCH = """
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE MASTER_ADDR=10.77.0.1
export MASTER_PORT=29531 GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1
for name in $(env | grep -oE '^(OMPI|PMIX|PMI)[A-Za-z_0-9]*'); do unset $name; done
exec "$@"
"""
# The watcher of rank $1 is killed; then the program begins.
LOSES_WATCHER = f"""
echo $LOCKSTEP_WATCH_FOLDER
[ $OMPI_COMM_WORLD_RANK = $1 ] && kill -9 $PPID
exec {CASES} ring
"""
# Rank 1 has ended, and its watcher stays, until it is killed; rank 0 goes on.
OUTLIVES_RANK = """
[ $OMPI_COMM_WORLD_RANK = 1 ] && echo $PPID $$ > $1/it && mv $1/it $1/rank_1 && exit 0
until [ -e $1/rank_1 ]; do sleep 0.02; done
read watcher rank < $1/rank_1
while [ -e /proc/$rank ]; do sleep 0.02; done
kill -9 $watcher && echo it was killed
while [ -e /proc/$watcher ]; do sleep 0.02; done
"""
# The watcher of rank 0 is stopped, until that of rank 1, whose program has ended, is gone.
STOPS_FIRST_WATCHER = """
if [ $OMPI_COMM_WORLD_RANK = 1 ]; then
  echo $PPID > $1/it && mv $1/it $1/watcher_1
  until [ -e $1/stopped ]; do sleep 0.02; done
  exit 0
fi
until [ -e $1/watcher_1 ]; do sleep 0.02; done
read watcher < $1/watcher_1
sleep 2; kill -STOP $PPID; touch $1/stopped
while [ -e /proc/$watcher ]; do sleep 0.02; done
kill -CONT $PPID
"""
# The launch is ended while the watcher of rank 1 can do nothing.
ENDS_WITHOUT_WATCHER = """
[ $OMPI_COMM_WORLD_RANK = 0 ] && exec sleep 100
keeper=$(cut -d' ' -f4 /proc/$PPID/stat)
kill -STOP $PPID
kill -TERM $keeper
for look in $(seq 300); do [ -e $LOCKSTEP_WATCH_FOLDER ] && sleep 0.1; done
[ -e $LOCKSTEP_WATCH_FOLDER ] || echo nothing is left
kill -CONT $PPID
sleep 100
"""
# Rank 1 is killed, and rank 0 outlives SIGTERM. Is the file there while rank 0 is?
KEEPS_FILE = f"""
if [ $OMPI_COMM_WORLD_RANK = 0 ]; then
  trap '' TERM
  setsid sh -c 'while [ -e /proc/$1/exe ]; do
    [ -s "$2" ] && echo there; [ -s "$2" ] && kill -KILL $1; sleep 0.02
  done' sh $$ "$1" 2> /dev/null &
fi
exec {CASES} killed
"""
HAS_TORCH = run([PYTHON, "-c", "import torch"]).returncode == 0
PROBE = run([HOSTS, "1", "--shell", "--", "true"])


class OneHost(unittest.TestCase):

    def test_a_right_program(self):
        ended = one_host(*watch("--", CASES, "ring"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(sorted(ended.stdout.splitlines()), [f"rank {i}: 6" for i in range(4)])
        self.assertEqual(len(re.findall("lockstep watch: ", ended.stderr)), 1, ended.stderr)
        self.assertRegex(ended.stderr, r"4 ranks, \d+ events, no finding\n")

    def test_exit_codes_and_signals_are_passed_on(self):
        ended = one_host(*watch("--", "sh", "-c", "exit 7"), ranks=2)
        self.assertEqual(ended.returncode, 7, ended.stderr)
        ended = one_host(*watch("--", CASES, "killed"), ranks=3)
        self.assertEqual(ended.returncode, 128 + 9, ended.stderr)
        self.assertEqual([each[0] for each in findings(ended)], ["lost_rank"], ended.stderr)

    def test_a_rank_that_hangs(self):
        ended = one_host(*watch("--on-hang=kill", "--", CASES, "receives"))
        self.assertEqual([each[0] for each in findings(ended)], ["deadlock"], ended.stderr)
        self.assertEqual(ended.returncode, 1, ended.stderr)

    def test_only_the_program_gets_the_library(self):
        ended = one_host(*watch("--", "sh", "-c", "echo $LD_PRELOAD; cat /proc/$PPID/environ"),
                         ranks=2)
        self.assertEqual(len(re.findall(r"liblockstep_watch\.so", ended.stdout)), 2)

    def test_a_watcher_that_is_lost_costs_no_rank(self):
        for rank in (0, 1):
            ended = one_host(*watch("--", "sh", "-c", LOSES_WATCHER, "sh", str(rank)), ranks=2)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(findings(ended), [], ended.stderr)
            self.assertIn(f"rank {rank} (host ", ended.stderr)
            self.assertIn("its watcher was ended by signal 9; the program goes on", ended.stderr)
            words = ended.stdout.split("\n")
            for each in (0, 1):
                self.assertIn(f"rank {each}: 1", words)
            folders = [word for word in words if word.startswith("/")]
            self.assertEqual([len(folders), list(filter(os.path.exists, folders))], [2, []])

    def test_a_watcher_that_is_lost_after_its_rank_ended(self):
        ended = one_host(*watch("--", "sh", "-c", OUTLIVES_RANK, "sh", FOLDER), ranks=2)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("it was killed", ended.stdout)

    def test_a_first_watcher_that_is_stopped_keeps_no_other(self):
        ended = one_host(*watch("--", "sh", "-c", STOPS_FIRST_WATCHER, "sh",
                                tempfile.mkdtemp(dir=FOLDER)), ranks=2)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_a_rank_without_its_watcher_ends_as_it_would_alone(self):
        ended = one_host(*watch("--", "sh", "-c", "kill -9 $PPID; exit 7"), ranks=2)
        self.assertEqual(ended.returncode, 7, ended.stderr)

    def test_a_watcher_that_cannot_clear_away_leaves_nothing(self):
        ended = one_host(*watch("--", "sh", "-c", ENDS_WITHOUT_WATCHER), ranks=2)
        self.assertEqual(ended.stdout, "nothing is left\n", ended.stderr)

    def test_the_report_is_written_before_the_launcher_kills(self):
        file = os.path.join(FOLDER, "early.h5")
        ended = run(["mpirun", "-np", "2", *OPTIONS, "--mca", "odls_base_sigkill_timeout", "10",
                     *watch("--report", f"--output={file}", "--", "sh", "-c", KEEPS_FILE, "sh",
                            file)])
        self.assertTrue(ended.stdout.startswith("there\n"), ended.stdout + ended.stderr)
        shown = run([LOCKSTEP, "show", file])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("rank 1 died without MPI_Finalize", shown.stdout)

    def test_dumps_of_the_ranks_of_all_watchers(self):
        said = until_named(["mpirun", "-np", "3", *OPTIONS, *watch(
            "--timeout=10", "--", "sh", "-c", IS_RANK, "sh", *FAKE_RANK)])
        [(cause, text)] = judged_by_dumps(said)
        self.assertEqual(cause, "rank_busy", said)
        self.assertIn("rank 1 has not called all_reduce at train.py:31", text)
        self.assertIn("ranks 0 and 2 wait for it", text)

    def test_some_ranks_are_not_watched(self):
        # Rank 0's watcher is missing: the program runs, and what is not watched is said.
        script = f'[ $OMPI_COMM_WORLD_RANK = 0 ] && exec {CASES} ring; exec "$@"'
        ended = one_host("sh", "-c", script, "sh", *watch("--", CASES, "ring"), ranks=2)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(sorted(ended.stdout.splitlines()), ["rank 0: 1", "rank 1: 1"])
        self.assertEqual(findings(ended), [])
        self.assertRegex(ended.stderr, "rank 1 .* is not watched: the watcher of rank 0 was not")


@unittest.skipIf(PROBE.returncode == 77, PROBE.stderr.strip())
class FourHosts(unittest.TestCase):

    def test_a_right_program(self):
        for case in ("ring", "objects"):
            ended = hosts(4, *watch("--", CASES, case))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(findings(ended), [])
            self.assertRegex(ended.stderr, r"4 ranks, \d+ events, no finding\n")
            if case == "ring":
                self.assertEqual(sorted(ended.stdout.splitlines()),
                                 [f"rank {i}: 6" for i in range(4)])

    def test_each_waits_for_a_message_that_nobody_sends(self):
        ended = hosts(4, *watch("--on-hang=kill", "--", CASES, "receives"))
        told = findings(ended)
        self.assertEqual([each[0] for each in told], ["deadlock"], ended.stderr)
        self.assertRegex(told[0][1], r"rank 0 \(host node1\) waits in MPI_Recv from rank 1 "
                                     r"\(host node2\), tag 7, at cases\.c:\d+")
        self.assertLessEqual(len(told[0][1].split()), 25)
        for rank in range(4):
            self.assertRegex(ended.stderr, rf"rank {rank} \(host node{rank + 1}\) is in MPI_Recv "
                                           rf"from rank {(rank + 1) % 4}.*at cases\.c:")
        self.assertEqual(ended.returncode, 1, ended.stderr)

    def test_calls_that_differ_on_two_hosts(self):
        ended = hosts(2, *watch("--on-hang=kill", "--", CASES, "mismatch"), ranks=2)
        told = findings(ended)
        self.assertEqual([each[0] for each in told], ["call_mismatch"], ended.stderr)
        self.assertRegex(told[0][1], r"rank 1 \(host node1\)")

    def test_a_rank_that_is_killed(self):
        ended = hosts(4, *watch("--", CASES, "killed"))
        told = findings(ended)
        self.assertEqual([each[0] for each in told], ["lost_rank"], ended.stderr)
        self.assertRegex(told[0][1], r"rank 1 \(host node2\) died without MPI_Finalize")
        self.assertEqual(ended.returncode, 128 + 9, ended.stderr)

    def test_slow_ranks_are_not_hung(self):
        for case in ("slow", "poll"):
            ended = hosts(2, *watch("--", CASES, case))
            self.assertEqual((ended.returncode, findings(ended)), (0, []), ended.stderr)

    def test_a_watcher_that_is_lost_costs_no_rank(self):
        for rank in (0, 1):
            ended = hosts(2, *watch("--", "sh", "-c", LOSES_WATCHER, "sh", str(rank)))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(findings(ended), [], ended.stderr)
            self.assertIn(f"rank {rank} (host node{rank + 1}) is not watched any more: its watcher",
                          ended.stderr)
            for each in (0, 1):
                self.assertIn(f"rank {each}: 1\n", ended.stdout)

    def test_they_meet_where_pytorch_does(self):
        address = [f"--set={host}:MASTER_ADDR=10.77.0.1" for host in (1, 2)]
        ended = hosts(2, *watch("--on-hang=kill", "--", CASES, "receives"), options=address)
        self.assertEqual([each[0] for each in findings(ended)], ["deadlock"], ended.stderr)

    def test_dumps_of_pytorch_on_all_hosts(self):
        said = until_named([HOSTS, "2", "--", "sh", "-c", AS_PYTORCH, "sh",
                            *watch("--timeout=10", "--", *FAKE_RANK)])
        [(cause, text)] = judged_by_dumps(said)
        self.assertEqual(cause, "rank_busy", said)
        self.assertIn("rank 1 has not called all_reduce at train.py:31 in step; rank 0 waits", text)

    @unittest.skipUnless(HAS_TORCH, "python3-torch is not installed")
    def test_a_script_of_pytorch(self):

        def train(case):
            return hosts(2, "sh", "-c", AS_PYTORCH, "sh", *watch("--", PYTHON, TRAIN, case))

        ended = train("healthy")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("epoch 1 ranks 2", ended.stdout)
        self.assertRegex(ended.stderr, r"2 ranks, \d+ events, no finding\n")
        ended = train("raises")
        told = findings(ended)
        self.assertEqual([each[0] for each in told], ["lost_rank"], ended.stderr)
        self.assertRegex(told[0][1], r"rank 1 \(host node2\) exited with code 1 after all_reduce")


if __name__ == "__main__":
    unittest.main()
