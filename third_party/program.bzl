"""A program of the system that tests need and that is too heavy to be installed for all, as a Bazel
repository: see third_party/python_module.bzl."""

load("//third_party:python_module.bzl", "write_presence")

def _program(ctx):
    write_presence(ctx, ctx.which(ctx.attr.package) != None)

program = repository_rule(
    implementation = _program,
    local = True,
    environ = ["PATH"],
    attrs = {
        "package": attr.string(mandatory = True, doc = "Debian's, named like the program"),
    },
)
