#!/usr/bin/env bash
# copy_bandwidth refuses what it can't do in one line; with a GPU it fails a slow all-reduce.
set -uo pipefail
program=core/device/cuda/copy_bandwidth

# expect CODE WORDS ARGUMENT...
expect() {
  local code=$1 words=$2 said
  shift 2
  said="$("$program" "$@" 2>&1)"
  local got=$?
  if ((got != code)) || [[ "$said" != *"$words"* ]]; then
    echo "copy_bandwidth $*: exit code $got, expected $code; '$said' should contain '$words'"
    exit 1
  fi
}

expect 2 "both positive numbers" 5
expect 2 "both positive numbers" 0 8
expect 2 "both positive numbers" 7 soon
if [[ -e /dev/nvidiactl ]]; then
  expect 1 "FAIL: less than 90 %" 1e12 1
else
  expect 4 "no CUDA device: "
fi
echo passed
