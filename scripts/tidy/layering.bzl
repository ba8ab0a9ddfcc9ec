"""`bazel build --config=layering //...`: each target includes only what it declares.

Clang's layering_check needs module maps, which Bazel 4 can't make for gcc; this aspect gives the
same answer from the text of the includes, for C++ and CUDA sources alike.
"""

_Provided = provider(
    doc = "What a target lets its direct dependents include.",
    fields = {
        "headers": "list of paths from the root",
        "skipped": "whether the target can't be built here: something it needs is absent",
        "vendors": "list of provider names",
    },
)

_KINDS = ["cc_library", "cc_binary", "cc_test", "_nvcc"]
_SOURCES = ["cc", "cu", "h"]

def _files(ctx, name):
    return [
        file
        for file in getattr(ctx.rule.files, name, [])
        if file.extension in _SOURCES and not file.basename.endswith("_unit.cc")
    ]

def _provided_by_dependencies(ctx):
    headers, vendors, skipped = [], [], False
    for dep in ctx.rule.attr.deps:
        skipped = skipped or CcInfo not in dep  # it can't be built here, and has no aspect
        if _Provided in dep:
            headers += dep[_Provided].headers
            vendors += dep[_Provided].vendors
            skipped = skipped or dep[_Provided].skipped
    return headers, vendors, skipped

def _is_absent(ctx):
    wanted = [str(target.label) for target in getattr(ctx.rule.attr, "target_compatible_with", [])]
    return any([label.endswith("//third_party:incompatible") for label in wanted])

def _layering(target, ctx):
    if ctx.rule.kind not in _KINDS:
        return []
    exported = _files(ctx, "hdrs") + _files(ctx, "textual_hdrs")
    headers, vendors, skipped = _provided_by_dependencies(ctx)
    if skipped or _is_absent(ctx):
        return [_Provided(headers = [], vendors = [], skipped = True)]
    if ctx.label.workspace_name:
        return [_Provided(headers = [], vendors = vendors + [ctx.label.name], skipped = False)]
    if not exported and not getattr(ctx.rule.files, "srcs", []):
        # A target that only forwards.
        return [_Provided(headers = headers, vendors = vendors, skipped = False)]
    sources = exported + _files(ctx, "srcs")
    headers = headers + [file.short_path for file in sources if file.extension == "h"]
    return [
        _Provided(
            headers = [file.short_path for file in exported if file.extension == "h"],
            vendors = [],
            skipped = False,
        ),
        OutputGroupInfo(layering = depset([_check(ctx, sources, headers, vendors)])),
    ]

def _check(ctx, sources, headers, vendors):
    out = ctx.actions.declare_file(ctx.label.name + ".layering")
    arguments = ctx.actions.args()
    arguments.use_param_file("@%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add_all(["--label", str(ctx.label), "--out", out])
    arguments.add_all(sources, before_each = "--source")
    arguments.add_all(headers, before_each = "--header")
    arguments.add_all(vendors, before_each = "--vendor")
    ctx.actions.run(
        executable = "/usr/bin/python3",
        arguments = [ctx.file._checker.path, arguments],
        inputs = sources + [ctx.file._checker, ctx.file._vendors],
        outputs = [out],
        mnemonic = "Layering",
        progress_message = "Checking the includes of %s" % ctx.label,
    )
    return out

layering = aspect(
    implementation = _layering,
    attr_aspects = ["deps", "actual"],
    attrs = {
        "_checker": attr.label(
            default = "//scripts/tidy:check_layering.py",
            allow_single_file = True,
        ),
        "_vendors": attr.label(
            default = "//scripts/tidy:vendor_headers.py",
            allow_single_file = True,
        ),
    },
)
