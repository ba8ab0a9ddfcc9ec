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
import option_words

BENCH = """Latency of a message.
Usage: bench_it [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  -e,--maxbytes TEXT=64M      Largest size: 'all' [of them]
  --no-marks                  No marks
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
  --format {text,json}  Form of what is printed
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
        said = subprocess.run(["cli/fuzz/fuzz", "--help"], capture_output=True, text=True,
                              check=True).stdout
        self.assertIn("--trials", said)
        for option, other in (("--trials", "--no-shrink"), ("--attempts", "--no-shrink")):
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
        self.assertEqual(found["--format"], ("{text,json}", "Form of what is printed"))
        self.assertEqual(len(found), 9, found)

    def test_shapes_and_senses(self):
        for head, shape in (("-T,--timeout TIME:0.1..3600=10", "TIME"),
                            ("--op WORD=sum ...", "WORD"),
                            ("--ras HOST:PORT ...", "HOST:PORT"), ("--wide", ""),
                            ("--format WORD:{text,json}=text", "WORD"),
                            ("--find-unused 0|1", "0|1"),
                            ("--output FILE REQUIRED", "FILE"), ("--format {text,json}", "WORD"),
                            ("--launcher COMMAND=mpirun --bind-to none", "COMMAND"),
                            ("-n COUNT, --iters COUNT", "COUNT")):
            self.assertEqual(documentation.Option(head, "").shape(), shape, head)
        for meaning, sense in (("Root rank", "Root rank"), ("Ranks (of sim; default 2)", "Ranks"),
                               ("Time for all; 0: no limit", "Time for all")):
            self.assertEqual(documentation.Option("--it", meaning).sense(), sense)

    def clashes(self, first, second):
        helps = {name: "It.\nUsage: %s\n\nOptions:\n%s\n" % (name, line)
                 for name, line in (("one", first), ("two", second))}
        self.assertIn("--", option_words.words_page(helps))
        return option_words.clashes(helps)

    def test_one_word_one_meaning(self):
        well = "  -T,--timeout TIME=5         Silence (default 5)"
        self.assertEqual(self.clashes(well, well.replace("(default 5)", "(of dumps)")), [])
        for other, said in (
                ("  -T,--timeout TIME=5         Time of a case",
                 ["-T means: Silence / Time of a case",
                  "--timeout means: Silence / Time of a case"]),
                ("  -T,--timeout COUNT=5        Silence",
                 ["-T takes: COUNT / TIME", "--timeout takes: COUNT / TIME"]),
                ("  -T,--deadline TIME=5        Silence",
                 ["-T is spelled: -T,--deadline / -T,--timeout",
                  "silence is said of: --deadline / --timeout"]),
                ("  --timeout TIME=5            Silence",
                 ["--timeout is spelled: --timeout / -T,--timeout"]),
                ("  --empty", ["two --empty says nothing of itself"]),
                ("  --limit INT=5               Limit",
                 ["two --limit takes INT, which SHAPES does not explain"]),
                ("  --format WORD               Form (text, xml or json)",
                 ["two --format: FORMATS does not explain 'xml'"]),
                ("  --format WORD:{yaml,text}=text  Form",
                 ["two --format: FORMATS does not explain 'yaml'"]),
                ("  --log FILE                  Write the log to this file",
                 ["two --log writes a file: call it --output, or say 'Also write'"]),
                ("  --log FILE                  Also write the log to this file", []),
                ("  --log FILE                  Read this log", []),
                ("  --json FILE                 Also write the verdicts to this file",
                 ["two --json is called as a form: --format=json means another thing"]),
                ("  --csv                       In this form",
                 ["two --csv is called as a form: --format=csv means another thing"])):
            self.assertEqual(self.clashes(well, other), said)

    def test_a_switch_may_be_a_list_of_both(self):
        self.assertEqual(self.clashes("  --drop-last                 drop_last=True",
                                      "  --drop-last 0|1 ...         drop_last=True (0,1)"), [])

    def test_bash(self):
        script = written(HELPS)["bash"]
        self.assertEqual(completed(script, "lockstep", "ni"), ["nightly"])
        self.assertEqual(completed(script, "/usr/bin/bench_it", "--max"), ["--maxbytes"])
        self.assertEqual(completed(script, "bench_it", "a"), [])
        self.assertEqual(completed(script, "lockstep", "nightly", "--format", "="),
                         ["text", "json"])
        self.assertEqual(completed(script, "lockstep", "nightly", "--format", "=", "j"), ["json"])
        self.assertEqual(completed(script, "lockstep", "nightly", "--o"), ["--output"])

    def test_a_subcommand_offers_what_its_program_takes(self):
        helps = {"lockstep": "It.\n", "lockstep stress":
                 "It.\n\nOptions:\n  --ranks COUNT   Number of ranks (of every launch)\n",
                 "lockstep-stress": "It.\n\nOptions:\n  --ranks COUNT   Number of ranks (of sim)\n"
                                    "  --scenario NAME   Scenarios\n"}
        script = documentation.bash_completion(helps)
        self.assertEqual(completed(script, "lockstep", "stress", "--"), ["--ranks", "--scenario"])
        case = documentation.zsh_completion(helps).split("'lockstep stress')")[1].split(";;")[0]
        self.assertEqual(["--ranks", "--scenario"], re.findall(r"--\w+", case))

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
