"""A module of the system's Python, for tests that compare with it, as a Bazel repository.

The repository has one target, named like the repository, and `facts.bzl` with FOUND and REASON, as
third_party/system_library.bzl has.
"""

load("//third_party:system_library.bzl", "write_facts")

# Debian's, whose packages bring the modules. Another python3 on the PATH does not see them.
_PYTHON = "/usr/bin/python3"

# A cc_library only because Bazel 4.2's filegroup can't be incompatible.
_BUILD = """cc_library(
    name = "{name}",
    target_compatible_with = {compatible_with},
    visibility = ["//visibility:public"],
)
"""

def write_presence(ctx, found):
    """Writes the target, incompatible with every platform unless `found`, and the facts."""
    compatible_with = [] if found else ["@//third_party:incompatible"]
    ctx.file(
        "BUILD",
        _BUILD.format(name = ctx.name, compatible_with = repr(compatible_with)),
        executable = False,
    )
    reason = "%s is not installed (apt install %s)" % (ctx.attr.package, ctx.attr.package)
    write_facts(ctx, found, "" if found else reason)

def _python_module(ctx):
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('%s') is None)"
    write_presence(ctx, ctx.execute([_PYTHON, "-c", find % ctx.attr.module]).return_code == 0)

python_module = repository_rule(
    implementation = _python_module,
    local = True,
    environ = ["PATH"],
    attrs = {
        "module": attr.string(mandatory = True),
        "package": attr.string(mandatory = True, doc = "the Debian package to name when absent"),
    },
)
