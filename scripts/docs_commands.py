"""What the test of the documentation's commands changes, skips and expects. Everything else runs as
it is printed. Each row has its reason."""

# (pattern, replacement, why). All that match are applied, in this order.
SUBSTITUTIONS = [
    # Names that stand for a file of the reader's.
    (r"results/runs/FILE\.h5|\bFILE\.h5|\bRUN\.h5", "run.h5", "a run of bench_allreduce"),
    (r"lockstep score run\.h5", "lockstep score stress.h5", "a run of stress"),
    (r"--flight-recorder (DIR/lifetime_1|DIR|/shared/dumps)", "--flight-recorder dumps",
     "exported from run.h5"),
    (r"flight-recorder --output-folder=DIR",
     "flight-recorder --output-folder=dumps_again", "a new folder"),
    (r"--output-folder=DIR\b", "--output-folder=of_a_budget", "a new folder"),
    (r"--output-folder=(packages|wheel)\b", r"--output-folder=$HOME/\1", "of the source tree"),
    (r"^tar |^lockstep-\*/", r"cd $HOME/packages && \g<0>", "where they were made"),
    (r"--nccl-library=FILE", "--nccl-library=$NCCL", "a stand-in of 2.28.9"),
    (r"localhost:28028", "$RAS", "a service that speaks as NCCL's does"),
    (r"^bazel-bin/", "$BUILT/", "a test program, which is not installed"),
    (r"^(LOCKSTEP_INTERFACE=)ib0", r"\1eth0", "of the hosts of a testbed"),
    (r"-np (\$N|16|64)\b", "-np 2", "ranks"),
    (r"mpirun (?=.*--hostfile)", "./on_hosts mpirun ", "two hosts on this machine"),
    (r"OLD/matrix\.json NEW/matrix\.json|before/matrix\.json after/matrix\.json",
     "results/matrix/matrix.json results/matrix/matrix.json", "what compat_matrix left"),
    (r"lockstep compare baseline/ night/launches", "lockstep compare old/ night/launches",
     "a folder of launches"),
    (r"\$N\b", "2", "the number of ranks"),
    (r"(lockstep status --watch=0.5)", r"timeout 3 \1 || [ $? = 124 ]", "until Ctrl-C"),
    # Sizes, where a command as printed takes minutes.
    (r"--prefix=\$HOME/\.local|scripts/package .*", r"\g<0> --built=$BUILT", "a test cannot build"),
    (r"(bench_(?:allreduce|broadcast|barrier)\b(?!.* -n ))(.*)", r"\1 -n 3 -w 1\2", "iterations"),
    (r"(bench_ddp_step\b)(.*)", r"\1 -n 2 -w 1\2", "iterations"),
    (r"-n 1000 -w 50", "-n 10 -w 1", "iterations"),
    (r"-np (?:4|8) bench_", "-np 3 bench_", "ranks"),
    (r"resnet50,bert_base", "resnet50", "the model"),
    (r"--model=bert_base --backend", "--model=resnet50 --backend", "the model"),
    (r"--bucket-cap-mb=[\d,]{5,}", "--bucket-cap-mb=5,25", "cases"),
    (r"-b 1M -e 256M", "-b 1M -e 4M", "sizes"),
    (r"--samples=100000?\b", "--samples=500", "samples"),
    (r"'isolation/\*'", "isolation/kill_mid_bucket", "scenarios"),
    (r"--scenario='\*'", "--scenario='uneven_inputs/case[12]'", "scenarios"),
    (r"--scenario='network/\*'", "--scenario=network/blackout", "scenarios"),
    (r"'custom_kernel/\*'", "'custom_kernel/buffer_reuse_*' --backend=gloo", "scenarios"),
    (r"--repeat=100", "--repeat=2", "repetitions"),
    (r"lockstep scoreboard(?! --)|lockstep scoreboard --ranks=2,4 --repeat=20",
     "lockstep scoreboard --ranks=2 --repeat=1 --healthy=1 --scenario=uneven_inputs/case2 "
     "--time-budget=60 --output-folder=trials", "launches"),
    (r"--launches=\d+", "--launches=1", "launches"),
    (r"--trials=1000000( --jobs=4)?", "--trials=50 --jobs=2", "trials"),
    (r"--trials=100\b", "--trials=2", "trials"),
    (r"--trials=20\b", "--trials=1", "trials"),
    (r"nightly --profile=\w+( --time-budget=20min)?", "nightly small_night.toml", "an hour"),
    (r"\$PREFIX/\S*/examples/(nightly|matrix)\.toml", r"small_\1.toml", "hosts, and minutes"),
    (r"matrix my\.toml", "matrix small_matrix.toml", "a plan of the reader's"),
    (r"--output-folder=before", "--output-folder=results/before", "a new folder"),
]

# (pattern of the command as printed, why it is not run).
SKIPPED = [
    (r"^lockstep (diagnose --ras|stress|compare)$|^mpirun --allow-run-as-root$|^mpirun .*_idle 1$",
     "no whole command"),
    (r"^scripts/(quickstart|test|test_packages|soak|sanitize|benchmarks)\b",
     "builds and tests everything"),
    (r"^bazel ", "Bazel within a test"),
    (r"^scripts/node_deaths", "hosts see the same folder only outside a test (node_deaths_test)"),
    (r"--backend=nccl.* -e|--backend=nccl .*--(nccl-library|scenario)", "a GPU"),
    (r"^(srun|salloc|sbatch|scripts/test_slurm)", "Slurm (test_slurm_test)"),
    (r"scripts/install_packages|--mpi=mpich|mpiexec\.mpich|scripts/test_mpich", "MPICH"),
    (r"torchrun", "PyTorch on GPUs"),
    (r"^apt-get install", "root, and another system (bare_root_test)"),
    (r"scripts/compare_sampler", "PyTorch"),
    (r"--nccl-wheels", "a network"),
    (r"^pip ", "a network (wheel_install_test)"),
    (r"scripts/(compare_with_osu|check_coverage)", "its programs are built by hand"),
]

# (pattern of the command as printed, exit codes, why not 0).
CODES = [
    (r"^lockstep doctor", (0, 1), "this machine may have a problem"),
    (r"^lockstep compare", (0, 3, 5), "launches of one build, few of them"),
    (r"^lockstep run", (0, 3), "one launch a side decides nothing"),
    (r"^lockstep trend", (0, 3), "one night says nothing"),
    (r"lockstep matrix (\$PREFIX|my.toml)", (3,), "one launch a configuration decides nothing"),
    (r"bench_links", (0, 3, 77), "no link between hosts"),
    (r"trace-ddp", (0, 1), "its example waits for ever, which is what is shown"),
    (r"lockstep diagnose", (0, 3), "a run that is well: there is nothing to tell"),
    (r"bench_ddp_step", (0, 3), "out of time where a busy machine is too slow"),
    (r"isolation/|testbed.*=mpi", (0, 1, 77), "mpirun's own code, when a rank of MPI is lost"),
    (r"testbed|test_hosts|node_deaths|hostfile", (0, 77), "77: no namespaces are permitted here"),
]
