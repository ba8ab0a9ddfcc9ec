"""Every external repository of Lockstep. Nothing here downloads anything."""

load("//third_party/cuda:repository.bzl", "cuda_repository")
load("//third_party:program.bzl", "program")
load("//third_party:python_module.bzl", "python_module")
load("//third_party:system_library.bzl", "system_library")

def lockstep_repositories():
    """Declares the stubs that an offline Bazel 4.2 needs, then the system libraries."""

    # Debian's bazel-bootstrap 4.2.3 reports no version. A newer Bazel does, and brings its own rule
    # repositories; a stub would only hide them there.
    if not native.bazel_version:
        _offline_stubs()
    _system_libraries()

def _offline_stubs():
    for name in ["rules_cc", "rules_java", "remote_coverage_tools"]:
        native.local_repository(name = name, path = "third_party/bazel/" + name)

def _system_libraries():
    # Open MPI by Debian's name of its compiler wrapper, whatever `mpicc` is; elsewhere by `mpicc`.
    # --repo_env=LOCKSTEP_MPI=mpich: mpicc.mpich; LOCKSTEP_MPI=/opt/mpi/bin/mpicc: that wrapper.
    system_library(
        name = "system_mpi",
        header = "mpi.h",
        wrapper = "mpicc",
        wrapper_suffix = "openmpi",
        wrapper_variable = "LOCKSTEP_MPI",
        # The C++ bindings left the standard in MPI 3.0; Open MPI's mpi.h still pulls them in.
        defines = ["OMPI_SKIP_MPICXX"],
        package = "libopenmpi-dev or libmpich-dev",
    )
    # Beside it, for programs of MPICH that are watched.
    system_library(
        name = "system_mpich",
        header = "mpi.h",
        wrapper = "mpicc.mpich",
        launcher = "mpiexec.mpich",
        package = "libmpich-dev mpich",
    )
    system_library(
        name = "system_hdf5",
        header = "hdf5.h",
        pkg_config = "hdf5",
        package = "libhdf5-dev",
    )
    system_library(
        name = "system_gloo",
        header = "gloo/context.h",
        libraries = ["gloo"],
        package = "libgloo-dev",
    )
    system_library(
        name = "system_benchmark",
        header = "benchmark/benchmark.h",
        pkg_config = "benchmark",
        linkopts = ["-pthread"],
        package = "libbenchmark-dev",
    )
    system_library(
        name = "system_gtest",
        header = "gtest/gtest.h",
        more_headers = ["gmock/gmock.h"],
        libraries = ["gmock", "gtest"],
        linkopts = ["-pthread"],
        package = "libgtest-dev libgmock-dev",
    )
    system_library(name = "system_cli11", header = "CLI/CLI.hpp", package = "libcli11-dev")
    system_library(
        name = "system_fmt",
        header = "fmt/format.h",
        pkg_config = "fmt",
        package = "libfmt-dev",
    )
    system_library(
        name = "system_json",
        header = "nlohmann/json.hpp",
        package = "nlohmann-json3-dev",
    )
    system_library(
        name = "system_tomlplusplus",
        header = "toml++/toml.h",
        package = "libtomlplusplus-dev",
    )
    system_library(
        name = "system_libcrypto",
        header = "openssl/hmac.h",
        pkg_config = "libcrypto",
        package = "libssl-dev",
    )
    system_library(
        name = "system_libdw",
        header = "elfutils/libdwfl.h",
        libraries = ["dw", "elf"],
        package = "libdw-dev",
    )
    python_module(name = "system_torch", module = "torch", package = "python3-torch")
    program(name = "system_chromium", package = "chromium")
    cuda_repository(name = "system_cuda")
