"""cuda_library: .cu files compiled by nvcc to objects, wrapped in a cc_library."""

load("@system_cuda//:facts.bzl", "ARCHITECTURES", "FOUND", "ROOT")

# Relaxed: the standard library's constexpr functions run on the device as well.
_FLAGS = [
    "-std=c++20",
    "-O2",
    "--expt-relaxed-constexpr",
    # Their names are made of the process's number, which is the same in every sandbox.
    "--objdir-as-tempdir",
    "-Xcompiler=-fPIC,-Wall,-Wextra",
    "-Werror=all-warnings",
]
_INCOMPATIBLE = ["//third_party:incompatible"]

def _architecture_flags():
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (arch, arch) for arch in ARCHITECTURES]
    newest = ARCHITECTURES[-1] if ARCHITECTURES else ""
    # PTX of the newest lets a later GPU compile the kernels for itself.
    return flags + ["-gencode=arch=compute_%s,code=compute_%s" % (newest, newest)]

def _nvcc_objects(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = merged.compilation_context
    objects = []
    for source in ctx.files.srcs:
        object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all(["-c", source, "-o", object] + _FLAGS + _architecture_flags())
        arguments.add("-I.")
        arguments.add_all(context.system_includes, before_each = "-isystem")
        ctx.actions.run(
            executable = ROOT + "/bin/nvcc",
            arguments = [arguments],
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.headers]),
            outputs = [object],
            use_default_shell_env = True,
            mnemonic = "Nvcc",
            progress_message = "Compiling %s with nvcc" % source.short_path,
        )
        objects.append(object)
    return [DefaultInfo(files = depset(objects))]

_nvcc = rule(
    implementation = _nvcc_objects,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """A cc_library of CUDA sources; incompatible, so skipped, where there is no CUDA toolkit."""
    compatible = [] if FOUND else _INCOMPATIBLE
    deps = deps + ["//third_party:cuda_runtime"]
    _nvcc(
        name = name + "_objects",
        srcs = srcs,
        hdrs = hdrs,
        deps = deps,
        target_compatible_with = compatible,
    )
    native.cc_library(
        name = name,
        srcs = [name + "_objects"],
        hdrs = hdrs,
        deps = deps,
        target_compatible_with = compatible,
        **kwargs
    )
