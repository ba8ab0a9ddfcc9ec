"""Which header belongs to which system library, and which rooms may include it."""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# (pattern of the header, targets that provide it, rooms that may include it; None: all)
_VENDORS = [
    (r"mpi\.h", "system_mpi or system_mpich",
     ("core/comm/mpi/", "core/control/rendezvous/", "bench/peers/", "watch/preload/")),
    (r"(hdf5|hdf5_hl|H5\w+)\.h", "system_hdf5",
     ("core/hdf5/", "datasets/shards/", "results/store/")),
    (r"gloo/.*", "system_gloo", ("core/comm/gloo/", "watch/preload/")),
    (r"benchmark/.*", "system_benchmark", ("bench/",)),
    (r"(elfutils/.*|(dwarf|libelf|gelf)\.h)", "system_libdw", ("core/agent/", "watch/run/stacks/")),
    (r"openssl/.*", "system_libcrypto", ("core/control/rendezvous/",)),
    (r"nccl\w*\.h", "nccl_headers", ("core/comm/nccl/", "watch/preload/")),
    (r"(cuda\w*|cooperative_groups|driver_types|nvml)\.h", "headers", ("core/device/cuda/",)),
    (r"(cub|thrust|cuda|nv)/.*", "headers", ("core/device/cuda/",)),
    (r"(gtest|gmock)/.*", "system_gtest", None),
    (r"CLI/.*", "system_cli11", None),
    (r"fmt/.*", "system_fmt", None),
    (r"nlohmann/.*", "system_json", None),
    (r"toml\+\+/.*", "system_tomlplusplus", None),
]


def vendor_of(header):
    """(provider, rooms) of a vendor's header, or None for any other header."""
    for pattern, provider, rooms in _VENDORS:
        if re.fullmatch(pattern, header):
            return provider, rooms
    return None


def includes_of(text):
    """Yields (line number, '<' or '"', header) for each include of a source file."""
    for number, line in enumerate(text.split("\n"), start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)
