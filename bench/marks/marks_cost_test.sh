#!/usr/bin/env bash
# marks_cost refuses what it can't do in one line.
set -uo pipefail
program=bench/marks/marks_cost

# expect CODE WORDS ARGUMENT...
expect() {
  local code=$1 words=$2 said
  shift 2
  said="$("$program" "$@" 2>&1)"
  local got=$?
  if ((got != code)) || [[ "$said" != *"$words"* ]] || (($(wc -l <<<"$said") != 1)); then
    echo "marks_cost $*: exit code $got, expected $code; '$said' should be a line with '$words'"
    exit 1
  fi
}

export TMPDIR="$TEST_TMPDIR"
expect 2 "the seconds of a size" soon
expect 2 "the seconds of a size" 1 2
OMPI_COMM_WORLD_SIZE=2 expect 2 "LOCKSTEP_TEST_MEETING"
LOCKSTEP_NCCL_LIBRARY=/nonexistent expect 4 "/nonexistent"
LOCKSTEP_NCCL_LIBRARY="$PWD/core/comm/nccl/testing/libfake_nccl_22809.so" expect 4 "stand-in"
echo passed
