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
expect 2 "--step-seconds=soon: give a whole number" scripts/gpu_check --step-seconds=soon
expect 2 "--time-budget=1m: give a whole number" scripts/gpu_check --time-budget=1m
expect 2 "scripts/gpu_check --pack=DIR" scripts/gpu_check --ranks=2
# A copy without a GPU: the first program says so.
copy="$TEST_TMPDIR/copy"
mkdir -p "$copy/bin" "$copy/tests"
cp scripts/gpu_check "$copy/"
printf '#!/bin/sh\nexit 0\n' >"$copy/bin/lockstep-stress"
printf '#!/bin/sh\necho "nothing PASSED here is none"; exit 0\n' >"$copy/tests/device_count_test"
chmod +x "$copy/bin/lockstep-stress" "$copy/tests/device_count_test"
if [[ ! -e /dev/nvidiactl ]]; then
  expect 4 "no CUDA device" "$copy/gpu_check" --out="$TEST_TMPDIR/out"
fi

mkdir -p "$copy/share/lockstep" && cp -RL stress/scenarios "$copy/share/lockstep/"
# All steps, with programs that say what they were called with, as if a stand-in were measured.
stub() { printf '#!/bin/bash\n%s\n' "$2" >"$copy/$1"; chmod +x "$copy/$1"; }
: >"$copy/tests/six_cases.py"
# shellcheck disable=SC2016
for name in bin/bench_broadcast tests/cuda_contract_test \
  tests/cuda_kernels_test tests/tests tests/net_plugin_test tests/nccl_process_contract; do
  stub "$name" 'echo "${0##*/} $*"'
done
# shellcheck disable=SC2016
stub bin/bench_ddp_step 'echo "${0##*/} $*"; [[ "$*" != *1000000* ]] && exit
echo "rank 1 is stopped, graph replay: bucket 0"; exit 1'
stub tests/device_count_test 'echo PASSED'
stub bin/bench_allreduce 'echo "{\"case\":1,\"summary\":{\"median_ns\":1.25e+3,\"x\":2}} $*"'
stub tests/copy_bandwidth '[[ "$*" == "1.25e+3 268435456" ]]'
# shellcheck disable=SC2016
stub tests/marks_cost '[[ -d $LOCKSTEP_TEST_MEETING ]] &&
echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, $LOCKSTEP_RANKS_PER_GPU share a GPU"'
# The orders are not as expected, and the variable makes a difference.
# shellcheck disable=SC2016
stub bin/lockstep-stress 'echo "lockstep-stress $*"
[[ -n ${LOCKSTEP_SCENARIOS:-} ]] && grep -h "rounds = " "$LOCKSTEP_SCENARIOS"/custom_kernel/*
[[ "$*" != *nccl/\**order* ]]'
# shellcheck disable=SC2016
stub bin/lockstep 'echo "lockstep $*"
case_of() { printf "{\"name\":\"$1\",\"judgement\":{\"verdict\":\"$2\",\"outcomes\":["
printf "{\"rank\":0,\"outcome\":\"$3\"},{\"rank\":1,\"outcome\":\"$4\"}]}}\n"; }
case_of nccl/order_inversion pass hung hung
case_of nccl/order_inversion_implicit fail finished hung'
# shellcheck disable=SC2016
runs='while [[ "$1" == --* ]]; do shift; done; exec "$@"'
stub bin/compute-sanitizer "$runs"
out="$TEST_TMPDIR/all"
export LOCKSTEP_GPU_CHECK_SECONDS=0
run() {
  "$copy/gpu_check" --ranks=2 --nccl-library=/stand-in/fake_nccl.so --out="$out" "$@" 2>&1
}
said="$(run)" || { echo "gpu_check with stubs failed: $said"; exit 1; }
for words in "marks_cost .*exit   0" "copy_bandwidth .*exit   0" "graphs .*exit   0" \
  "six_cases .*exit   0" "sanitizer_scenarios .*exit   0" "sanitizer_races .*exit   0" \
  "launch_order .*exit   0" "allreduce_graph_2 .*exit   0" \
  "replay_stopped .*exit   0" "ddp_step_graph_2 .*exit   0" "ddp_step_matmul_2 .*exit   0" \
  "^0 steps failed"; do
  grep -q "$words" "$out/summary.txt" || { echo "no '$words' in: $said"; exit 1; }
done
# Beside each other they are the same steps.
steps_of() { grep -o '^[a-z]*[a-z0-9_]*  ' "$out/summary.txt" | sort; }
one_by_one="$(steps_of)"
said="$(run --jobs=3)" || { echo "gpu_check --jobs=3 failed: $said"; exit 1; }
[[ -n "$one_by_one" && "$(steps_of)" == "$one_by_one" ]] || { echo "other steps: $said"; exit 1; }
grep -q "observed: exit code 1" "$out/launch_order.txt" || { echo "no observation"; exit 1; }
for words in "order_inversion  *hung hung  *finished hung (NOT AS PREDICTED)" \
  "news: the variable changes what becomes of order_inversion: 'hung hung' without" \
  "same_order  *not run  *not run"; do
  grep -q "$words" "$out/launch_order.txt" || { cat "$out/launch_order.txt"; exit 1; }
done
grep -q "rank 1 of 2, 2 share a GPU" "$out/marks_cost_shared.txt" ||
  { echo "no marks"; exit 1; }
grep -q -- "--cuda-graph=0,1" "$out/ddp_step_graph_2.txt" || { echo "no graph of a step"; exit 1; }
grep -q -- "--cuda-graph --model=" "$out/buckets_graph_2.txt" || { echo "no graph"; exit 1; }
grep -q -- "--compute=matmul" "$out/ddp_step_matmul_2.txt" || { echo "no products"; exit 1; }
# NVIDIA's checker finds something in what is healthy: two steps fail, and the races do not count.
grep -q "lockstep-stress .*models/two_branch_unused" "$out/sanitizer_scenarios.txt" ||
  { echo "no healthy scenarios"; cat "$out/sanitizer_scenarios.txt"; exit 1; }
grep -q "finds in races: exit code" "$out/sanitizer_races.txt" || { echo "no races"; exit 1; }
stub bin/compute-sanitizer '[[ "$*" != *lockstep-stress* ]] || exit 9'
said="$(run)" && { echo "what the checker finds passed"; exit 1; }
grep -q "^1 steps failed" <<<"$said" || { echo "what the checker finds: $said"; exit 1; }
stub bin/compute-sanitizer "$runs"
# An NCCL inside a Python package is tried, too.
mkdir -p "$TEST_TMPDIR/packages/nvidia/nccl/lib"
touch "$TEST_TMPDIR/packages/nvidia/nccl/lib/libnccl.so.2"
said="$(LOCKSTEP_GPU_CHECK_PACKAGES="$TEST_TMPDIR/packages" run)" || { echo "$said"; exit 1; }
grep -q -- "--nccl-library=$TEST_TMPDIR/packages/nvidia/nccl/lib/libnccl.so.2" \
  "$out/package1_stress.txt" || { echo "no package: $said"; exit 1; }
# Long races are as long as is expected of them.
if grep "[^_]rounds = " "$out/races_long.txt" | grep -qv "rounds = 1000" ||
  ! grep -q "corrupt_rounds = 0.*, rounds = 1000 }" "$out/races_long.txt"; then
  cat "$out/races_long.txt"
  exit 1
fi
# A choice of none is a mistake.
chosen() { "$copy/gpu_check" --nccl-library=/stand-in/fake_nccl.so --out="$out" --steps="$1" 2>&1; }
for words in what "("; do
  said="$(chosen "$words")"
  if (($? != 2)) || [[ "$said" != *"--steps=$words: no step has such a name"* ]]; then
    echo "no step was chosen: $said"
    exit 1
  fi
done
# Too slow: one step failed.
stub tests/copy_bandwidth 'exit 1'
said="$(run)" && { echo "a slow copy passed"; exit 1; }
grep -q "^1 steps failed" <<<"$said" || { echo "a slow copy: $said"; exit 1; }
# What marks cost cannot be measured, of one rank and of two.
stub tests/copy_bandwidth 'exit 0'
stub tests/marks_cost 'exit 1'
said="$(run)" && { echo "a failed measurement passed"; exit 1; }
grep -q "^2 steps failed" <<<"$said" || { echo "a failed measurement: $said"; exit 1; }
# Without time none is run.
said="$(run --time-budget=0)"
if (($? != 3)) || ! grep -q "^0 steps failed, $(wc -l <<<"$one_by_one") not run$" <<<"$said"; then
  echo "without time: $said"
  exit 1
fi
echo passed
