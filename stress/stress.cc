// `stress`: agents select the cases that this launch can run, and rank 0's leads them. Started by
// an agent, the same program is a worker.
#include "session/session.h"
#include "stress/harness/suite.h"

int main(int argc, char** argv) {
  lockstep::stress::harness::StressSuite suite;
  return lockstep::session::Main(suite, argc, argv);
}
