#!/usr/bin/python3
"""No program takes an option that its --help does not list: a word that only the program's code
knows may mean another thing there than in the program that lists it. Each C++ program gets all
words of the others, and must refuse every one."""
import os
import re
import subprocess
import sys
import unittest

# Tests see what they declare; this one reads docs/options.md, which docs_test.py holds true.
sys.path[:0] = ["scripts/packaging"]
# pylint: disable=wrong-import-position
from documentation import helps_of, options_of, sections_of
from option_words import FORMATS

# What a required option or word may be given.
GIVEN = {"COUNT": "1", "RANK": "0", "TIME": "1"}
REFUSED = re.compile(r"^[\w -]+: (--[a-z][\w-]*): (?!.*\brequired\b)")
UNKNOWN = re.compile(r"arguments? (?:was|were) not expected: ([^;]*);")


def program_of(name):
    """The command line that is typed as `name`."""
    if name.startswith("lockstep "):
        return ["cli/lockstep", name.split()[1]]
    return [{"lockstep": "cli/lockstep", "lockstep-stress": "stress/stress",
             "lockstep-fuzz": "cli/fuzz/fuzz"}.get(name, "bench/" + name)]


def required(said):
    """Options and words without which a command line is refused for that alone."""
    words = []
    for option in options_of(said):
        if option.takes.endswith(" REQUIRED"):
            value = (option.values() or [GIVEN.get(option.shape(), "x")])[0]
            words.append("%s=%s" % (option.names[-1], value))
    for title, lines in sections_of(said)[2]:
        words += ["x" for line in lines if title == "positionals" and " REQUIRED" in line]
    return words


class HiddenWordsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open("docs/options.md", encoding="utf-8") as page:
            cls.helps = helps_of(page.read())
        cls.listed = {program: {name for option in options_of(said) for name in option.names}
                      for program, said in cls.helps.items()}
        cls.listed["lockstep stress"] |= cls.listed["lockstep-stress"]

    def test_every_word_of_others_is_refused(self):
        all_words = set().union(*self.listed.values(), ("--" + form for form in FORMATS))
        tried = 0
        for program, said in self.helps.items():
            # Those in Python print "usage:"; launches.parser knows nothing beyond their --help.
            if "Usage: " not in said or program == "lockstep":
                continue
            foreign = {word for word in all_words - self.listed[program] if word[1] == "-"}
            with self.subTest(program):
                self.assertEqual(foreign - self.refused(program, foreign), set())
                tried += 1
        self.assertGreater(tried, 25)

    def refused(self, program, words):
        """Which of `words` the program does not take."""
        refused = set()
        while refused < words:
            command = [*program_of(program), *required(self.helps[program]),
                       *sorted(words - refused)]
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=dict(os.environ, COLUMNS="100"))
            one, all_others = REFUSED.match(done.stderr), UNKNOWN.search(done.stderr)
            if done.returncode != 2 or not (one or all_others):
                break  # it took the rest
            if all_others:
                return refused | set(all_others[1].split())
            if one[1] in refused:
                break
            refused.add(one[1])
        return refused


if __name__ == "__main__":
    unittest.main()
