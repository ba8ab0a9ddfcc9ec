"""Where the figures in the documentation come from.

A claim: (page, pattern, source, pattern): the groups of the two patterns are the same numbers.
`help:PROGRAM` is what the program says of itself, as docs/options.md has it.
"""

_HELP_SIZES = r"-b,.*TEXT=(\S+)[\s\S]*?-e,.*TEXT=(\S+)[\s\S]*?-f,.*TEXT=(\S+)"
_VERSION = r"VersionCode\((\d+), (\d+), "
_LOST = ("core/launch/vigil.h", r"kLostSeconds = (\d+)")
_PROFILES = "scripts/qualification/profiles.py"
_BUDGETS = (r'"quick": _Profile\((\d+) \* _MINUTE[\s\S]*"standard": _Profile\((\d+) \* _HOUR'
            r'[\s\S]*"full": _Profile\((\d+) \* _HOUR')
_PLAN = "scripts/qualification/plan.py"

CLAIMS = [
    # Options of benchmarks.
    ("README.md", r"`-b -e -f -i` .*\| (\S+), (\S+), factor (\S+) \|", "help:bench_allreduce",
     _HELP_SIZES),
    ("README.md", r"# (8) B to (64) MiB, each size until \+-(5) %", "help:bench_allreduce",
     r"-b,.*TEXT=(8)\s[\s\S]*?-e,.*TEXT=(64)M[\s\S]*?--precision TEXT=0\.0(5)"),
    ("README.md", r"marks cost at (\d) B less than (\d) % and from (\d) MiB nothing\s+measurable",
     "bench/marks/marks_cost.cc", r"kLimits\[\] = {{(\d), 0\.0(\d)}, {(\d) << 20, 0}"),
    ("README.md", r"with NCCL from (\d+)\.(\d+)\.(\d+) and on Hopper", "core/comm/nccl/library.cc",
     r"kSinceFloat8 = VersionCode\((\d+), (\d+), (\d+)\)"),
    ("README.md", r"`-r` \| root rank \| (\d+)", "help:bench_allreduce", r"--root TEXT=(\d+)"),
    ("README.md", r"`-n -w` .*rounds; (\d+) \|", "help:bench_allreduce",
     r"with -n \(default (\d+)\)"),
    ("README.md", r"`-z` .*\| (\d) \|", "help:bench_allreduce",
     r"--blocking TEXT\s+(\d): the library's blocking call \(default\)"),
    ("README.md", r"`--precision` .*\| (\S+) \|", "help:bench_allreduce",
     r"--precision TEXT=(\S+)"),
    ("README.md", r"`--drift` .*\| (\S+) \|", "help:bench_allreduce", r"--drift TEXT=(\S+)"),
    ("README.md", r"`--time-budget` .*\| (\d+) s, more", "help:bench_allreduce",
     r"default: (\d+) s, more"),
    ("README.md", r"`-T` .*\| (\d+)s \|", "help:bench_allreduce", r"--timeout TEXT=(\d+)"),
    ("README.md", r"`--seed` .*\| (\d+) \|", "help:bench_allreduce", r"--seed TEXT=(\d+)"),
    ("README.md", r"`--samples` .*\| (\d+) \|", "help:bench_sharding", r"--samples TEXT=(\d+)"),
    ("README.md", r"`--batch --workers --decode-passes` .*\| (\d+), (\d+), (\d+) \|",
     "help:bench_sharding",
     r"--batch TEXT=(\d+)[\s\S]*--workers TEXT=(\d+)[\s\S]*--decode-passes TEXT=(\d+)"),
    ("README.md", r"`--slow-down --slow-rank` .*\| none, (\d+) \|", "help:bench_sharding",
     r"--slow-rank TEXT=(\d+)"),
    ("README.md", r"`--set-epoch --drop-last --weighted` .*\| (\d), (\d), (\d) \|",
     "help:bench_sharding", r"--set-epoch.*(\d) \(default\)[\s\S]*--drop-last.*(\d) \(default\)"
     r"[\s\S]*--weighted.*(\d) \(default\)"),
    ("README.md", r"`--bucket-cap-mb` .*\| (\d+), the first bucket 1 \|", "core/ddp/buckets.h",
     r"kDefaultFirstBucketBytes = 1024 \* 1024;\s*inline constexpr std::int64_t "
     r"kDefaultBucketCapBytes = (\d+) \* 1024 \* 1024"),
    ("README.md", r"`--broadcast-buffers` .*\| (\d) \|", "help:bench_ddp_step",
     r"--broadcast-buffers[^-]*?(\d) \(default\)"),
    ("README.md", r"`--find-unused`, `--static-graph` .*\| (\d) \|", "help:bench_ddp_step",
     r"--find-unused.*(\d) \(default\)"),
    ("README.md", r"`--accumulate` .*\| (\d) \|", "help:bench_ddp_step",
     r"--accumulate.*default (\d)"),
    ("README.md", r"`--cuda-graph` .*\| (\d) \|", "help:bench_ddp_step",
     r"--cuda-graph TEXT=.*: (\d) \(default"),
    ("README.md", r"coalesced a type and (\d+) MiB", "core/ddp/coalesced_broadcast.h",
     r"kBroadcastBucketBytes = (\d+) \* 1024 \* 1024"),
    ("README.md", r"`--bytes` .*\| (\d+)M \|", "help:bench_links", r"--bytes TEXT=(\d+)M"),
    ("README.md", r"`--all-at-once` .*\| (\d) \|", "help:bench_links",
     r"--all-at-once TEXT\s+(\d) \(default"),
    ("README.md", r"`--slow-factor` .*\| (\S+) \|", "help:bench_links",
     r"--slow-factor TEXT=(\S+)"),
    ("README.md", r"A pass takes (\d+) s", "core/plan/expand_links.cc", r"kBudgetSeconds = (\d+);"),
    ("README.md", r"reach (\d+) % of what `cudaMemcpy`", "core/device/cuda/copy_bandwidth.cc",
     r"FAIL: less than (\d+) %"),
    ("README.md", r"half round trip of (\d+) bytes", "core/plan/plan.h", r"kPingBytes = (\d+);"),
    ("docs/measuring.md", r"probes a host, at most (\d) ms", "core/launch/fleet_clocks.cc",
     r"kExchangeSeconds = 0\.00(\d);"),
    ("stress/README.md", r"`graph_replay` .*`rounds` \((\d+)\)", "core/plan/graph_replay.h",
     r"rounds = (\d+);"),
    ("stress/README.md", r"would not keep \(([\d.]+) s\)", "stress/links/wire_queue.cc",
     r"kRoomSeconds = ([\d.]+);"),
    ("docs/measuring.md", r"more than (\d+) ppm from its mean", "core/stats/clock_fit.h",
     r"kWanderPpm = (\d+);"),
    ("README.md", r"its last (\d+) KiB in the result", "core/launch/worker_log.h",
     r"kMostLogBytes = (\d+) << 10"),
    ("docs/verdicts.md", r"with memory at (\d+) % or less", "core/verdict/device_position.cc",
     r"kMemoryAtRestPercent = (\d+);"),
    # Versions.
    ("README.md", r"under test, (\d+)\.(\d+) to (\d+)\.(\d+): one binary",
     "core/comm/nccl/library.h", "kOldestVersion = " + _VERSION +
     r"[\s\S]*kNewestTested = " + _VERSION),
    ("README.md", r"when they are first used \(from (\d)\.(\d+)\)", "core/comm/nccl/library.cc",
     r"CommRegister, (\d+), (\d+), "),
    ("README.md", r"exact to PyTorch \((\d\.\d) to (\d\.\d)", "help:lockstep buckets",
     r"PyTorch whose rules count: (\d\.\d), \d\.\d+ or (\d\.\d)"),
    ("README.md", r"formats (\d\.\d) to (\d\.\d+), of NCCL", "core/flight/dump.h",
     r"\(versions (\d\.\d) to (\d\.\d+);"),
    ("README.md", r"`--deadline` \((\d+) s\)", "scripts/lockstep/diagnose_flight.h",
     r"deadline_seconds = (\d+)"),
    ("results/schema.md", r"## Schema (\d+)\n", "results/store/run.h", r"kSchemaVersion = (\d+)"),
    ("results/schema.md", r"`schema_version` \| i32 \| \| (\d+) \|", "results/store/run.h",
     r"kSchemaVersion = (\d+)"),
    # Tests.
    ("README.md", r"On (\d+) random programs", "scripts/torch_oracle/torch_compare_test.py",
     r'"--programs",.*default=(\d+)'),
    # Nightly.
    ("README.md", r"--profile=quick .*# (\d+) minutes; standard: (\d+) h, full: (\d+) h", _PROFILES,
     _BUDGETS),
    ("scripts/qualification/README.md", r"`quick` \((\d+) min\), `standard` \((\d+) h\), "
     r"`full` \((\d+) h\)", _PROFILES,
     _BUDGETS),
    ("scripts/qualification/README.md", r"fills (\d+) % of its budget",
     _PROFILES, r"_FILL = 0\.(\d+)"),
    ("scripts/qualification/README.md", r"`ranks`, `backends` .*\| (\d+), ", _PLAN,
     r'"ranks", (\d+)\)'),
    ("scripts/qualification/README.md", r"that are a hang \| (\d+) \|", _PLAN,
     r'"deadline", (\d+)\)'),
    # Compare and trend.
    ("results/compare/README.md", r"the minimum effect \((\d+) %, `--min-effect`\)",
     "results/compare/min_effect.h", r"kDefault = 0\.0(\d+)"),
    ("results/compare/README.md", r"Hochberg, (\d+) % both ways", "results/compare/compare.h",
     r"kFalseChanges = 0\.0(\d+)"),
    ("results/compare/README.md", r"fewer than (\d+) a side never do", "results/compare/compare.h",
     r"kFewestLaunches = (\d+)"),
    ("results/compare/README.md", r"meanwhile, (\d+) % unless `--drift`", "help:lockstep compare",
     r"--drift TEXT=(\d+)%"),
    ("results/compare/README.md", r"takes (\d+) launches a side at least",
     "results/compare/compare.h", r"kFewestForClearRanks = (\d+)"),
    ("results/compare/README.md", r"Fewer than (\d+) nights say nothing",
     "core/stats/change_points.h", r"kFewestNights = (\d+)"),
    ("results/compare/README.md", r"`--peer-effect` \((\d+) %\)", "help:lockstep trend",
     r"--peer-effect TEXT=(\d+)%"),
    ("results/compare/README.md", r"last `--recent` nights \((\d+)\)", "help:lockstep trend",
     r"--recent .*\]=(\d+)"),
    ("results/compare/README.md", r"no case has (\d+) nights", "core/stats/change_points.h",
     r"kFewestNights = (\d+)"),
    # Style.
    ("docs/contributing.md", r"(\d+) columns, files up to (\d+) lines, functions up to\s(\d+)",
     "scripts/tidy/rules.py",
     r"(?=[\s\S]*MAX_COLUMNS = (\d+))(?=[\s\S]*MAX_LINES = (\d+))"
     r"[\s\S]*MAX_FUNCTION_LINES = (\d+)"),
    # Stress.
    ("stress/README.md", r"nothing is proved before \| (\d+) s \|", "help:stress",
     r"--timeout TEXT=(\d+)"),
    ("stress/README.md", r"beyond it the case is `unknown` \| (\d+) s \|", "help:stress",
     r"--limit TEXT=(\d+)"),
    ("stress/README.md", r"with seeds one apart \| (\d), (\d) \|", "help:stress",
     r"--seed TEXT=(\d)[\s\S]*--repeat TEXT=(\d)"),
    ("stress/README.md", r"ends such an mpirun after (\d+) s", "scripts/lockstep/stress_launch.cc",
     r"kLeaveSeconds = (\d+)"),
    ("stress/README.md", r"`groups` .*`rounds` \((\d+)\)", "core/plan/scenario_script.cc",
     r"program\.rounds = (\d+)"),
    ("stress/README.md", r"`all_reduce_loop`, .*`rounds` \((\d+)\)",
     "core/plan/scenario_script.cc", r"program\.rounds = (\d+)"),
    ("stress/README.md", r"`samples` \((\d+); .*`batch` \((\d+)\), `epochs` \((\d+)\), `workers` "
     r"\((\d+)\), `decode_passes` \((\d+)\), `slow_down` \((\d+), ", "core/plan/loading.h",
     r"samples = {{(\d+)}}[\s\S]*batch = (\d+)[\s\S]*epochs = (\d+)[\s\S]*workers = (\d+)[\s\S]*"
     r"decode_passes = (\d+)[\s\S]*slow_down = {{(\d+)}}"),
    ("stress/README.md", r"`stream_race` .*`rounds` \((\d+)\), `count` \((\d+) f32\), `work_us` "
     r"\((\d+)\), `host_us` \((\d+)\)", "core/plan/stream_race.h",
     r"rounds = (\d+)[\s\S]*count = (\d+)[\s\S]*work_us = (\d+)[\s\S]*host_us = (\d+)"),
    ("stress/README.md", r"`processes` \((\d+)\)", "core/plan/scenario_fault.cc",
     r'"processes", Unit::kNumber, (\d+)'),
    ("stress/README.md", r"`share` \(([\d.]+)\)", "core/plan/scenario_fault.cc",
     r'"share", Unit::kNumber, ([\d.]+)'),
    ("stress/README.md", r"`descriptors` \((\d+)\)", "core/plan/scenario_fault.cc",
     r'"descriptors", Unit::kNumber, (\d+)'),
    ("stress/README.md", r"in slices of (\d+) ms", "core/launch/agent_faults_cpu.cc",
     r"kPeriodNs = (\d+)'000'000"),
    ("stress/README.md", r"a `/dev/shm` of (\d+) MiB", "core/launch/private_shm.h",
     r"kPrivateShmBytes = (\d+) << 20"),
    ("stress/README.md", r"segments \(of (\d+) bytes\)", "stress/links/link_rule.h",
     r"kSegmentBytes = (\d+)"),
    ("stress/README.md", r"a look of more than (\d) ms is dropped", "stress/links/socket_book.h",
     r"kLongestLookSeconds = 0\.00(\d);"),
    ("stress/README.md", r"four limits: (\d) ms, (\d) times\s+the usual, (\d) times the spread",
     "core/verdict/slow_link.cc", r"kLeastSlowSeconds = 0\.00(\d);\s*constexpr double "
     r"kTimesUsual = (\d);\s*constexpr double kTimesSpread = (\d);"),
    ("stress/README.md", r"kernel sent (\d) segments\s+and (\d) % of all again",
     "core/verdict/slow_link.cc", r"kRetransmitsOfLoss = (\d);\s*constexpr double kLossyShare = "
     r"0\.0(\d);"),
    ("stress/README.md", r"newest portions \((\d+) at most", "stress/links/socket_book.cc",
     r"kMostSteps = (\d+);"),
    ("stress/README.md", r", (\d) at least\) six show it", "core/verdict/slow_link.cc",
     r"kWindows = (\d);"),
    ("stress/README.md", r"did not have \(RFC (\d+)\)", "core/verdict/tcp_socket.h", r"RFC (\d+)"),
    ("ARCHITECTURE.md", r"writes a (\d+)-byte\s+event", "core/journal/event.h",
     r"sizeof\(JournalEvent\) == (\d+)"),
    ("results/schema.md", r"events of (\d+) bytes", "core/journal/event.h",
     r"sizeof\(JournalEvent\) == (\d+)"),
    ("ARCHITECTURE.md", r"more than (\d+) ms an iteration", "bench/harness/rounds.cc",
     r"kGiantNs = (\d+)'000'000"),
    ("ARCHITECTURE.md", r"nothing for (\d)0 ms;", "stress/stress.cc", r"kQuietSeconds = 0\.0(\d);"),
    ("stress/README.md", r"notice within (\d)0 ms",
     "stress/stress.cc", r"kQuietSeconds = 0\.0(\d);"),
    ("ARCHITECTURE.md", r"(\d+) columns; functions of 40 lines, files up to (\d+)",
     "scripts/tidy/rules.py", r"(?=[\s\S]*MAX_COLUMNS = (\d+))[\s\S]*MAX_LINES = (\d+)"),
    ("datasets/README.md", r"every ([\d,]+) steps", "datasets/sampler/shuffle_steps.h",
     r"2\.5 KB for ([\d,]+) steps"),
    ("datasets/README.md", r"fewer than (\d+) ranks the whole", "datasets/sampler/sampler.cc",
     r"kTraceFromWorld = (\d+)"),
    ("results/report/README.md", r"more than (\d+) such cases the first",
     "results/report/html/outcomes.py", r"_MOST_TRACES = (\d+)"),
    ("README.md", r"directly from (\d)\.(\d+)\.(\d) on", "core/comm/nccl/shared_gpu.cc",
     r"version >= VersionCode\((\d+), (\d+), (\d+)\)"),
    ("datasets/README.md", r"from n = (\d+) on", "help:lockstep sampler", r"from n = (\d+) on"),
    ("stress/README.md", r"programs \(2 to (\d) ranks", "stress/fuzz/trial.cc",
     r"kMostRanks = (\d)"),
    # Hosts that die.
    ("README.md", r"silence of (\d+) s \(`LOCKSTEP_LOST_SECONDS`\)", *_LOST),
    ("docs/cookbook.md", r"`LOCKSTEP_LOST_SECONDS` \((\d+); read", *_LOST),
    ("docs/troubleshooting.md", r"it said nothing for (\d+) s: suspended", *_LOST),
    # Comparisons: bounds that tests hold.
    ("results/compare/README.md", r"more than\s+(\d) %\.", "results/compare/environment.cc",
     r"kFloorEffect = 0\.0(\d)"),
    ("results/compare/README.md", r"(4) a side decide only", "results/compare/compare.h",
     r"kFewestLaunches = (\d)"),
    ("results/compare/README.md",
     r"(\d) a side are the fewest that ranks can prove for one case, (\d) "
     r"for two, (\d) for a hundred", "results/compare/compare_test.cc",
     r"FewestToDecide\(1\), (\d)u[\s\S]*FewestToDecide\(2\), (\d)u[\s\S]*"
     r"FewestToDecide\(100\), (\d)u"),
    ("results/compare/README.md",
     r"on (\d+) simulated histories of (\d+) nights \((\d) % of noise a "
     r"night; also with (\d) % bad", "core/stats/change_points_test.cc",
     r"(?=[\s\S]*kSeries = (\d+))(?=[\s\S]*kNights = (\d+))(?=[\s\S]*\"noise (\d) %\")[\s\S]*"
     r"\"(\d) % bad nights\""),
    ("results/compare/README.md", r"at least (\d+) % of\s+those of 3 %",
     "core/stats/change_points_test.cc", r"small_found, 0\.(\d+) \* score"),
    ("results/compare/README.md", r"with (\d) false one at most",
     "core/stats/change_points_test.cc",
     r"score\.false_points, (\d)\)"),
    ("results/compare/README.md", r"after (\d) nights at most, 3 %\s+after (\d) in nine of ten",
     "core/stats/change_points_test.cc",
     r"delays\.back\(\), factor > 1\.05 \? (\d)u[\s\S]*9 / 10\], factor > 1\.05 \? 1u : (\d)u"),
    ("results/compare/README.md",
     r"In (\d+) histories without a change false ones are at most (\d) "
     r"\(noise of 1 %\), (\d) \(bad\s+nights\), (\d) \(nights that are correlated\) and (\d) \(",
     "core/stats/change_points_test.cc",
     r"kSeries = (\d+)[\s\S]*kQuiet = .*(\d)}"
     r"[\s\S]*kBadNights = .*(\d)}[\s\S]*kCorrelated = .*(\d)}"
     r"[\s\S]*kModes = .*(\d)}"),
    ("scripts/qualification/README.md", r"`QUALIFIED` (\d); `NOT QUALIFIED` (\d), or (\d) when .*; "
     r"`INCONCLUSIVE` (\d)", "scripts/qualification/verdict.py",
     r"{QUALIFIED: (\d), NOT_QUALIFIED: (\d)(?=[\s\S]*SLOWER = (\d)), INCONCLUSIVE: (\d)"),
]

# Sentences about exit codes: their numbers are codes that the program knows.
EXIT_CODES = (r"[Ee]xit\s+codes?(?: is|:)?\s+\d[^.|]*|\(exit code \d[^)]*\)|NOT QUALIFIED \(1; 5"
              r"|INCONCLUSIVE \(3|mpirun itself reports 1")

# Numbers that are no figures of this program: parts of names, of definitions and of examples.
NAMES = [
    r"ResNet-50|GPT-2|Debian 12|MT19937|SC15|f32 x 1|OpenMetrics 1\.0",
    r"(?:Fearnhead and Rigaill|Matteson and James|Hoefler and Belli) \d{4}",
    r"(?:PyTorch|[Tt]orch|Open MPI|NCCL) \d+(?:\.\d+)+(?: (?:and|to) \d+(?:\.\d+)+)?|2\.1 or newer",
    r"MPICH \d(?:\.\d+)*|PMI-\d|Open MPI 4, 5|finds 1 rank|^\s*\(30 s\)|root other than 0",
    r"(?:, |RFC )\d{4}\)|Systems?\*, \d{4}\)|offset 0, error 0|exit code can be 1|\s\(0\) \|",
    r"GPU at 100 %|100 % utilization",
    r"(?:[Rr]anks?|iteration|bucket|night|case|item|element) \d+(?:(?:, | and | or )\d+)*",
    r"\b(?:95|99) %|99th percentile|2\(W-1|100 x floor|1 - exposed",
    r"^\|\s*\d+ .*?\|",  # the first column of a table that numbers its rows
    r"^\s*\d+\. ",
    r"change of 10 % and one of 3 %|changes of 10 %|those of 3 %|10 % is reported|2 in 70 at most",
    r"within 2 % takes about 10 launches a side that scatter by 1 %",  # a rule of thumb
    r"it waits 1 s, sends SIGTERM .* SIGKILL 1 s later; so there are\s+2 s to judge",
    r"waits for 200 ms, Linux's|in 4 bytes a sample|the first bucket 1 \||3 to 24 machines",
    r"so many ranks share a GPU .*\| 1 \|$",
    r">= 0|from 0|from 1|; 0 for none|\(0: the caller\)|\| 1; labels? |: 1 at the one given, 0 at "
    r"the others",
]

# Sections of which every figure is held by a test that reads the page.
TESTED = [
    ("results/compare/README.md", "How often it is wrong",
     "results/compare/compare_simulation_test.cc"),
    ("results/schema.md", "", "results/schema_test.py"),
]
