#!/usr/bin/env bash
# scripts/gpu_check refuses what it can't do in one line.
set -uo pipefail

# expect CODE WORDS COMMAND...
expect() {
  local code=$1 words=$2 said
  shift 2
  said="$("$@" 2>&1)"
  local got=$?
  if ((got != code)) || [[ "$said" != *"$words"* ]] || (($(wc -l <<<"$said") != 1)); then
    echo "'$*': exit code $got, expected $code; '$said' should be one line with '$words'"
    exit 1
  fi
}

expect 2 "unknown argument '--what'" scripts/gpu_check --what
expect 2 "scripts/gpu_check --pack=DIR" scripts/gpu_check --ranks=2
# A copy without a GPU: the first program says so.
copy="$TEST_TMPDIR/copy"
mkdir -p "$copy/bin" "$copy/tests"
cp scripts/gpu_check "$copy/"
printf '#!/bin/sh\nexit 0\n' >"$copy/bin/stress"
printf '#!/bin/sh\necho "nothing PASSED here is none"; exit 0\n' >"$copy/tests/device_count_test"
chmod +x "$copy/bin/stress" "$copy/tests/device_count_test"
if [[ ! -e /dev/nvidiactl ]]; then
  expect 4 "no CUDA device" "$copy/gpu_check" --out="$TEST_TMPDIR/out"
fi
echo passed
