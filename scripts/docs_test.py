#!/usr/bin/python3
"""What the documentation names is there: every flag in some program's --help, every path, every
link, every variable; no sentence is too long; docs/options.md and docs/faults.md are what the
programs say. With --write those pages and all figures (docs_figures.py) are written anew."""
import glob
import os
import re
import statistics
import subprocess
import sys
import unittest

# Tests see what they declare; this one reads the whole tree.
TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path[:0] = [os.path.join(TREE, "scripts"), os.path.join(TREE, "scripts/packaging")]
# pylint: disable=wrong-import-position
from docs_figures import OPTIONS, PAGES, WORDS, filled, read
from launches import installed_name
from documentation import options_of, options_page
from option_words import clashes, words_page
from qualification import plan_values

FAULTS = "docs/faults.md"
# Letters of nccl-tests, and -h. No other program gives them another meaning.
LETTERS = {"-h": "--help", "-b": "--minbytes", "-e": "--maxbytes", "-i": "--stepbytes",
           "-f": "--stepfactor", "-n": "--iters", "-w": "--warmup_iters", "-c": "--check",
           "-o": "--op", "-d": "--datatype", "-r": "--root", "-z": "--blocking",
           "-T": "--timeout"}
# Keys of nightly's plans that mean what an option of that name means, and those of plans alone.
OPTION_KEYS = {"backend", "backends", "baseline", "launcher", "launches", "min_effect",
               "nccl_library", "profile", "ranks", "repeat", "time_budget", "timeout"}
PLAN_KEYS = {"arguments", "configuration", "environment", "kind", "launch_seconds", "name", "part",
             "program", "required", "scenarios", "seconds", "skip", "step"}
MOST_WORDS = 25          # of a sentence
MOST_MEDIAN_WORDS = 16   # of the README's sentences
MOST_README_LINES = 150
PROGRAMS = [[path] for path in sorted(glob.glob("bench/bench_*"))] + [["stress/stress"],
                                                                      ["cli/fuzz/fuzz"]]
SCRIPTS = ["test_slurm", "test_mpich", "node_deaths", "random_kills", "watched_kills",
           "soak", "sanitize",
           "package", "compare_with_osu", "check_coverage", "compare_sampler", "benchmarks",
           "mbi_score", "watch_healthy", "watch_overhead"]
# Of mpirun, torchrun, bazel, docker, pip, git and of test programs.
FOREIGN = {"--allow-run-as-root", "--bind-to", "--oversubscribe", "--mca", "--hostfile", "--host",
           "--config", "--repo_env", "--gpus", "--with-ft", "--enable-recovery", "--mpi",
           "--test_env", "--prefix", "--write", "--ntasks-per-node", "--gpus-per-task",
           "--signal", "--export", "--shm-size", "--nproc-per-node", "--nnodes", "--no-python",
           "--rdzv-backend", "--rdzv-endpoint"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")


def said(words):
    done = subprocess.run([os.path.abspath(words[0]), *words[1:], "--help"], capture_output=True,
                          text=True, env=dict(os.environ, COLUMNS="100"))
    # The default launcher of root has a word more.
    return (done.stdout + done.stderr).replace(" --allow-run-as-root", "")


def help_of_programs():
    """{program as it is typed: its --help}."""
    found = {installed_name(os.path.basename(words[0])): said(words) for words in PROGRAMS}
    lockstep = "cli/lockstep"
    found["lockstep"] = said([lockstep])
    commands = re.findall(r"^  ([a-z][a-z-]+) ", found["lockstep"], re.MULTILINE)
    assert len(commands) > 8, commands
    for command in commands:
        found[f"lockstep {command}"] = said([lockstep, command])
    for script in SCRIPTS:
        found[f"scripts/{script}"] = said([os.path.join(TREE, "scripts", script)])
    return found


def faults_page():
    """What `stress --list-faults` says, as a table."""
    done = subprocess.run([os.path.abspath("stress/stress"), "--list-faults"],
                          capture_output=True, text=True, check=True)
    head, *rows = (re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines())
    rows = [[f"`{name}`", *rest] for name, *rest in rows]
    table = [head, ["---"] * len(head), *rows]
    return ("# Faults\n\nWhat a `[[fault]]` of a scenario may inject; written by "
            "`bazel run //scripts:docs_test -- --write`.\n\n" +
            "".join("| %s |\n" % " | ".join(row) for row in table))


def sentences(page):
    """Of the prose: no code block, table, heading or picture; code in a line is one word."""
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|^\s*\|.*$|^#.*$|!\[[^]]*\]\([^)]*\)", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "`code`", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        block = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", block)
        yield from re.split(r"(?<=[.?!])[*)\"”]*\s+(?=[\W_]*[A-Z`])", " ".join(block.split()))


def length(sentence):
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def anchors(page):
    """What a heading is called in a link, as GitHub does."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)", read(page), re.MULTILINE)}


def variables_of_sources():
    """Every LOCKSTEP_* that a program or a script asks the environment for, tests aside."""
    found = set()
    for path in glob.glob("*/**/*", root_dir=TREE, recursive=True):
        if (re.search(r"\.(cc|h|py|bzl|sbatch)$|^scripts/[^.]+$", path)
                and not re.search(r"_test\.|testing|docs_|^bazel-", path)
                and os.path.isfile(os.path.join(TREE, path))):
            found |= set(re.findall(r"[\"{ (](LOCKSTEP_(?!HAS_)[A-Z_]+)(?:[\"=]|:-)", read(path)))
    return found


class DocsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = {page: read(page) for page in PAGES}
        cls.help = help_of_programs()

    def test_every_flag_in_the_documentation_exists(self):
        known = FOREIGN.union(*(FLAG.findall(text) for text in self.help.values()))
        # What it tables first are spellings of earlier versions.
        pages = dict(self.pages, **{"CHANGELOG.md": re.sub(r"^\|[^|]*", "",
                                                           self.pages["CHANGELOG.md"],
                                                           flags=re.MULTILINE)})
        unknown = {f"{page}: {flag}" for page, text in pages.items()
                   for flag in FLAG.findall(text)
                   if flag not in known and not flag.startswith("--benchmark_")}
        self.assertEqual(sorted(unknown), [])

    def test_a_flag_behind_a_program_is_its_own(self):
        known = {program: set(FLAG.findall(text)) for program, text in self.help.items()}
        known["lockstep stress"] |= known["lockstep-stress"]
        names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
        # Up to the launcher behind `--`, the next command, a comment or the end of the code.
        command = re.compile(rf"(?<![\w/.-])({names})(?![\w-]|\.\w)((?:(?! -- )[^\n`|#&;])*)")
        # CHANGELOG.md tables spellings of earlier versions.
        texts = {page: re.sub(r"^\|.*$", "", text, flags=re.MULTILINE) if page == "CHANGELOG.md"
                 else text for page, text in self.pages.items() if page not in (OPTIONS, WORDS)}
        others = {f"{page}: {found[1]} has no {flag}" for page, text in texts.items()
                  for found in command.finditer(text) for flag in FLAG.findall(found[2])
                  if flag not in known[found[1]] and not flag.startswith("--benchmark_")}
        self.assertEqual(sorted(others), [])

    def test_the_page_of_options_is_what_the_programs_say(self):
        self.assertEqual(self.pages[OPTIONS], options_page(self.help),
                         "write it anew: bazel run //scripts:docs_test -- --write")

    def test_the_page_of_words_is_what_the_programs_say(self):
        self.assertEqual(self.pages[WORDS], words_page(self.help),
                         "write it anew: bazel run //scripts:docs_test -- --write")

    def test_a_word_means_one_thing_in_all_programs(self):
        self.assertEqual(clashes(self.help), [])

    def test_keys_of_plans_are_words_of_options(self):
        words = {name.removeprefix("--").replace("-", "_") for said in self.help.values()
                 for option in options_of(said) for name in option.names}
        self.assertEqual(set(), OPTION_KEYS - words)
        self.assertEqual(OPTION_KEYS | PLAN_KEYS, plan_values.KEYS)

    def test_letters_are_those_of_nccl_tests(self):
        found = {letter: word for said in self.help.values() for option in options_of(said)
                 for letter, word in [(option.names[0], option.names[-1])] if len(letter) == 2}
        self.assertEqual(found, LETTERS)

    def test_help_prints_no_raw_default(self):
        raw = re.compile(r"\{false\}|=\[|\bINT\b|\bFLOAT\b|\bUINT\b")
        self.assertEqual([program for program, said in self.help.items() if raw.search(said)], [])

    def test_the_page_of_faults_is_what_stress_lists(self):
        self.assertEqual(self.pages[FAULTS], faults_page(),
                         "write it anew: bazel run //scripts:docs_test -- --write")

    def test_every_path_is_there(self):
        rooms = r"(?:bench|cli|core|datasets|docs|results|scripts|stress|third_party|watch)"
        path = re.compile(rf"`({rooms}/[\w./-]+)`")
        gone = {f"{page}: {name}" for page, text in self.pages.items()
                for name in path.findall(text)
                if not os.path.exists(os.path.join(TREE, name))
                and not name.startswith("results/runs")}
        self.assertEqual(sorted(gone), [])

    def test_what_is_to_be_changed_stands_there(self):
        """A name in a row of "Where to change" is in one of the row's files."""
        table = self.pages["docs/contributing.md"].split("## Where to change")[1].split("\n## ")[0]
        gone = []
        for row in re.findall(r"^\| .*$", table, re.MULTILINE)[1:]:
            words = re.findall(r"`([\w./-]+)`", row)
            told = "".join(read(word) for word in words
                           if os.path.isfile(os.path.join(TREE, word)))
            gone += [word for word in words if told and word.isidentifier() and word not in told]
        self.assertEqual(gone, [])

    def test_every_link_leads_somewhere(self):
        broken = []
        for page, text in self.pages.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
                path, _, anchor = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(page), path or
                                                      os.path.basename(page)))
                if "://" not in target and (not os.path.exists(os.path.join(TREE, there)) or
                                            anchor and anchor not in anchors(there)):
                    broken.append("%s: %s" % (page, target))
        self.assertEqual(broken, [])

    def test_every_page_is_in_the_index(self):
        index = self.pages["docs/README.md"]
        missing = [page for page in PAGES if page not in ("README.md", "docs/README.md")
                   and "](%s)" % os.path.relpath(page, "docs") not in index]
        self.assertEqual(missing, [])

    def test_python_that_opens_a_file_is_run(self):
        """results/python/reader_test.py runs the lines of these two pages."""
        opening = {page for page, text in self.pages.items()
                   for lines in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
                   if ".h5" in lines}
        self.assertEqual(opening, {"docs/results.md", "results/schema.md"})

    def test_every_variable_is_documented(self):
        rows = re.findall(r"^\| (`LOCKSTEP_[^|]*)", self.pages["docs/environment.md"], re.MULTILINE)
        told = set(re.findall(r"LOCKSTEP_[A-Z_]+", " ".join(rows)))
        self.assertEqual(variables_of_sources(), told)

    def test_no_sentence_is_too_long(self):
        long = ["%s: %d words: %s" % (page, length(one), one) for page in PAGES if page != OPTIONS
                for one in sentences(page) if length(one) > MOST_WORDS]
        self.assertEqual(long, [], "\n" + "\n".join(long))

    def test_the_readme_is_short(self):
        lengths = [length(one) for one in sentences("README.md") if length(one)]
        self.assertLessEqual(statistics.median(lengths), MOST_MEDIAN_WORDS)
        self.assertLessEqual(self.pages["README.md"].count("\n"), MOST_README_LINES)


def write(path, text):
    with open(os.path.join(TREE, path), "w", encoding="utf-8") as page:
        page.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write(OPTIONS, options_page(help_of_programs()))
        write(WORDS, words_page(help_of_programs()))
        write(FAULTS, faults_page())
        for name in PAGES:
            write(name, filled(read(name)))
    else:
        unittest.main()
