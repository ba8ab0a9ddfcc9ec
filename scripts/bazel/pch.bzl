"""A precompiled header: what most sources include of others, parsed once instead of 300 times.

GCC takes `common.h.gch` beside `common.h` where `-include` names the latter and all that decides
what a header means is the same: hence the toolchain's own command line, in each configuration.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include <%s>\n" % name for name in ctx.attr.includes]))
    toolchain = find_cpp_toolchain(ctx)
    libraries = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = libraries.compilation_context
    precompiled = ctx.actions.declare_file(header.basename + ".gch")
    _compile(ctx, toolchain, context, header, precompiled)

    # Files alone, without the folders of `deps`: a source still can't include what it does not
    # declare.
    files = depset([header, precompiled], transitive = [context.headers])
    return [
        DefaultInfo(files = depset([precompiled])),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = files)),
    ]

def _compile(ctx, toolchain, context, header, precompiled):
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    read = ctx.actions.declare_file(header.basename + ".d")
    command = {
        "action_name": "c++-compile",
        "feature_configuration": features,
    }
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = precompiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
        system_include_directories = context.system_includes,
        quote_include_directories = context.quote_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    arguments = cc_common.get_memory_inefficient_command_line(variables = variables, **command)
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(**command),
        # The list of what was read goes into the header, and from there into the lists of sources.
        arguments = ["-x", "c++-header", "-MD", "-MF", read.path] + arguments,
        env = cc_common.get_environment_variables(variables = variables, **command),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [precompiled, read],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % header.short_path,
    )

precompiled_header = rule(
    implementation = _precompiled_header,
    attrs = {
        "includes": attr.string_list(doc = "what the header includes"),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
