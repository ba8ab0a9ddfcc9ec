#!/usr/bin/env python3
"""What the programs of scripts/ share: files that a crash leaves whole, and where binaries are."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import launches


class LaunchesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "lines.jsonl")

    def lines(self):
        return [json.loads(line) for line in launches.JsonLines(self.path).lines]

    def test_lines_are_kept(self):
        self.assertEqual(self.lines(), [])
        file = launches.JsonLines(self.path)
        file.append({"pass": 1})
        file.append({"pass": 2})
        self.assertEqual(self.lines(), [{"pass": 1}, {"pass": 2}])

    def test_half_a_line_is_cut_off_when_the_next_one_is_written(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('{"pass": 1}\n{"pa')
        file = launches.JsonLines(self.path)
        self.assertEqual(os.path.getsize(self.path), 16, "a file of somebody else stays as it is")
        file.append({"pass": 2})
        file.append({"pass": 3})
        self.assertEqual(self.lines(), [{"pass": 1}, {"pass": 2}, {"pass": 3}])

    def test_an_output_that_is_full_is_one_line_and_exit_code_4(self):
        for arguments, words in ((["-u"], 1), ([], 1), ([], 100000), (["-u"], 100000)):
            program = ("import launches\n"
                       f"launches.run(lambda _: print('QUALIFIED ' * {words}) or 0)")
            with open("/dev/full", "wb") as full:
                done = subprocess.run([sys.executable, *arguments, "-c", program], stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False,
                                      cwd=launches.SCRIPTS,
                                      env={**os.environ, "PYTHONUNBUFFERED": ""})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)
            self.assertIn("put: No space left on device; free space there", done.stderr)

    def test_what_no_line_is_for_is_a_defect_and_no_verdict(self):
        done = subprocess.run([sys.executable, "-c", "import launches\n"
                               "launches.run(lambda _: {}['none'])"], stderr=subprocess.PIPE,
                              text=True, check=False, cwd=launches.SCRIPTS)
        self.assertEqual(done.returncode, 10)
        self.assertIn("KeyError: 'none'", done.stderr)

    def test_an_output_that_nobody_reads_is_exit_code_4(self):
        told = r"-c: .*put: Broken pipe; let somebody read it, or choose another place\n"
        for words, closed, said in ((1, {1}, told), (100000, {1}, told), (1, {1, 2}, "")):
            program = ("import launches\n"
                       f"launches.run(lambda _: print('QUALIFIED ' * {words}) or 0)")
            reads, writes = os.pipe()
            os.close(reads)
            done = subprocess.run([sys.executable, "-c", program], stdout=writes, text=True,
                                  stderr=writes if 2 in closed else subprocess.PIPE, check=False,
                                  cwd=launches.SCRIPTS)
            os.close(writes)
            self.assertEqual(4, done.returncode, done.stderr)
            self.assertRegex(done.stderr or "", rf"\A{said}\Z")

    def test_without_an_output_nothing_begins(self):
        program = "import launches; launches.run(lambda _: open('begun', 'w') and 0)"
        for without, said in ((">&-", "-c: standard output is closed; redirect it"),
                              (">&- 2>&-", "")):
            script = f'"$0" -c "$1" {without}'
            done = subprocess.run(["bash", "-c", script, sys.executable, program],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False, cwd=self.folder,
                                  env={**os.environ, "PYTHONPATH": launches.SCRIPTS})
            self.assertEqual(4, done.returncode, done.stderr)
            self.assertTrue(done.stderr.startswith(said), done.stderr)
            self.assertEqual([], os.listdir(self.folder))

    def test_an_error_is_one_line_without_control_characters(self):
        self.assertEqual("a\\nb\\x1b[31m\\t…: no plan",
                         launches.one_line("a\nb\x1b[31m\t…: no plan\n"))
        for ends in ("fail('it', 2, ValueError(text))", "parser('').error(text)"):
            program = f"import launches; text = 'a\\nb\\x1b'; launches.{ends}"
            done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE,
                                  text=True, check=False, cwd=launches.SCRIPTS)
            self.assertEqual(2, done.returncode)
            self.assertRegex(done.stderr, r"^(it|-c): a\\nb\\x1b.*\n$")

    def test_ctrl_c_is_one_line_and_exit_code_3(self):
        program = ("import launches\n"
                   "def main(_):\n"
                   "    print('begun', flush=True)\n"
                   "    while True: pass\n"
                   "launches.run(main)")
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=launches.SCRIPTS) as running:
            running.stdout.readline()
            running.send_signal(signal.SIGINT)
            _, said = running.communicate()
        self.assertEqual((running.returncode, said), (3, "-c: interrupted\n"))

    def test_a_second_ctrl_c_does_not_keep_it_from_ending_what_it_started(self):
        program = ("import sys, launches\n"
                   "def main(_):\n"
                   "    try:\n"
                   "        print('begun', flush=True)\n"
                   "        while True: pass\n"
                   "    finally:\n"
                   "        print('ending', flush=True)\n"
                   "        sys.stdin.readline()\n"
                   "        print('ended', flush=True)\n"
                   "launches.run(main)")
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=launches.SCRIPTS) as running:
            for line in ("begun", "ending"):
                self.assertEqual(running.stdout.readline(), line + "\n")
                running.send_signal(signal.SIGINT)
            out, said = running.communicate("\n")
        self.assertEqual((running.returncode, out, said), (3, "ended\n", "-c: interrupted\n"))

    def test_signals_go_to_a_command_only_while_it_runs(self):
        signals = (signal.SIGTERM, signal.SIGINT)
        before = [signal.getsignal(number) for number in signals]
        self.assertEqual(launches.run_as(["sh", "-c", "kill $PPID; sleep 600"]), -signal.SIGTERM)
        self.assertEqual([signal.getsignal(number) for number in signals], before)

    def test_when_one_of_threads_ends_the_program_no_other_item_begins(self):
        begun = []

        def work(item):
            begun.append(item)
            if item == 1:
                raise KeyboardInterrupt
            return item

        done = launches.in_threads(1, work, [(item,) for item in range(10)])
        with self.assertRaises(KeyboardInterrupt):
            for item in done:
                self.assertEqual(item, 0)
        self.assertTrue(launches.leaving.is_set())
        launches.leaving.clear()

    def test_a_command_keeps_a_second_pair_of_dashes(self):
        parser = launches.parser("")
        parser.add_argument("hosts", type=int)
        parser.add_argument("command", nargs="+")
        command = ["lockstep", "watch", "--", "program", "-x"]
        options = launches.parse_with_command(parser, ["2", "--", *command])
        self.assertEqual((options.hosts, options.command), (2, command))
        options = launches.parse_with_command(parser, ["2", "program"])
        self.assertEqual(options.command, ["program"])

    def test_a_program_is_started_by_the_launcher_of_its_mpi(self):
        launchers = {}
        for library in ("libmpi.so.40", "libmpich.so.12"):
            path = os.path.join(self.folder, library)
            with open(path, "wb") as file:
                file.write(b"\x7fELF\0libc.so.6\0" + library.encode() + b"\0")
            launchers[library] = launches.launcher_of(path)
            self.assertEqual(launches.ranks_of(path, 3)[-2:], ["-n", "3"])
        self.assertEqual(launchers["libmpi.so.40"], launches.OPEN_MPI)
        self.assertIn(launchers["libmpich.so.12"], (["mpiexec.mpich"], ["mpiexec"]))
        self.assertEqual(launches.launcher_of(None), launches.OPEN_MPI)

    def test_programs_are_found_in_rooms_and_must_be_executable(self):
        for room in ("bench", "stress"):
            os.mkdir(os.path.join(self.folder, room))
        path = os.path.join(self.folder, "stress", "stress")
        with open(path, "w", encoding="utf-8"):
            pass
        self.assertIsNone(launches.program_in([self.folder], "stress"))
        os.chmod(path, 0o755)
        self.assertEqual(launches.program_in(["/nowhere", self.folder], "stress"), path)

    def test_installed_programs_have_names_of_their_own(self):
        path = os.path.join(self.folder, "lockstep-fuzz")
        with open(path, "w", encoding="utf-8"):
            pass
        os.chmod(path, 0o755)
        self.assertEqual(launches.program_in([self.folder], "fuzz"), path)
        self.assertIsNone(launches.program_in([self.folder], "stress"))
        self.assertEqual(launches.installed_name("bench_links"), "bench_links")


if __name__ == "__main__":
    unittest.main()
