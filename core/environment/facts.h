// What a result depends on and what makes jobs hang: the facts of a machine and its software.
//
// A fact is a path and a text, {"limits/open_files", "1024"}; the path before the last slash is a
// group of /environment in a result file. What can't be found out is absent or says "unknown: why".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::environment {

using Facts = std::vector<std::pair<std::string, std::string>>;

// Processor, memory, kernel, limits, container: reads files only, in less than a millisecond.
Facts HostFacts();
// Environment variables that change what a collective does (NCCL_*, OMPI_MCA_*, LD_PRELOAD …).
Facts VariableFacts();
// Interfaces that are up, those that variables name and that are not there, the host name and
// whether it can be resolved, InfiniBand devices. Asks the resolver, at most `seconds`.
Facts NetworkFacts(double seconds);
// PCI bridges with access control services that detour peer traffic, IOMMU, NUMA nodes of GPUs,
// the modules and services of NVIDIA's driver.
Facts TopologyFacts();
// NCCL libraries that can be found, or only the file `nccl_library`, with version and the CUDA they
// were built with (read from the files, nothing is loaded); the CUDA toolkit; the MPI of `mpirun`.
Facts LibraryFacts(const std::string& nccl_library);

// The value of a fact; nullptr when absent.
const std::string* Find(const Facts& facts, std::string_view path);

}  // namespace lockstep::environment
