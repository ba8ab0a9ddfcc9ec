// The program stress: takes the cases through a session, on real ranks or in a simulation.
#pragma once

namespace lockstep::stress::harness {

int StressMain(int argc, char** argv);

}  // namespace lockstep::stress::harness
