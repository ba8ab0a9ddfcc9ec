"""C++ targets that compile all their sources as one translation unit.

Most of a compilation is the headers and templates that the sources of a room share. One unit takes
a third to a fifth of the processor time. So names in anonymous namespaces are unique in a target,
which scripts/tidy/units.py checks: the compiler takes another argument list for an overload.
`--config=separate` compiles each source by itself, which proves that it includes what it needs.

What most of them include of others is precompiled (pch.bzl), except where a target has flags of
its own. `--config=separate` does without it.
"""

def _translation_unit(ctx):
    unit = ctx.actions.declare_file(ctx.label.name + ".cc")
    sources = [file.short_path for file in ctx.files.srcs if file.extension == "cc"]
    ctx.actions.write(unit, "".join(['#include "%s"\n' % source for source in sources]))
    return DefaultInfo(files = depset([unit]))

_translation_unit_rule = rule(
    implementation = _translation_unit,
    attrs = {"srcs": attr.label_list(allow_files = [".cc"])},
)

def _separate(_ctx):
    return []

separate = rule(
    doc = "Whether each source is compiled by itself.",
    implementation = _separate,
    build_setting = config.bool(flag = True),
)

# GCC warns of an anonymous namespace's types in whatever is included.
_COPTS = ["-Wno-subobject-linkage"]

def _is_source(name):
    return name.endswith(".cc") or "." not in name  # the latter is a filegroup of sources

def _sources(srcs):
    if type(srcs) == "select":  # one source of several
        return []
    return [name for name in srcs if _is_source(name)]

def _headers_and_libraries(srcs):
    return [name for name in srcs if not _is_source(name)]

def _unit(name, sources):
    """What is compiled: `sources`, or a unit that includes them."""
    _translation_unit_rule(name = name + "_unit", srcs = sources)
    return select({
        "//scripts/bazel:separately": sources,
        "//conditions:default": [":%s_unit" % name],
    })

def _precompiled(srcs, copts, deps):
    """The flags and the dependency that give `srcs` a precompiled header."""
    if type(srcs) == "list" and (not srcs or [name for name in srcs if name.endswith(".c")]):
        return [], []
    if copts or type(deps) == "select":
        return [], []
    tests = [name for name in deps if name.startswith("//third_party:gtest")]
    header = "test" if tests else "common"
    label = "//scripts/bazel:" + header
    flags = ["-include", "$(GENDIR)/scripts/bazel/%s.h" % header]
    flags += ["-Winvalid-pch", "-Wno-error=invalid-pch"]  # of another GCC: slower, but right
    return [
        select({"//scripts/bazel:separately": [], "//conditions:default": chosen})
        for chosen in (flags, [label])
    ]

def cc_library(name, srcs = [], copts = [], deps = [], textual_hdrs = [], **kwargs):
    kwargs["linkstatic"] = True  # nothing is linked to a shared object of it, so none is made
    flags, precompiled = _precompiled(srcs, copts, deps)
    copts = copts + flags
    deps = deps + precompiled
    sources = _sources(srcs)
    if len(sources) < 2:
        native.cc_library(
            name = name,
            srcs = srcs,
            copts = copts,
            textual_hdrs = textual_hdrs,
            deps = deps,
            **kwargs
        )
        return
    native.cc_library(
        name = name,
        srcs = _headers_and_libraries(srcs) + _unit(name, sources),
        copts = copts + _COPTS,
        textual_hdrs = textual_hdrs + sources,
        deps = deps,
        **kwargs
    )

def _program(rule, name, srcs, copts, deps, testonly, **kwargs):
    flags, precompiled = _precompiled(srcs, copts, deps)
    copts = copts + flags
    deps = deps + precompiled
    sources = _sources(srcs)
    if len(sources) < 2:
        rule(
            name = name,
            srcs = srcs,
            copts = copts,
            testonly = testonly,
            deps = deps,
            **kwargs
        )
        return
    native.cc_library(
        name = name + "_sources",
        testonly = testonly,
        textual_hdrs = srcs,
        deps = deps,
    )
    rule(
        name = name,
        srcs = _headers_and_libraries(srcs) + _unit(name, sources),
        copts = copts + _COPTS,
        testonly = testonly,
        deps = deps + [":%s_sources" % name],
        **kwargs
    )

def cc_binary(name, srcs = [], copts = [], deps = [], testonly = False, **kwargs):
    _program(native.cc_binary, name, srcs, copts, deps, testonly, **kwargs)

def cc_test(name, srcs = [], copts = [], deps = [], **kwargs):
    _program(native.cc_test, name, srcs, copts, deps, True, **kwargs)
