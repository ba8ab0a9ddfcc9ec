"""A C or C++ library that the system's package manager installed, as a Bazel repository.

The repository has one target, named like the repository, and `facts.bzl` with FOUND and REASON.
When the library is absent the target is incompatible with every platform, so that
`bazel test //...` skips whatever needs it, and REASON says in one line what is missing and which
package brings it.
"""

_SYSTEM_INCLUDE = ["/usr/include", "/usr/local/include"]

_FOUND_BUILD = """package(default_visibility = ["//visibility:public"])

cc_library(
    name = "{name}",
    hdrs = glob({globs}),
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
)
"""

_ABSENT_BUILD = """package(default_visibility = ["//visibility:public"])

cc_library(
    name = "{name}",
    target_compatible_with = ["@//third_party:incompatible"],
)
"""

def write_facts(ctx, found, reason, **more):
    """Writes facts.bzl: FOUND, REASON (empty when found) and any further upper-case constants."""
    lines = ["FOUND = %r" % found, "REASON = %r" % reason]
    lines += ["%s = %r" % (key.upper(), value) for key, value in more.items()]
    ctx.file("facts.bzl", "\n".join(lines) + "\n", executable = False)

def _flags_of(ctx, command):
    """The words that `command` prints, and a reason when it can't be run."""
    if not command:
        return [], ""
    program = ctx.which(command[0])
    if not program:
        return [], "no %s in PATH" % command[0]
    result = ctx.execute([program] + command[1:])
    if result.return_code != 0:
        return [], "'%s' failed" % " ".join(command)
    return [word for word in result.stdout.replace("\n", " ").split(" ") if word], ""

def _find_header_folder(ctx, folders, header):
    for folder in folders:
        if ctx.path(folder + "/" + header).exists:
            return folder
    return None

def _wrapper_of(ctx):
    """The compiler wrapper of the flavor that the environment chooses: a suffix, or a path."""
    chosen = ctx.os.environ.get(ctx.attr.wrapper_variable, "")
    if "/" in chosen:
        return chosen
    named = ctx.attr.wrapper + "." + (chosen or ctx.attr.wrapper_suffix)
    return named if chosen or ctx.which(named) else ctx.attr.wrapper

def _locate(ctx):
    """Returns (folder of the header, compile flags, link flags, reason why not or "")."""
    if ctx.attr.launcher and not ctx.which(ctx.attr.launcher):
        return None, [], [], "no %s in PATH" % ctx.attr.launcher
    commands = [[], []]
    if ctx.attr.pkg_config:
        commands = [["pkg-config", kind, ctx.attr.pkg_config] for kind in ["--cflags", "--libs"]]
    elif ctx.attr.wrapper:
        commands = [[_wrapper_of(ctx), "-show"]] * 2
    compile_flags, reason = _flags_of(ctx, commands[0])
    if reason:
        return None, [], [], reason
    link_flags, reason = _flags_of(ctx, commands[1])
    if reason:
        return None, [], [], reason
    if ctx.attr.wrapper:
        # A wrapper shows all of the compiler's command.
        link_flags = [flag for flag in link_flags if flag[:2] in ["-L", "-l"] or flag[:4] == "-Wl,"]
    folders = [flag[2:] for flag in compile_flags if flag.startswith("-I")] + _SYSTEM_INCLUDE
    folder = _find_header_folder(ctx, folders, ctx.attr.header)
    if not folder:
        return None, [], [], "no %s in %s" % (ctx.attr.header, ", ".join(folders))
    return folder, compile_flags, link_flags, ""

def _link_headers(ctx, folder, compile_flags):
    """Makes the headers inputs; returns (globs, include folders) inside the repository."""
    if folder in _SYSTEM_INCLUDE:
        # Only what belongs to this library, not all of /usr/include.
        for header in [ctx.attr.header] + ctx.attr.more_headers:
            first = header.split("/")[0]
            ctx.symlink(folder + "/" + first, "include/" + first)
        return ["include/**"], ["include"]
    folders = [folder]
    for flag in compile_flags:
        # A folder inside the first one (Open MPI names both) is reached through it.
        if flag.startswith("-I") and not flag[2:].startswith(folder) and flag[2:] not in folders:
            folders.append(flag[2:])
    includes = []
    for index, path in enumerate(folders):
        includes.append("include_%d" % index)
        ctx.symlink(path, includes[-1])
    return [name + "/**" for name in includes], includes

def _system_library(ctx):
    folder, compile_flags, link_flags, reason = _locate(ctx)
    if reason:
        ctx.file("BUILD", _ABSENT_BUILD.format(name = ctx.name), executable = False)
        write_facts(ctx, False, "%s (Debian package: %s)" % (reason, ctx.attr.package))
        return
    globs, includes = _link_headers(ctx, folder, compile_flags)
    defines = [flag[2:] for flag in compile_flags if flag.startswith("-D")] + ctx.attr.defines
    linkopts = link_flags + ["-l" + library for library in ctx.attr.libraries] + ctx.attr.linkopts
    ctx.file("BUILD", _FOUND_BUILD.format(
        name = ctx.name,
        globs = repr(globs),
        includes = repr(includes),
        defines = repr(defines),
        linkopts = repr(linkopts),
    ), executable = False)
    write_facts(ctx, True, "")

system_library = repository_rule(
    implementation = _system_library,
    local = True,
    environ = ["PATH", "PKG_CONFIG_PATH", "LOCKSTEP_MPI"],
    attrs = {
        "header": attr.string(mandatory = True, doc = "a header that proves the library is there"),
        "more_headers": attr.string_list(doc = "further header folders of the library"),
        "pkg_config": attr.string(doc = "its pkg-config module, when it has one"),
        "wrapper": attr.string(doc = "its compiler wrapper, which shows the flags with -show"),
        "wrapper_suffix": attr.string(doc = "of the flavor that is taken where nothing is chosen"),
        "wrapper_variable": attr.string(doc = "environment: suffix or path of another wrapper"),
        "launcher": attr.string(doc = "what starts its programs, where they are to be started"),
        "libraries": attr.string_list(doc = "names for -l"),
        "linkopts": attr.string_list(),
        "defines": attr.string_list(),
        "package": attr.string(mandatory = True, doc = "the Debian package to name when absent"),
    },
)
