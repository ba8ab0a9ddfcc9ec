#!/usr/bin/env bash
# Every self-benchmark runs and none reports an error; their figures are for people.
set -euo pipefail

output="$(bench/self/self --benchmark_min_time=0.001 2>&1)"
for name in NowTicks JournalAppend/stamp:1 EnqueueOnRecordedNull PlainRead CheckRecv/bf16 \
  StoreWrite/memory StoreWrite/disk StoreRead JudgeStall; do
  if ! grep -q "^$name" <<<"$output"; then
    echo "$output"
    echo "no benchmark $name ran"
    exit 1
  fi
done
if grep -q ERROR <<<"$output"; then
  echo "$output"
  exit 1
fi
