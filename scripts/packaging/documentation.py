"""Man pages and completion for bash and zsh, made from what every program says of itself: the
--help texts, which docs/options.md holds and docs_test.py compares with the programs.

  documentation.py OPTIONS.md SHARE [VERSION]     writes below SHARE, as an installed prefix has it
"""
import os
import re
import sys

# A line of an option: two blanks, names, what they take, and two blanks before what they mean.
_OPTION = re.compile(r"^ {2}(-\S.*?)(?: {2,}(\S.*))?$")
_MORE = re.compile(r"^ {10,}(\S.*)$")
_TITLES = re.compile(r"^(options|positionals|positional arguments|subcommands):$", re.IGNORECASE)


class Option:
    """names: ["-o", "--output"]; takes: "TEXT", "{text,json}" or ""; meaning: a sentence."""

    def __init__(self, head, meaning):
        parts = re.split(r", (?=-)", head)  # of argparse: "-o OUTPUT, --output OUTPUT"
        self.names = [name for part in parts for name in part.split()[0].split(",")]
        self.takes = " ".join(parts[-1].split()[1:])
        self.meaning = meaning

    def values(self):
        choices = re.search(r"\{([^}]*)\}", self.takes)
        return choices.group(1).split(",") if choices else []

    def shape(self):
        """What the value is, without bounds and default: "TIME"; "" of a switch."""
        if self.takes.startswith("{"):  # argparse's choices
            return "WORD"
        return re.sub(r"(:(\{.*\}|\S+\.\.\S+?))?(=.*)?( \.\.\.)?( REQUIRED)?$", "", self.takes)

    def sense(self):
        """What the option means in every program: its help up to what is of this program."""
        return re.split(r"; | \(", self.meaning)[0]


def options_page(helps):
    """docs/options.md of {program as it is typed: its --help}."""
    text = ("# Options\n\nWhat every program says of itself; written by "
            "`bazel run //scripts:docs_test -- --write`.\n")
    for program, said in helps.items():
        lines = "\n".join(line.rstrip() for line in said.strip("\n").splitlines())
        text += f"\n## {program}\n\n```\n{lines}\n```\n"
    return text


def helps_of(page):
    """What options_page was made of; scripts of the source tree are left out."""
    found = re.findall(r"^## ([^\n]*)\n\n```\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    return {program: said for program, said in found if not program.startswith("scripts/")}


def sections_of(said):
    """(summary, synopsis, [(title or "", lines)]) of a --help."""
    blocks, synopsis, summary = [("", [])], [], ""
    in_usage = False
    for line in said.splitlines():
        if line.lower().startswith("usage: "):
            in_usage = True
            synopsis.append(line[len("usage: "):])
        elif in_usage and line.startswith(" "):
            synopsis.append(line)
        elif _TITLES.match(line):
            in_usage = False
            blocks.append((line[:-1].lower(), []))
        else:
            in_usage = False
            if line and not line.startswith(" ") and blocks[-1][0]:
                blocks.append(("", []))  # what follows the options
            if not summary and line:
                summary = line
            else:
                blocks[-1][1].append(line)
    return summary.removesuffix("."), synopsis, blocks


def options_of(said):
    found, heads = [], []
    for title, lines in sections_of(said)[2]:
        for line in lines if title == "options" else []:
            option, more = _OPTION.match(line), _MORE.match(line)
            if option:
                heads.append([option.group(1), option.group(2) or ""])
            elif more and heads:
                heads[-1][1] = (heads[-1][1] + " " + more.group(1)).strip()
    for head, meaning in heads:
        found.append(Option(head, meaning))
    return found


def subcommands_of(helps):
    return [program.split()[1] for program in helps if program.startswith("lockstep ")]


def _roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(one if one.isascii() else "\\[u%04X]" % ord(one) for one in text)
    return "\\&" + text if text.startswith((".", "'")) else text


def _verbatim(lines):
    text = "\n".join(map(_roff, lines)).strip("\n")
    return ".nf\n%s\n.fi\n" % text if text.strip() else ""


def _man_part(program, said):
    summary, synopsis, blocks = sections_of(said)
    text = ".SH SYNOPSIS\n" + _verbatim(synopsis or [program])
    text += ".SH DESCRIPTION\n%s\n" % _roff(summary)
    for title, lines in blocks:
        if title == "options":
            text += ".SH OPTIONS\n"
            for option in options_of(said):
                names = ", ".join("\\fB%s\\fR" % _roff(name) for name in option.names)
                takes = " \\fI%s\\fR" % _roff(option.takes) if option.takes else ""
                text += ".TP\n%s%s\n%s\n" % (names, takes, _roff(option.meaning))
        elif _verbatim(lines):
            heading = title or ("notes" if ".SH OPTIONS" in text else "")
            text += (".SH %s\n" % heading.upper() if heading else ".PP\n") + _verbatim(lines)
    return summary, text


def man_pages(helps, version):
    """{file name: page}. `lockstep stress` and the program lockstep-stress share one."""
    parts = {}
    for program, said in helps.items():
        parts.setdefault(program.replace(" ", "-"), []).append(_man_part(program, said))
    pages = {}
    for name, parts_of in parts.items():
        others = [other for other in sorted(parts) if other != name]
        pages[name + ".1"] = (
            '.TH %s 1 "" "Lockstep %s" Lockstep\n.SH NAME\n%s \\- %s\n' %
            (name.upper(), version, _roff(name), _roff(parts_of[0][0])) +
            "".join(text for _, text in parts_of) +
            ".SH SEE ALSO\n%s\n" % ",\n".join("\\fB%s\\fR(1)" % _roff(one) for one in others))
    return pages


# Subcommands that take the options of a program, too: what they are called here counts.
_TAKES = {"lockstep stress": "lockstep-stress"}


def _offered(helps, program):
    """Options that a shell offers."""
    found = options_of(helps[program])
    known = {name for option in found for name in option.names}
    more = options_of(helps.get(_TAKES.get(program), ""))
    return found + [option for option in more if known.isdisjoint(option.names)]


def _programs(helps):
    return [program for program in helps if " " not in program]


def bash_completion(helps):
    words, values = [], []
    for program in helps:
        options = _offered(helps, program)
        names = [name for option in options for name in option.names]
        if program == "lockstep":
            names += subcommands_of(helps)
        words.append("    '%s') words='%s' ;;" % (program, " ".join(names)))
        values += ["    '%s %s') words='%s' ;;" % (program, name, " ".join(option.values()))
                   for option in options if option.values() for name in option.names]
    return _BASH % ("\n".join(words), "\n".join(values), " ".join(_programs(helps)))


_BASH = """# Completion of Lockstep's programs for bash, made from their --help.
_lockstep() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=
  local program="${COMP_WORDS[0]##*/}"
  if [[ "$program" == lockstep ]] && ((COMP_CWORD > 1)); then
    program="lockstep ${COMP_WORDS[1]}"
  fi
  # bash takes `=` for a word of its own.
  if [[ "$word" == = ]]; then
    word=
  elif [[ "$before" == = ]]; then
    before="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "$program" in
%s
  esac
  [[ "$word" == -* || "$program" == lockstep ]] || words=
  case "$program $before" in
%s
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _lockstep %s
"""


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh_specs(options):
    for option in options:
        meaning = re.sub(r"([\[\]:\\])", r"\\\1", option.meaning)
        taken = ""
        if option.takes:
            values = option.values()
            taken = ":value:(%s)" % " ".join(values) if values else ":value:_files"
        for name in option.names:
            joined = "=" if taken and name.startswith("--") else ""
            yield _quoted("*%s%s[%s]%s" % (name, joined, meaning, taken))


def zsh_completion(helps):
    cases = []
    for program in helps:
        specs = list(_zsh_specs(_offered(helps, program))) + ["'*:file:_files'"]
        cases.append("    %s)\n      _arguments \\\n        %s ;;" %
                     (_quoted(program), " \\\n        ".join(specs)))
    commands = "\n".join("      %s" % _quoted("%s:%s" % (
        one, sections_of(helps["lockstep " + one])[0].replace(":", "\\:")))
        for one in subcommands_of(helps))
    return _ZSH % (" ".join(_programs(helps)), commands, "\n".join(cases))


_ZSH = """#compdef %s
# Completion of Lockstep's programs for zsh, made from their --help.
_lockstep() {
  local program=$service
  if [[ $program == lockstep ]] && (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    local -a commands=(
%s
    )
    _describe subcommand commands
    return
  fi
  if [[ $program == lockstep ]] && (( CURRENT > 2 )); then
    program="lockstep $words[2]"
    shift words
    (( CURRENT-- ))
  fi
  case $program in
%s
  esac
}
_lockstep "$@"
"""


def files_of(helps, version):
    """{path below share/: text}."""
    files = {"man/man1/" + name: text for name, text in man_pages(helps, version).items()}
    files["bash-completion/completions/lockstep"] = bash_completion(helps)
    files["zsh/site-functions/_lockstep"] = zsh_completion(helps)
    return files


def main(arguments):
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as page:
        helps = helps_of(page.read())
    for path, text in files_of(helps, (arguments + [""])[2]).items():
        target = os.path.join(arguments[1], path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    folder = os.path.join(arguments[1], "bash-completion/completions")
    for program in _programs(helps):  # bash looks for a file of the command's name
        if program != "lockstep":
            link = os.path.join(folder, program)
            if os.path.lexists(link):
                os.remove(link)
            os.symlink("lockstep", link)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
