"""What this machine lacks, said once when //third_party is loaded."""

load("@system_benchmark//:facts.bzl", benchmark = "REASON")
load("@system_chromium//:facts.bzl", chromium = "REASON")
load("@system_cli11//:facts.bzl", cli11 = "REASON")
load("@system_cuda//:facts.bzl", cuda = "REASON", nccl = "NCCL_REASON")
load("@system_fmt//:facts.bzl", fmt = "REASON")
load("@system_gloo//:facts.bzl", gloo = "REASON")
load("@system_gtest//:facts.bzl", gtest = "REASON")
load("@system_hdf5//:facts.bzl", hdf5 = "REASON")
load("@system_json//:facts.bzl", json = "REASON")
load("@system_libcrypto//:facts.bzl", libcrypto = "REASON")
load("@system_libdw//:facts.bzl", libdw = "REASON")
load("@system_mpi//:facts.bzl", mpi = "REASON")
load("@system_mpich//:facts.bzl", mpich = "REASON")
load("@system_tomlplusplus//:facts.bzl", tomlplusplus = "REASON")
load("@system_torch//:facts.bzl", torch = "REASON")

_REASONS = {
    "benchmark": benchmark,
    "chromium": chromium,
    "cli11": cli11,
    "cuda_runtime": cuda,
    "fmt": fmt,
    "gloo": gloo,
    "gtest": gtest,
    "hdf5": hdf5,
    "json": json,
    "libcrypto": libcrypto,
    "libdw": libdw,
    "mpi": mpi,
    "mpich": mpich,
    "nccl_headers": nccl,
    "tomlplusplus": tomlplusplus,
    "torch": torch,
}

_ABSENT = ["//third_party:%s is absent: %s" % item for item in _REASONS.items() if item[1]]

def report_absent():
    """Prints one line for each absent library."""
    for line in _ABSENT:
        print(line)  # buildifier: disable=print

def _absent_file(ctx):
    file = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(file, "".join([line + "\n" for line in _ABSENT]))
    return [DefaultInfo(files = depset([file]))]

absent_file = rule(
    implementation = _absent_file,
    doc = "The same lines as a file, for scripts that explain why a target was skipped.",
)
