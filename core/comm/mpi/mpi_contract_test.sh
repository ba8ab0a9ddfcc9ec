#!/usr/bin/env bash
# Runs the communicator contract on the system's MPI, with 2 to 4 ranks.
set -euo pipefail

program=core/comm/mpi/mpi_contract

launch() {
  local ranks=$1
  shift
  mpirun -np "$ranks" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
    "$program" "$@"
}

for ranks in 2 3 4; do
  launch "$ranks" one
done
launch 2 caller
launch 3 divided

# Ranks that passed a deadline leave without finalizing, which mpirun reports as a failure.
launch 2 late || true
for rank in 0 1; do
  grep -q passed "$TEST_TMPDIR/late-$rank"
done
