// The faults that befall a rank at a point of its program: a body each, and below them a row each.
// A body says both what a process suffers and what a rank of a simulation does.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "stress/faults/device_memory.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/fault_registry.h"
#include "stress/faults/rank_body.h"

namespace lockstep::stress::faults {
namespace {

constexpr double kSleepSeconds = 0.1;
constexpr std::size_t kPieceBytes = 8 << 20;
constexpr rlim_t kRoomBytes = 256 << 20;
constexpr std::size_t kOutputBytes = 1 << 20;
constexpr int kPipeBytes = 4096;

Status SleepFor(RankBody& body, double seconds) {
  return body.Sleep(static_cast<std::int64_t>(seconds * 1e9));
}

Status Leave(RankBody& body, const PlannedFault&) {
  body.Exit(0);
  return OkStatus();
}

Status Raise(RankBody& body, const PlannedFault&) {
  body.marks().raised = true;
  return SystemFailed("the program raised an exception (injected)");
}

// A crash that is wanted leaves no core file.
void ForbidCoreFiles() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

Status CrashByAccess(RankBody& body, const PlannedFault&) {
  if (SimulatedRank* const rank = body.simulated()) rank->CrashBy(SIGSEGV);
  ForbidCoreFiles();
  // No page of a process; a null pointer would end it by a sanitizer, not by a signal.
  volatile int* nowhere = reinterpret_cast<int*>(alignof(int));
  *nowhere = 1;
  return OkStatus();
}

Status CrashByAbort(RankBody& body, const PlannedFault&) {
  if (SimulatedRank* const rank = body.simulated()) rank->CrashBy(SIGABRT);
  ForbidCoreFiles();
  std::abort();
}

// Takes memory until the process may have no more, as a model that is too large does. The ranks of
// a simulation share one process: there only the error is the same.
Status RunOutOfMemory(RankBody& body, const PlannedFault&) {
  body.marks().raised = true;
  if (body.simulated() != nullptr) return SystemFailed("out of memory (injected)");
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur =
      static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kRoomBytes;
  setrlimit(RLIMIT_AS, &limit);
  // Without exceptions: a sanitizer's allocator ends a process rather than throw one.
  std::array<std::unique_ptr<char[]>, 2 * kRoomBytes / kPieceBytes> taken;
  bool refused = false;
  for (auto& piece : taken) {
    piece.reset(new (std::nothrow) char[kPieceBytes]);
    refused = refused || piece == nullptr;
  }
  taken = {};
  if (refused) {
    return SystemFailed("out of memory: an allocation of 8 MiB was refused (injected)");
  }
  return EnvironmentError("no limit on memory could be set, so the process did not run out of it");
}

Status TakeDeviceMemory(RankBody& body, const PlannedFault&) {
  LOCKSTEP_CHECK(body.device() != nullptr, "the platform is open before the first fault");
  LOCKSTEP_ASSIGN_OR_RETURN(body.marks().taken, FillDevice(*body.device()));
  return OkStatus();
}

Status Hang(RankBody& body, const PlannedFault& fault) {
  SimulatedRank* const rank = body.simulated();
  if (rank != nullptr && !fault.duration_seconds) rank->Hang();
  return SleepFor(body, fault.duration_seconds.value_or(kForEverSeconds));
}

// Prints more than a pipe holds, of which the other end is open and nobody reads; after its
// duration somebody does. A launcher does so with subprocess.PIPE.
Status PrintIntoFullPipe(RankBody& body, const PlannedFault& fault) {
  if (body.simulated() != nullptr) return Hang(body, fault);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return EnvironmentError("no pipe; raise the limit on open files");
  const Fd output(ends[0]);
  Fd kept(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  std::thread reader([&] {
    static_cast<void>(SleepFor(body, fault.duration_seconds.value_or(kForEverSeconds)));
    char read_bytes[kPipeBytes];
    while (read(output.get(), read_bytes, sizeof read_bytes) > 0) {
    }
  });
  const std::vector<char> text(kOutputBytes, '\n');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  dup2(kept.get(), STDOUT_FILENO);
  reader.join();
  return OkStatus();
}

Status SleepAWhile(RankBody& body, const PlannedFault& fault) {
  return SleepFor(body, fault.duration_seconds.value_or(kSleepSeconds));
}

Status LetAbortHang(RankBody& body, const PlannedFault&) {
  body.marks().abort_hangs = true;
  return OkStatus();
}

Status MistakeMembership(RankBody& body, const PlannedFault&) {
  body.marks().wrong_membership = true;
  return OkStatus();
}

constexpr FaultInfo kFaultsOfProgram[] = {
    {.kind = FaultKind::kExit,
     .name = "exit",
     .help = "the process leaves at once, finalizing nothing",
     .inject = Leave},
    {.kind = FaultKind::kHang,
     .name = "hang",
     .help = "the program stays where it is, for ever or for its duration",
     .inject = Hang},
    // By the program's end (FaultGate::NeverFinalize).
    {.kind = FaultKind::kNeverFinalize,
     .name = "never_finalize",
     .help = "the program is over, and finalizes nothing"},
    {.name = "throw", .help = "the program raises an exception", .inject = Raise},
    {.name = "segfault", .help = "the process crashes with SIGSEGV", .inject = CrashByAccess},
    {.name = "abort", .help = "the process crashes with SIGABRT", .inject = CrashByAbort},
    {.name = "out_of_memory",
     .help = "an allocation is refused, and the program raises",
     .inject = RunOutOfMemory},
    {.name = "device_memory_full",
     .help = "what is free on the device is taken, and kept",
     .inject = TakeDeviceMemory},
    {.name = "sleep", .help = "the program sleeps for its duration", .inject = SleepAWhile},
    {.name = "blocked_output",
     .help = "it prints into a pipe that nobody reads before its duration is over",
     .inject = PrintIntoFullPipe},
    {.name = "hung_abort", .help = "from now on Abort() does not return", .inject = LetAbortHang},
    {.name = "wrong_membership",
     .help = "it rebuilds as if nobody were lost",
     .inject = MistakeMembership},
};

}  // namespace

std::span<const FaultInfo> ProgramFaults() { return kFaultsOfProgram; }

}  // namespace lockstep::stress::faults
