"""Programs whose ranks end at a random moment. They know nothing of Lockstep. SIGUSR1 lets a rank
call exit(3) after its next step, SIGUSR2 _exit(4) where it is. Rank 0 says when steps begin. They
outlast a trial: a rank that is struck late is in its steps, too."""

C_PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t leave;
static void at_next_step(int number) { leave = number; }
static void at_once(int number) { _exit(number ? 4 : 5); }

int main(int argc, char** argv) {
  int rank, size, sum, got;
  signal(SIGUSR1, at_next_step);
  signal(SIGUSR2, at_once);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) puts("in its steps");
  fflush(stdout);
  for (int step = 0; step < 100000; ++step) {
    MPI_Request requests[2];
    usleep(rank * 1000 + 5000);
    if (leave) exit(3);
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, step, MPI_COMM_WORLD, requests);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, step, MPI_COMM_WORLD, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (step % 10 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""

PYTHON_PROGRAM = r"""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

leave = []
signal.signal(signal.SIGUSR1, lambda *_: leave.append(3))
signal.signal(signal.SIGUSR2, lambda *_: os._exit(4))
dist.init_process_group("gloo")
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
if dist.get_rank() == 0:
    print("in its steps", flush=True)
for step in range(100_000):
    time.sleep(0.01)
    if leave:
        sys.exit(leave[0])
    optimizer.zero_grad()
    ddp(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    if step % 10 == 0:
        dist.barrier()
"""
