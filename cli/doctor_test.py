#!/usr/bin/python3
"""`lockstep doctor`: what it finds out here, a planted illness, the file, and what it refuses."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import h5py

LOCKSTEP = "cli/lockstep"
NCCL = os.path.abspath("core/comm/nccl/testing/libfake_nccl_22809.so")
NVML = os.path.abspath("core/environment/libfake_nvml.so")
FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def doctor(*arguments, **variables):
    return subprocess.run([LOCKSTEP, "doctor", *arguments], capture_output=True, text=True,
                          env=dict(os.environ, **variables))


def examined(*arguments, **variables):
    done = doctor("--format=json", *arguments, **variables)
    return done.returncode, json.loads(done.stdout)


class DoctorTest(unittest.TestCase):
    def test_the_facts_are_those_of_this_machine(self):
        _, found = examined()
        facts = found["facts"]
        self.assertEqual(facts["network/host_name"], os.uname().nodename)
        self.assertEqual(facts["host/kernel"], f"Linux {os.uname().release}")
        self.assertEqual(facts["host/cpus_usable"], str(len(os.sched_getaffinity(0))))
        status = os.statvfs("/dev/shm")
        self.assertEqual(int(facts["limits/shm_bytes"]), status.f_blocks * status.f_frsize)
        self.assertIn("Open MPI", facts["software/mpirun"])
        self.assertRegex(facts["software/gloo"], r"^\d|^unknown: ")

    def test_a_monitoring_plugin_says_one_line(self):
        rules = os.path.join(FOLDER, "plugin.toml")
        for level, code, word, said in (
                ("problem", 2, "CRITICAL", "1 problem, 0 warnings"),
                ("warning", 1, "WARNING", "0 problems, 1 warning"),
                (None, 0, "OK", "no known cause of hangs is here")):
            with open(rules, "w", encoding="utf-8") as file:
                file.write('[[rule]]\nid = "a"\nwhen = ["limits/open_files < %s"]\nlevel = "%s"\n'
                           'message = "m | n"\nremedy = "r"\n'
                           % ("1000000000" if level else "1", level or "problem"))
            done = doctor("--nagios", f"--rules-file={rules}")
            self.assertEqual((done.returncode, done.stderr), (code, ""))
            self.assertRegex(done.stdout, r"\ALOCKSTEP DOCTOR %s - %s[^|\n]* \| problems=%d "
                             r"warnings=%d\n\Z" % (word, said, code == 2, code == 1))
        done = doctor("--nagios", "--rules-file=/nowhere.toml")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertRegex(done.stdout,
                         r"\ALOCKSTEP DOCTOR UNKNOWN - --rules-file: '/nowhere.toml'.*\n\Z")

    def test_a_planted_limit_is_found_and_without_it_is_not(self):
        script = f"ulimit -n 256; exec {LOCKSTEP} doctor --format=json"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
        ids = [ailment["rule"] for ailment in json.loads(done.stdout)["ailments"]]
        self.assertIn("few_open_files", ids)
        rules = os.path.join(FOLDER, "none.toml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write('[[rule]]\nid = "a"\nwhen = ["limits/open_files < 1"]\nlevel = "problem"\n'
                       'message = "m"\nremedy = "r"\n')
        code, found = examined(f"--rules-file={rules}")
        self.assertEqual((code, found["ailments"]), (0, []))

    def test_sick_gpus_are_problems_and_an_exit_code(self):
        code, found = examined(f"--nvml-library={NVML}", CUDA_PATH="/nonexistent")
        ids = [ailment["rule"] for ailment in found["ailments"]]
        self.assertEqual(code, 1)
        self.assertTrue({"uncorrected_ecc", "throttling", "missing_lanes"} <= set(ids), ids)
        self.assertEqual(found["facts"]["gpu/driver"], "535.104.05")
        self.assertEqual(found["facts"]["gpu/1/sm_clock_mhz"], "1410")
        first = doctor(f"--nvml-library={NVML}").stdout.splitlines()[0]
        self.assertTrue(first.startswith("PROBLEM: "), first)

    def test_a_gpu_that_fell_off_the_bus_is_the_first_line(self):
        done = doctor(f"--nvml-library={NVML}", FAKE_NVML="lost")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\APROBLEM: .*; first: gpu/lost/1: .* 'GPU is lost' \(15\)")

    def test_an_nccl_library_is_recognized_without_loading_it(self):
        folder = os.path.join(FOLDER, "lib")
        os.makedirs(folder)
        with open(os.path.join(folder, "libnccl.so.2"), "wb") as file:
            file.write(b"\0" * 3_000_000 + b"NCCL version 2.18.5+cuda12.2\0" + b"\0" * 5000)
        _, found = examined(LD_LIBRARY_PATH=folder)
        mine = [path.rsplit("/", 1)[0] for path, value in found["facts"].items()
                if value.startswith(os.path.realpath(folder)) and path.startswith("nccl/")]
        self.assertEqual(len(mine), 1, found["facts"])
        self.assertEqual(found["facts"][mine[0] + "/version"], "2.18.5")
        self.assertEqual(found["facts"][mine[0] + "/built_with_cuda"], "12.2")
        self.assertIn("nccl_abort_hangs", [ailment["rule"] for ailment in found["ailments"]])

    def library(self, name, text):
        path = os.path.join(FOLDER, name)
        shutil.copyfile(NCCL, path)
        with open(path, "ab") as file:
            file.write(text)
        return path

    def test_one_nccl_library_alone_whatever_else_can_be_found(self):
        path = self.library("old.so", b"NCCL version 2.18.5+cuda12.2\0")
        _, found = examined("--nccl-library=" + path)
        self.assertEqual((found["facts"]["nccl/libraries"], found["facts"]["nccl/0/version"]),
                         ("1", "2.18.5"))
        said = doctor("--nccl-library=" + path).stdout
        self.assertIn(f"NCCL 2.18.5, built with CUDA 12.2: {os.path.realpath(path)}\n", said)
        self.assertRegex(said, r"  of \d+ rules about NCCL \d apply: .*nccl_abort_hangs")
        path = self.library("new.so", b"NCCL version 2.28.9+cuda13.0\0")
        said = doctor("--nccl-library=" + path).stdout
        self.assertRegex(said, r"NCCL 2.28.9, .*\n"
                               r"  of \d+ rules about NCCL 0 apply: nothing known speaks against")

    def test_what_is_no_nccl_library_is_refused(self):
        cut = os.path.join(FOLDER, "cut.so")
        with open(NCCL, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:5000])
        for path, words in (("/etc/passwd", "is no ELF shared library"),
                            (FOLDER, "is no ELF shared library"),
                            (NVML, "is a shared library without ncclGetVersion"),
                            (cut, "is a shared library without ncclGetVersion"),
                            ("/no/such", "can't be read (No such file or directory)")):
            done = doctor("--nccl-library=" + path)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"lockstep: --nccl-library: '{path}' {words}; "
                                     "name a libnccl.so.2\n"))

    def test_the_file_holds_facts_and_findings(self):
        path = os.path.join(FOLDER, "doctor.h5")
        done = doctor(f"--output={path}", f"--nvml-library={NVML}")
        self.assertEqual(done.returncode, 1, done.stderr)
        with h5py.File(path) as run:
            self.assertEqual(run.attrs["name"], "doctor")
            self.assertIn("limits", run["environment"])
        shown = subprocess.run([LOCKSTEP, "show", path], capture_output=True, text=True)
        self.assertTrue(shown.stdout.startswith("FAIL: "), shown.stdout + shown.stderr)

    def test_without_a_driver_it_says_so(self):
        done = doctor("--nvml-library=/no/such/library")
        self.assertIn("no GPU driver: /no/such/library can't be opened", done.stdout)

    def test_an_interface_that_is_not_there_is_a_problem(self):
        for name in ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include",
                     "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
            done = doctor(**{name: "absent0"})
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertTrue(done.stdout.startswith("PROBLEM: "), done.stdout)
            self.assertIn("no_interface", done.stdout)
            self.assertIn(name + "=absent0", " ".join(done.stdout.split()))
            # The loopback is there, on every host.
            _, found = examined(**{name: "lo"})
            self.assertNotIn("no_interface", [one["rule"] for one in found["ailments"]], name)

    def test_bad_input_is_one_line(self):
        wrong = os.path.join(FOLDER, "wrong.toml")
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("[[rule]]\nid = 1\n")
        for arguments in (["--rules-file=/no/such"], ["--nccl-library=/no/such"],
                          [f"--rules-file={wrong}"], ["--format=xml"]):
            done = doctor(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
