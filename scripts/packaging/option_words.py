"""One meaning a word: what options of all programs may be called, take and print. docs_test.py
holds every --help against it, and docs/option_words.md is made of it."""
import re

from documentation import options_of

# What a value may be, in --help and in docs/option_words.md.
SHAPES = {
    "0\\|1": "a switch; `0,1` compares both; the option alone is 1",
    "BYTES": "a size: 8, 64K, 128M, 1G, in powers of 1024",
    "COMMAND": "words of a command, as in a shell",
    "COUNT": "a whole number; scripts take several: 2,4",
    "FACTOR": "how many times more",
    "FILE": "a path; where runs are read also a folder or a glob",
    "FOLDER": "a path",
    "GLOB": "a pattern: `all_reduce/*`",
    "HOST:PORT": "an address; or a file that holds an answer",
    "HOST:NAME": "`=` and a value: a variable of one host",
    "MIB": "a number of MiB, as PyTorch takes it",
    "MS": "a number of milliseconds",
    "NAME": "of the catalogue, or a file; wildcards where the help says so",
    "OLD NEW": "two files",
    "PERCENT": "a change: 5%",
    "RANK": "a number from 0 on",
    "SEED": "a whole number",
    "SHARE": "a fraction: 0.05",
    "TEXT": "any text",
    "TIME": "seconds, or with a unit: 20, 1.5s, 250ms, 2m, 1h",
    "VERSION": "a version: 2.6; several with commas",
    "WORD": "one of the words that --help lists, or several where it says so",
}


# Words of --format, in every program the same.
FORMATS = {
    "text": "for people",
    "json": "one document",
    "jsonl": "one document per line",
    "csv": "a table with a row of names",
    "markdown": "a table for a page",
    "junit": "XML for a build server",
    "nccl-tests": "the columns of nccl-tests",
    "gbench": "as Google Benchmark",
    "prometheus": "the text that a collector of Prometheus reads",
    "openmetrics": "the same as OpenMetrics",
    "chrome-trace": "a trace for Perfetto",
    "flight-recorder": "dumps as PyTorch writes them",
    "golden": "lines of recorded collectives of PyTorch",
    "fnv": "a count and a checksum",
}
# What a program writes is --output or --output-folder; beside that, its help begins "Also write".
_WRITES = {"--output", "--output-folder"}
_READS = {"--flight-recorder"}  # names what is read, and so does the form


def _uses(helps):
    """[(program, option)] of all programs."""
    return [(program, option) for program, said in helps.items() for option in options_of(said)]


def _kinds(found):
    return {key: sorted(values) for key, values in found.items() if len(values) > 1}


def _strange(program, option):
    """Sentences on one option: a form without a name of ours, an option that is called as a form,
    a file that is written."""
    name = option.names[-1]
    lines = []
    if name.removeprefix("--") in FORMATS and name not in _READS:
        lines.append("%s %s is called as a form: --format=%s means another thing" %
                     (program, name, name.removeprefix("--")))
    if name == "--format":
        told = re.search(r"\((.*)\)", option.meaning)
        offered = option.values() or re.split(r", | or ", told.group(1) if told else "")
        lines += ["%s --format: FORMATS does not explain '%s'" % (program, word)
                  for word in offered if word not in FORMATS]
    writes = re.search(r"\bwrite\b", option.meaning, re.IGNORECASE)
    if writes and option.shape() in ("FILE", "FOLDER") and name not in _WRITES \
            and not option.meaning.startswith("Also write "):
        lines.append("%s %s writes a file: call it --output, or say 'Also write'" % (program, name))
    return lines


def clashes(helps):
    """Sentences: words and letters that mean two things, take two shapes or have two partners, and
    meanings that have two words. None: every word means one thing in all programs."""
    senses, shapes, partners, words, lines = {}, {}, {}, {}, []
    for program, option in _uses(helps):
        if not option.meaning:
            lines.append("%s %s says nothing of itself" % (program, option.names[-1]))
        if option.shape() and option.shape().replace("|", "\\|") not in SHAPES:
            lines.append("%s %s takes %s, which SHAPES does not explain" %
                         (program, option.names[-1], option.shape()))
        lines += _strange(program, option)
        words.setdefault(option.sense().lower(), set()).add(option.names[-1])
        for name in option.names:
            senses.setdefault(name, set()).add(option.sense())
            shapes.setdefault(name, set()).add(option.shape())
            partners.setdefault(name, set()).add(",".join(option.names))
    for name, found in shapes.items():
        if "0|1" in found:
            found.discard("")  # --drop-last alone is --drop-last=1
    for found, what in ((senses, "means"), (shapes, "takes"), (partners, "is spelled"),
                        (words, "is said of")):
        lines += ["%s %s: %s" % (key, what, " / ".join(values))
                  for key, values in _kinds(found).items()]
    return lines


def words_page(helps):
    """docs/option_words.md: a row for each word of all programs."""
    rows, programs = {}, {}
    for program, option in _uses(helps):
        programs.setdefault(option.names[-1], []).append(program)
        if option.shape() or option.names[-1] not in rows:
            rows[option.names[-1]] = option
    benches = [program for program in helps if program.startswith("bench_")]
    text = ("# Words of options\n\nEvery option of every program, with its one meaning; written by "
            "`bazel run //scripts:docs_test -- --write`. A test fails\nwhen a word or a letter "
            "gets a second meaning. [Options](options.md) has what each program adds.\n\n"
            "| option | takes | meaning | programs |\n|---|---|---|---|\n")
    for word in sorted(rows):
        option, users = rows[word], programs[word]
        if all(bench in users for bench in benches):
            users = ["bench_*"] + [user for user in users if user not in benches]
        if len(users) > 12:
            users = ["all but bench_*"] if "bench_*" not in users else ["all"]
        text += "| %s | %s | %s | %s |\n" % (
            ", ".join("`%s`" % name for name in option.names), option.shape().replace("|", "\\|"),
            option.sense().replace("|", "\\|"), ", ".join(users))
    return text + _explained("a value that is", SHAPES) + _explained("`--format=`", FORMATS)


def _explained(head, table):
    return "\n| %s | is |\n|---|---|\n" % head + "".join(
        "| %s | %s |\n" % row for row in table.items())
