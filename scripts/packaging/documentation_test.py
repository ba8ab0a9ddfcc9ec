#!/usr/bin/python3
"""An option has one source: a name that changes in a program's --help changes in docs/options.md,
in the man page, and in the completion of bash and zsh, whose scripts are run here."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("scripts/packaging"))
# pylint: disable=wrong-import-position
import documentation

BENCH = """Latency of a message.
Usage: bench_it [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  -e,--maxbytes TEXT=64M      Largest size: 'all' [of them]
  --no-marks{false}           No marks
  --launcher TEXT=mpirun --oversubscribe
                              What starts the ranks

Exit codes: 0 pass.
"""
NIGHTLY = """usage: lockstep nightly [-h] [-o OUTPUT] [--format {text,json}]
                        [plan]

Is this machine fit? Runs a plan.

  lockstep nightly PLAN.toml

positional arguments:
  plan                  PLAN.toml

options:
  -h, --help            show this help message and exit
  -o OUTPUT, --output OUTPUT
                        folder of the state
  --format {text,json}
"""
LOCKSTEP = """Lockstep: what communication does
Usage: lockstep [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit

Subcommands:
  nightly                     Is this machine fit?
"""
HELPS = {"bench_it": BENCH, "lockstep": LOCKSTEP, "lockstep nightly": NIGHTLY}


def written(helps):
    """{what: text}: the page, and what is made of the page."""
    page = documentation.options_page(helps)
    files = documentation.files_of(documentation.helps_of(page), "1.2.3")
    return {"page": page, "man": files["man/man1/bench_it.1"].replace("\\-", "-"),
            "bash": files["bash-completion/completions/lockstep"],
            "zsh": files["zsh/site-functions/_lockstep"]}


def completed(script, *words):
    """What bash offers for the last word."""
    program = script + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lockstep; echo "${COMPREPLY[*]}"
"""
    done = subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()


class DocumentationTest(unittest.TestCase):

    def test_a_renamed_option_changes_all_four(self):
        before = written(HELPS)
        after = written(dict(HELPS, bench_it=BENCH.replace("--maxbytes TEXT", "--largest TEXT")))
        for what, text in before.items():
            self.assertIn("--maxbytes", text, what)
            self.assertNotIn("--largest", text, what)
            self.assertIn("--largest", after[what], what)
            self.assertNotIn("--maxbytes", after[what], what)

    def test_a_renamed_option_of_a_real_program(self):
        said = subprocess.run(["stress/fuzz/fuzz", "--help"], capture_output=True, text=True,
                              check=True).stdout
        self.assertIn("--trials", said)
        for option, other in (("--trials", "--shrink"), ("--attempts", "--shrink")):
            helps = {"bench_it": said.replace("--trials", option), "lockstep": LOCKSTEP,
                     "lockstep nightly": NIGHTLY}
            for what, text in written(helps).items():
                self.assertIn(option, text, what)
                self.assertIn(other, text, what)

    def test_options_of_both_parsers(self):
        found = {name: (option.takes, option.meaning) for said in (BENCH, NIGHTLY)
                 for option in documentation.options_of(said) for name in option.names}
        self.assertEqual(found["-e"], ("TEXT=64M", "Largest size: 'all' [of them]"))
        self.assertEqual(found["--no-marks"], ("", "No marks"))
        self.assertEqual(found["--launcher"],
                         ("TEXT=mpirun --oversubscribe", "What starts the ranks"))
        self.assertEqual(found["-o"], ("OUTPUT", "folder of the state"))
        self.assertEqual(found["--output"], found["-o"])
        self.assertEqual(found["--format"], ("{text,json}", ""))
        self.assertEqual(len(found), 9, found)

    def test_bash(self):
        script = written(HELPS)["bash"]
        self.assertEqual(completed(script, "lockstep", "ni"), ["nightly"])
        self.assertEqual(completed(script, "/usr/bin/bench_it", "--max"), ["--maxbytes"])
        self.assertEqual(completed(script, "bench_it", "a"), [])
        self.assertEqual(completed(script, "lockstep", "nightly", "--format", "="),
                         ["text", "json"])
        self.assertEqual(completed(script, "lockstep", "nightly", "--format", "=", "j"), ["json"])
        self.assertEqual(completed(script, "lockstep", "nightly", "--o"), ["--output"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_reads_it(self):
        with tempfile.NamedTemporaryFile("w", dir=os.environ.get("TEST_TMPDIR")) as file:
            file.write(written(HELPS)["zsh"])
            file.flush()
            subprocess.run(["zsh", "--no-exec", file.name], check=True)

    def test_man_pages(self):
        pages = documentation.man_pages(HELPS, "1.2.3")
        self.assertEqual(sorted(pages), ["bench_it.1", "lockstep-nightly.1", "lockstep.1"])
        page = pages["lockstep-nightly.1"]
        heads = re.findall(r"^\.SH (.*)", page, re.MULTILINE)
        self.assertEqual(heads, ["NAME", "SYNOPSIS", "DESCRIPTION", "POSITIONAL ARGUMENTS",
                                 "OPTIONS", "SEE ALSO"])
        self.assertIn("Lockstep 1.2.3", page)
        self.assertIn(".SH NOTES\n.nf\nExit codes", pages["bench_it.1"])

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_has_nothing_to_say(self):
        with open("docs/options.md", encoding="utf-8") as page:
            pages = documentation.man_pages(documentation.helps_of(page.read()), "1.2.3")
        self.assertGreater(len(pages), 20)
        for name, text in pages.items():
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8"], input=text, text=True,
                                  capture_output=True, check=True)
            self.assertEqual(done.stderr, "", name)


if __name__ == "__main__":
    unittest.main()
