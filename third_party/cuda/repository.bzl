"""The CUDA toolkit and the NCCL header as a Bazel repository.

The folder is $CUDA_PATH when that is set (--repo_env=CUDA_PATH=...), else /usr/local/cuda. NCCL's
header is looked for in $NCCL_HOME, in the toolkit and on the system; its library is never linked.
"""

load("//third_party:system_library.bzl", "write_facts")

# Turing to Blackwell; what an older or newer nvcc does not know is left out.
# A GPU runs what was compiled for an earlier one of its generation (86 and 89: 80).
_ARCHITECTURES = ["75", "80", "90", "100"]

_CUDA_BUILD = """
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**", "include/vector_types/**"]),
    includes = ["include"],
)

cc_library(
    name = "runtime",
    linkopts = {linkopts},
    deps = [":headers"],
)
"""

_NCCL_BUILD = """
cc_library(
    name = "nccl_headers",
    hdrs = glob(["nccl/*.h"]),
    includes = ["nccl"],
    deps = [":headers"],
)
"""

_ABSENT = """
cc_library(
    name = "{name}",
    target_compatible_with = ["@//third_party:incompatible"],
)
"""

def _absent(*names):
    return "".join([_ABSENT.format(name = name) for name in names])

def _library_folder(ctx, root):
    for folder in [root + "/lib64", root + "/targets/x86_64-linux/lib", root + "/lib"]:
        if ctx.path(folder + "/libcudart_static.a").exists:
            return folder
    return None

def _find_cuda(ctx, root):
    """Returns (library folder, known architectures, reason)."""
    nvcc = root + "/bin/nvcc"
    if not ctx.path(nvcc).exists:
        return None, [], "no %s (set CUDA_PATH to the toolkit's folder)" % nvcc
    folder = _library_folder(ctx, root)
    if not folder:
        return None, [], "no libcudart_static.a below %s" % root
    listed = ctx.execute([nvcc, "--list-gpu-arch"])
    if listed.return_code != 0:
        return None, [], "'%s --list-gpu-arch' failed" % nvcc
    known = listed.stdout.split("\n")
    return folder, [arch for arch in _ARCHITECTURES if "compute_" + arch in known], ""

def _find_nccl(ctx, root):
    home = ctx.os.environ.get("NCCL_HOME", "")
    folders = [home + "/include"] if home else []
    folders += [root + "/include", "/usr/include", "/usr/local/include"]
    for folder in folders:
        if ctx.path(folder + "/nccl.h").exists:
            return folder, ""
    return None, "no nccl.h in %s (Debian package: libnccl-dev)" % ", ".join(folders)

def _cuda_repository(ctx):
    root = ctx.os.environ.get("CUDA_PATH", "") or "/usr/local/cuda"
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    folder, architectures, reason = _find_cuda(ctx, root)
    nccl_folder, nccl_reason = _find_nccl(ctx, root)
    if reason:
        build += _absent("headers", "runtime", "nccl_headers")
        nccl_reason = "it needs CUDA's headers: " + reason
    else:
        ctx.symlink(root + "/include", "include")
        linkopts = ["-L" + folder, "-lcudart_static", "-ldl", "-lrt", "-pthread"]
        build += _CUDA_BUILD.format(linkopts = repr(linkopts))
        if nccl_folder:
            ctx.symlink(nccl_folder + "/nccl.h", "nccl/nccl.h")
            build += _NCCL_BUILD
        else:
            build += _absent("nccl_headers")
    ctx.file("BUILD", build, executable = False)
    write_facts(
        ctx,
        not reason,
        reason,
        nccl_found = not nccl_reason,
        nccl_reason = nccl_reason,
        root = root,
        architectures = architectures,
    )

cuda_repository = repository_rule(
    implementation = _cuda_repository,
    local = True,
    environ = ["CUDA_PATH", "NCCL_HOME", "PATH"],
)
