"""The benchmarks: a program, and the folder of its kind."""

PROGRAMS = {
    "bench_allgather": "collectives",
    "bench_allreduce": "collectives",
    "bench_barrier": "collectives",
    "bench_broadcast": "collectives",
    "bench_ddp_step": "ddp_step",
    "bench_links": "links",
    "bench_reduce_scatter": "collectives",
    "bench_sendrecv": "sendrecv",
    "bench_sharding": "loading",
}
