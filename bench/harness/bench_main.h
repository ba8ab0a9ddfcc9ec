// The main function of every benchmark, for agents and workers alike.
#pragma once

#include "bench/measure/kind.h"

namespace lockstep::bench::harness {

int BenchMain(measure::Kind& kind, int argc, char** argv);

}  // namespace lockstep::bench::harness
