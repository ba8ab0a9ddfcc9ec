"""Where the figures in the documentation come from.

A page says `<!--=NAME-->20<!--/-->`. What stands between the two marks is written by
`bazel run //scripts:docs_test -- --write`, and docs_figures_test.py holds it: the sentence around
it is free. A source `help:PROGRAM` is what the program says of itself (docs/options.md).
"""
import glob
import os
import re

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "datasets/README.md", "results/schema.md",
         *sorted(glob.glob("docs/*.md", root_dir=TREE)),
         *sorted(glob.glob("docs/design/*.md", root_dir=TREE)),
         *sorted(glob.glob("stress/*.md", root_dir=TREE)),
         *sorted(glob.glob("results/*/README.md", root_dir=TREE)),
         *sorted(glob.glob("scripts/*/README.md", root_dir=TREE))]
# Written by docs_test.py, of what programs say of themselves.
OPTIONS = "docs/options.md"
WORDS = "docs/option_words.md"
SPAN = re.compile(r"<!--=(\w+)-->(.*?)<!--/-->", re.DOTALL)

_HEADLINE = r"^> PASS: (\d+) of \d+ faults found[\s\S]*?(\d+) false alarms in (\d+) healthy"
_LOADING = (r"samples = {{(\d+)}}[\s\S]*batch = (\d+)[\s\S]*epochs = (\d+)[\s\S]*"
            r"workers = (\d+)[\s\S]*decode_passes = (\d+)[\s\S]*slow_down = {{(\d+)}}")
_RACE = (r"rounds = (\d+)[\s\S]*count = (\d+)[\s\S]*work_us = (\d+)[\s\S]*host_us = (\d+)")
_LIMITS = (r"kLeastSlowSeconds = 0\.00(\d);\s*constexpr double kTimesUsual = (\d);\s*"
           r"constexpr double kTimesSpread = (\d);")
_AGAIN = r"kRetransmitsOfLoss = (\d);\s*constexpr double kLossyShare = 0\.0(\d);"
_FEWEST = (r"FewestToDecide\(1\), (\d)u[\s\S]*FewestToDecide\(2\), (\d)u[\s\S]*"
           r"FewestToDecide\(100\), (\d)u")
_DELAYS = (r"delays\.back\(\), factor > 1\.05 \? (\d)u"
           r"[\s\S]*9 / 10\], factor > 1\.05 \? 1u : (\d)u")
_PROFILES = (r'"quick": _Profile\((\d+) \* _MINUTE[\s\S]*"standard": _Profile\((\d+) \* _HOUR'
             r'[\s\S]*"full": _Profile\((\d+) \* _HOUR')

# Sources that more than one figure has.
_COMPARE_H = "results/compare/compare.h"
_FAULT_KEYS = "stress/faults/fault_registry.cc"
_HOSTS = "results/reference/hosts.md"
_LIBRARY = "core/comm/nccl/library.cc"
_NIGHTS = "core/stats/change_points_test.cc"
_PLAN = "scripts/qualification/plan.py"
_ROUNDS = "bench/measure/rounds.cc"
_SCORES = "results/reference/scoreboard.md"
_SLOW = "core/verdict/links/slow_link.cc"
_TIDY = "scripts/tidy/rules.py"

# {name: (source, pattern, how its groups are written)}; without the third: the first group.
FIGURES = {
    # Measuring.
    "broadcast_mib": ("core/ddp/coalesced_broadcast.h",
                      r"kBroadcastBucketBytes = (\d+) \* 1024 \* 1024"),
    "bucket_cap_mib": ("core/ddp/buckets.h", r"kDefaultBucketCapBytes = (\d+) \* 1024 \* 1024"),
    "least_budget_s": (_ROUNDS, r"kLeastBudgetSeconds = ([\d.]+);"),
    "sweep_s": (_ROUNDS, r"kSweepSeconds = ([\d.]+);"),
    "most_budget_s": (_ROUNDS, r"kMostBudgetSeconds = (\d+);"),
    "settled_mib": ("bench/collectives/collective_step.cc",
                    r"kMostSettledBytes = .*\{(\d+)\} << 20;"),
    "giant_ms": ("bench/measure/rounds.cc", r"kGiantNs = (\d+)'000'000"),
    "link_pass_s": ("bench/links/cases.cc", r"kBudgetSeconds = (\d+);"),
    "ping_bytes": ("bench/links/cases.h", r"kPingBytes = (\d+);"),
    "clock_exchange_ms": ("core/coordinator/clock_prober.cc", r"kExchangeSeconds = 0\.00(\d);"),
    "wander_ppm": ("core/stats/clock_fit.h", r"kWanderPpm = (\d+);"),
    # NCCL and GPUs.
    "nccl_oldest": ("core/comm/nccl/library.h", r"kOldestVersion = VersionCode\((\d+), (\d+),",
                    "{}.{}"),
    "nccl_newest": ("core/comm/nccl/library.h", r"kNewestTested = VersionCode\((\d+), (\d+),",
                    "{}.{}"),
    "nccl_register_since": (_LIBRARY, r"CommRegister, (\d+), (\d+), ", "{}.{}"),
    "nccl_float8_since": (_LIBRARY, r"kSinceFloat8 = VersionCode\((\d+), (\d+), (\d+)\)",
                          "{}.{}.{}"),
    "nccl_direct_since": ("core/comm/nccl/choices.cc",
                          r"version >= VersionCode\((\d+), (\d+), (\d+)\)", "{}.{}.{}"),
    "log_kib": ("core/agent/evidence.h", r"kMostLogBytes = (\d+) << 10"),
    "copy_percent": ("core/device/cuda/copy_bandwidth.cc", r"FAIL: less than (\d+) %"),
    "memory_at_rest": ("core/verdict/device_position.cc", r"kMemoryAtRestPercent = (\d+);"),
    # PyTorch.
    "torch_oldest": ("help:lockstep buckets", r"rules count \((\d\.\d), \d\.\d+ or \d\.\d"),
    "torch_newest": ("help:lockstep buckets", r"rules count \(\d\.\d, \d\.\d+ or (\d\.\d)"),
    "flight_oldest": ("core/flight/dump.h", r"\(versions (\d\.\d) to \d\.\d+;"),
    "flight_newest": ("core/flight/dump.h", r"\(versions \d\.\d to (\d\.\d+);"),
    "flight_deadline_s": ("core/flight/history.h", r"kFlightDeadlineSeconds = (\d+)"),
    "random_programs": ("scripts/torch_oracle/torch_compare_test.py",
                        r'"--programs",.*default=(\d+)'),
    # Verdicts.
    "event_bytes": ("core/journal/event.h", r"sizeof\(JournalEvent\) == (\d+)"),
    "quiet_ms": ("stress/harness/suite.cc", r"kQuietSeconds = 0\.0(\d);", "{}0"),
    "driver_s": ("core/agent/silence_watch.cc", r"kDriverSeconds = (\d+)"),
    "lost_s": ("core/control/heartbeat_monitor.h", r"kLostSeconds = (\d+)"),
    "meet_above": ("core/control/rendezvous/master.h", r"kAgents = {\"agents\", (\d+)"),
    "faults_found": (_SCORES, _HEADLINE),
    "false_alarms": (_SCORES, _HEADLINE, "{1}"),
    "healthy_runs": (_SCORES, _HEADLINE, "{2}"),
    "cause_right": (_SCORES, r"cause right in (\d+ of \d+)"),
    "proof_p50": (_SCORES, r"proved \d+ times, p50 ([\d.]+ ms)"),
    "proof_p99": (_SCORES, r"proved \d+ times, p50 [\d.]+ ms, p99 ([\d.]+ ms)"),
    "links_found": (_HOSTS, r"bad link was singled out (\d+ of \d+) times"),
    "links_accused": (_HOSTS, r"a good one never \((\d+ of \d+) clean runs"),
    "deaths_named": (_HOSTS, r"`scripts/node_deaths [^`]*`: (\d+ of \d+)"),
    "schema_version": ("results/store/run.h", r"kSchemaVersion = (\d+)"),
    # Stress.
    "leave_s": ("cli/launch.cc", r"kLeaveSeconds = (\d+)"),
    "replay_rounds": ("stress/scenario/scenario.h",
                      r"GraphReplayProgram \{[^}]* rounds = (\d+);"),
    "program_rounds": ("stress/scenario/scenario_script.cc", r"program\.rounds = (\d+)"),
    "load_samples": ("stress/scenario/loading.h", _LOADING),
    "load_batch": ("stress/scenario/loading.h", _LOADING, "{1}"),
    "load_epochs": ("stress/scenario/loading.h", _LOADING, "{2}"),
    "load_workers": ("stress/scenario/loading.h", _LOADING, "{3}"),
    "load_passes": ("stress/scenario/loading.h", _LOADING, "{4}"),
    "load_slow_down": ("stress/scenario/loading.h", _LOADING, "{5}"),
    "race_rounds": ("stress/scenario/scenario.h", _RACE),
    "race_count": ("stress/scenario/scenario.h", _RACE, "{1}"),
    "race_work_us": ("stress/scenario/scenario.h", _RACE, "{2}"),
    "race_host_us": ("stress/scenario/scenario.h", _RACE, "{3}"),
    "hog_processes": (_FAULT_KEYS, r'"processes", Unit::kNumber, (\d+)'),
    "throttle_share": (_FAULT_KEYS, r'"share", Unit::kNumber, ([\d.]+)'),
    "throttle_ms": ("core/agent/cpu_faults.cc", r"kPeriodNs = (\d+)'000'000"),
    "fd_left": (_FAULT_KEYS, r'"descriptors", Unit::kNumber, (\d+)'),
    "shm_mib": ("core/control/private_shm.h", r"kPrivateShmBytes = (\d+) << 20"),
    "retransmit_s": ("stress/links/link_rule.h", r"kRetransmitSeconds = ([\d.]+);"),
    "segment_bytes": ("stress/links/link_rule.h", r"kSegmentBytes = (\d+)"),
    "router_s": ("stress/network/wire_queue.cc", r"kRoomSeconds = ([\d.]+);"),
    "look_ms": ("core/verdict/tcp_socket.h", r"kLongestLookSeconds = 0\.00(\d);"),
    "slow_link_ms": (_SLOW, _LIMITS),
    "slow_link_times_usual": (_SLOW, _LIMITS, "{1}"),
    "slow_link_times_spread": (_SLOW, _LIMITS, "{2}"),
    "slow_link_again": (_SLOW, _AGAIN),
    "slow_link_again_percent": (_SLOW, _AGAIN, "{1}"),
    "slow_link_parts": (_SLOW, r"kWindows = (\d);"),
    "slow_link_portions": ("stress/links/socket_book.cc", r"kMostSteps = (\d+);"),
    "fuzz_ranks": ("stress/fuzz/trial.cc", r"kMostRanks = (\d)"),
    # Datasets.
    "shuffle_steps": ("datasets/sampler/shuffle_steps.h", r"2\.5 KB for ([\d,]+) steps"),
    "trace_from_world": ("datasets/sampler/sampler.cc", r"kTraceFromWorld = (\d+)"),
    "randperm_changed": ("help:lockstep sampler", r"from (\d+) samples on"),
    "trace_connect_s": ("cli/trace_ddp/gloo.cc", r"kConnectSeconds = (\d+);"),
    # Reports, comparisons, trends: the bounds of the last ones are held by tests.
    "page_traces": ("results/report/html/outcomes.py", r"_MOST_TRACES = (\d+)"),
    "min_effect": ("results/compare/min_effect.h", r"kDefault = 0\.0(\d+)"),
    "false_changes": (_COMPARE_H, r"kFalseChanges = 0\.0(\d+)"),
    "fewest_launches": (_COMPARE_H, r"kFewestLaunches = (\d+)"),
    "fewest_for_rank": (_COMPARE_H, r"kFewestForClearRanks = (\d+)"),
    "fewest_proved_1": ("results/compare/compare_test.cc", _FEWEST),
    "fewest_proved_2": ("results/compare/compare_test.cc", _FEWEST, "{1}"),
    "fewest_proved_100": ("results/compare/compare_test.cc", _FEWEST, "{2}"),
    "compare_drift": ("help:lockstep compare", r"--launch-drift PERCENT=(\d+)%"),
    "floor_effect": ("results/compare/environment.cc", r"kFloorEffect = 0\.0(\d)"),
    "fewest_nights": ("core/stats/change_points.h", r"kFewestNights = (\d+)"),
    "recent_nights": ("help:lockstep trend", r"--recent .*=(\d+)"),
    "peer_effect": ("help:lockstep trend", r"--peer-effect PERCENT=(\d+)%"),
    "trend_histories": (_NIGHTS, r"kSeries = (\d+)"),
    "trend_nights": (_NIGHTS, r"kNights = (\d+)"),
    "trend_noise": (_NIGHTS, r"\"noise (\d) %\""),
    "trend_bad": (_NIGHTS, r"\"(\d) % bad nights\""),
    "trend_large": (_NIGHTS, r"factor : {1\.(\d+), 1\.03}"),
    "trend_small": (_NIGHTS, r"factor : {1\.10, 1\.0(\d)}"),
    "trend_small_found": (_NIGHTS, r"small_found, 0\.(\d+) \* score"),
    "trend_false": (_NIGHTS, r"score\.false_points, (\d)\)"),
    "trend_delay_large": (_NIGHTS, _DELAYS),
    "trend_delay_small": (_NIGHTS, _DELAYS, "{1}"),
    "false_quiet": (_NIGHTS, r"kQuiet = .*(\d)}"),
    "false_bad": (_NIGHTS, r"kBadNights = .*(\d)}"),
    "false_correlated": (_NIGHTS, r"kCorrelated = .*(\d)}"),
    "false_modes": (_NIGHTS, r"kModes = .*(\d)}"),
    # Nightly.
    "quick_min": ("scripts/qualification/profiles.py", _PROFILES),
    "standard_h": ("scripts/qualification/profiles.py", _PROFILES, "{1}"),
    "full_h": ("scripts/qualification/profiles.py", _PROFILES, "{2}"),
    "profile_fill": ("scripts/qualification/profiles.py", r"_FILL = 0\.(\d+)"),
    "nightly_ranks": (_PLAN, r'"ranks", (\d+)\)'),
    "nightly_deadline_s": (_PLAN, r'"timeout", (\d+)\)'),
    # Watching.
    "stopped_s": ("watch/run/job.cc", r"kStoppedNs = (\d+)'000'000'000;"),
    "term_s": ("watch/run/watch.cc", r"kTermSeconds = ([\d.]+);"),
    "watch_look_ms": ("watch/run/watch.cc", r"kLookMs = (\d+);"),
    "traced_calls": ("watch/run/job.cc", r"kTraced = (\d+);"),
    # Style.
    "columns": (_TIDY, r"MAX_COLUMNS = (\d+)"),
    "file_lines": (_TIDY, r"MAX_LINES = (\d+)"),
    "function_lines": (_TIDY, r"MAX_FUNCTION_LINES = (\d+)"),
    "complexity": (_TIDY, r"MAX_COMPLEXITY = (\d+)"),
    "opening_lines": (_TIDY, r"MAX_LINES_WITHOUT_OPENING = (\d+)"),
    "folder_files": (_TIDY, r"MAX_FOLDER_FILES = (\d+)"),
}


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def source(name):
    if not name.startswith("help:"):
        return read(name)
    return read(OPTIONS).split("\n## %s\n" % name[len("help:"):])[1].split("\n## ")[0]


def value(name):
    origin, pattern, form = (*FIGURES[name], "{}")[:3]
    found = re.search(pattern, source(origin), re.MULTILINE)
    assert found, "%s says it no longer: mend %s in scripts/docs_figures.py" % (origin, name)
    return form.format(*found.groups())


def filled(text):
    """The page with every figure as its source has it."""
    return SPAN.sub(lambda span: "<!--=%s-->%s<!--/-->" % (span[1], value(span[1])), text)
