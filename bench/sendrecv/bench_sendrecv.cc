#include "bench/harness/bench_main.h"
#include "bench/sendrecv/send_recv.h"

int main(int argc, char** argv) {
  lockstep::bench::sendrecv::SendRecv kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
