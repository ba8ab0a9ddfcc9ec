"""What the values of plans may be. A wrong one is one line: the input, the reason, the remedy."""

import argparse
import math
import re
import shlex
import tomllib

import launches

BACKENDS = ("mpi", "gloo", "nccl")  # "null" communicates nothing
KINDS = ("bench", "stress", "simulation", "fuzz", "soak", "doctor")
PROFILE_NAMES = ("quick", "standard", "full")
_MOST_SECONDS = 10 * 365 * 86400  # of anything: a longer time is a slip


class PlanError(ValueError):
    """One line: the input, the reason, the remedy."""

    def __init__(self, message):
        super().__init__(launches.one_line(message))


def read_toml(path, text):
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError("%s: %s; mend the TOML" % (path, error)) from None


def read_file(path):
    """The text of a plan's file."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise PlanError("%s: is no UTF-8 (%s); a plan is TOML" % (path, error.reason)) from None
    except OSError as error:
        raise PlanError("%s: cannot be read: %s; name a plan" % (path, error.strerror)) from None


def seconds_of(value):
    """A time as options take it: seconds, or a text with a unit. NaN: neither."""
    if type(value) in (int, float):
        return float(value) if value <= _MOST_SECONDS else math.inf
    try:
        return launches.seconds(value) if isinstance(value, str) else math.nan
    except argparse.ArgumentTypeError:
        return math.nan


def shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is_text(value):
    return isinstance(value, str) and value != "" and "\0" not in value


def _is_name(value):
    """Files are named so."""
    return _is_text(value) and "/" not in value and value.isprintable() and len(value) <= 100


def _is_count(most, least=1):
    # To Python, true is a number.
    return lambda value: type(value) is int and least <= value <= most


def _is_number(most):
    return lambda value: type(value) in (int, float) and 0 < value <= most


def _is_time(most):
    return lambda value: 0 < seconds_of(value) <= most


def _is_list(check, least=1):
    return lambda value: (isinstance(value, list) and len(value) >= least
                          and all(check(one) for one in value))


def _is_environment(value):
    return isinstance(value, dict) and all(
        _is_text(key) and "=" not in key and (
            isinstance(one, str) and "\0" not in one or type(one) in (int, float))
        for key, one in value.items())


def _is_launcher(value):
    try:
        return _is_text(value) and len(shlex.split(value)) > 0
    except ValueError:
        return False


def _are_backends(value):
    return _is_list(BACKENDS.__contains__)(value) and len(set(value)) == len(value)


def _is_argument(value):
    return isinstance(value, str) and "\0" not in value


def _is_benchmark(value):
    """Whether it is installed is another question."""
    return isinstance(value, str) and re.fullmatch(r"bench_[a-z_]+", value) is not None


def _is_percent(value):
    return isinstance(value, str) and re.fullmatch(r"[0-9]{1,3}(\.[0-9]+)?%", value) is not None


# key: (is it so?, what it should be). A key means the same in every table that has it.
_VALUES = {
    "name": (_is_name, "a text of at most 100 characters, without '/'"),
    "profile": (PROFILE_NAMES.__contains__, "one of " + ", ".join(PROFILE_NAMES)),
    "ranks": (_is_count(1 << 20, 2), f"a number from 2 to {1 << 20}"),
    "backends": (_are_backends, 'a list of some of "mpi", "gloo", "nccl", each once; "null" '
                 "communicates nothing"),
    "backend": (BACKENDS.__contains__, "one of mpi, gloo, nccl; null communicates nothing"),
    "launcher": (_is_launcher, "a command line, as in a shell"),
    "min_effect": (_is_percent, "a change that counts, as 10%"),
    "baseline": (_is_text, "a text"),
    "environment": (_is_environment, "a table of texts and numbers"),
    "nccl_library": (_is_text, "the path of a library"),
    "time_budget": (_is_time(_MOST_SECONDS), "a time: 300s, 5min or 1h"),
    "timeout": (_is_time(86400), "a time, more than 0 and at most a day: 10 or 10s"),
    "skip": (_is_list(_is_text, 0), "a list of names of steps"),
    "kind": (KINDS.__contains__, "one of " + ", ".join(KINDS)),
    "program": (_is_benchmark, "the name of a benchmark, such as bench_allreduce"),
    "arguments": (_is_list(_is_argument, 0), "a list of texts"),
    "scenarios": (_is_list(_is_text), "a list of names, with wildcards"),
    "seconds": (_is_number(_MOST_SECONDS), "seconds, more than 0: how long a launch takes"),
    "launch_seconds": (_is_number(_MOST_SECONDS), "seconds, more than 0"),
    "launches": (_is_count(10_000), "a number from 1 to 10000"),
    "repeat": (_is_count(1_000_000), "a number, 1 or more"),
    "part": (_is_number(1), "more than 0, and 1 for all scenarios"),
    "required": (lambda value: isinstance(value, bool), "true or false"),
    "step": (_is_list(lambda value: isinstance(value, dict)), "[[step]] tables"),
    "configuration": (_is_list(lambda value: isinstance(value, dict)), "[[configuration]] tables"),
}


KEYS = set(_VALUES)
# Keys of earlier versions: a word is that of the option which means the same.
_RENAMED = {"budget": "time_budget", "deadline": "timeout", "seeds": "repeat"}


def check_table(path, table, known, where):
    """`where`: what is checked, for the message: "step 'latency'"."""
    for key, value in table.items():
        if _RENAMED.get(key) in known:
            raise PlanError("%s: '%s' of %s is called '%s' now" %
                            (path, key, where, _RENAMED[key]))
        if key not in known:
            raise PlanError("%s: '%s' of %s is unknown; choose from %s" %
                            (path, key, where, ", ".join(sorted(known))))
        is_right, wanted = _VALUES[key]
        try:
            right = is_right(value)
        except TypeError:  # a table or a list where a name belongs
            right = False
        if not right:
            raise PlanError("%s: %s: %s = %s; give %s" % (path, where, key, shown(value), wanted))
