#!/bin/bash
# The contract with a process a rank. Arguments: the test, the ranks, and the library (none: the
# installed one; without a GPU that is nothing to test with, and the test says so).
set -u
test_program=$1 ranks=$2 library=${3:-}
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/nccl_process_test.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export LOCKSTEP_TEST_MEETING=$folder TMPDIR=$folder LOCKSTEP_RANKS_PER_GPU=$ranks
if [ -n "$library" ]; then
  LOCKSTEP_NCCL_LIBRARY=$(realpath "$library")
  export LOCKSTEP_NCCL_LIBRARY
elif [ ! -e /dev/nvidiactl ]; then
  echo "skipped: this machine has no NVIDIA driver"
  exit 0
fi
root=()
[ "$(id -u)" = 0 ] && root=(--allow-run-as-root)
timeout 280 mpirun "${root[@]}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
  -np "$ranks" "$test_program"
