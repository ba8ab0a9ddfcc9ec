// A process that a test plays: of this host or of others is the same to a job.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>

#include "watch/events/event.h"
#include "watch/run/process.h"

namespace lockstep::watch::run {

// That the rank has a world of so many.
inline events::Event World(int rank, int size) {
  events::Event event;
  event.phase = events::Phase::kMade;
  event.comm = events::kWorldComm;
  event.peer = rank;
  event.count = size;
  return event;
}

// It enters MPI_Recv from a member of the world.
inline events::Event Receive(int from) {
  events::Event event;
  event.phase = events::Phase::kEnter;
  event.call = events::Call::kRecv;
  event.flags = events::kReceiving;
  event.thread = 1;
  event.site = 1;
  event.comm = events::kWorldComm;
  event.peer = from;
  event.tag = 0;
  return event;
}

// What a test plays of a process; it stays when the job is done with it.
struct Played {
  std::deque<events::Event> events;
  ProcessFacts facts;
  std::uint64_t taken = 0;
  bool ends_after_look = false;
  bool went_on = false;
  std::int64_t started_ns = 0;
  int looks = 0;
  events::Cycle coming;  // behind all events: of one call
  std::uint64_t passed = 0;

  void Write(const events::Event& event) {
    events.push_back(event);
    ++facts.begun;
  }
};

class PlayedProcess : public Process {
 public:
  PlayedProcess(int rank, int size, Played& played, const char* job = "job")
      : Process({job, rank, size, false}, "node" + std::to_string(rank + 1)), played_(played) {}

  std::uint64_t Drain(std::uint64_t most, const Take& take) override {
    std::uint64_t count = 0;
    for (; count < most && !played_.events.empty(); ++count) {
      take({&played_.events.front(), 1});
      played_.events.pop_front();
      ++played_.taken;
    }
    for (; count < most && played_.coming.over > 0; ++count, ++played_.taken) {
      take({played_.coming.calls.data(), 1});
      --played_.coming.over;
    }
    return count;
  }
  events::Cycle Coming() override {
    return played_.events.empty() ? played_.coming : events::Cycle();
  }
  void Pass(std::uint64_t calls) override {
    played_.coming.over -= calls;
    played_.passed += calls;
  }
  std::uint64_t read() const override { return played_.taken; }
  bool WentOn() override { return played_.went_on; }
  ProcessFacts Look(bool) override {
    ++played_.looks;
    const ProcessFacts facts = played_.facts;
    if (played_.ends_after_look) played_.facts.state = ProcessState::kGone;
    return facts;
  }
  std::string Line(std::uint64_t) override { return "solver.c:7"; }
  stacks::PythonStack Python() override { return {}; }
  std::string Stacks() override { return "stack: poll@libc.so.6"; }
  void Kill() override {}
  std::int64_t started_ns() const override { return played_.started_ns; }
  pid_t pid() const override { return 1; }

 private:
  Played& played_;
};

}  // namespace lockstep::watch::run
