// `stress`: agents select the cases that this launch can run, and rank 0's leads them. Started by
// an agent, the same program is a worker.
#include "stress/harness/suite.h"

int main(int argc, char** argv) { return lockstep::stress::harness::StressMain(argc, argv); }
