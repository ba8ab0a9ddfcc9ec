// Stacks come from libdw, which reads registers and memory of a stopped process. Whatever it lacks,
// the text says why there is no stack.
#include "core/agent/stack.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fd.h"

namespace lockstep::agent {
namespace {

struct DwflEnd {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

// Separate debug files are not looked for: it is slow and may go to the network (debuginfod).
int NoDebugInfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                char**) {
  return -1;
}

std::string Demangled(const char* symbol) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  std::string name = text ? text.get() : symbol;
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  // Template arguments and parameters make a line unreadable; the name says where it is.
  const auto end = name.find_first_of("(<");
  if (end != std::string::npos && end > 0) name.resize(end);
  constexpr std::size_t kMostCharacters = 60;
  if (name.size() > kMostCharacters) name.resize(kMostCharacters);
  return name;
}

struct Walk {
  pid_t pid;
  Deadline deadline;
  std::vector<std::string> frames;
  std::vector<std::pair<pid_t, std::vector<std::string>>> threads;
};

std::string DescribeAddress(Dwfl* dwfl, Dwarf_Addr address) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl, address);
  if (!module) return fmt::format("{:#x}", address);
  const char* const symbol = dwfl_module_addrname(module, address);
  const char* const path =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string file = path ? std::filesystem::path(path).filename().string() : "?";
  return (symbol ? Demangled(symbol) : fmt::format("{:#x}", address)) + "@" + file;
}

int OnFrame(Dwfl_Frame* frame, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  Dwarf_Addr address = 0;
  bool activation = false;
  if (!dwfl_frame_pc(frame, &address, &activation)) return DWARF_CB_ABORT;
  // A return address may be the first of the next function.
  if (!activation) --address;
  Dwfl* const dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
  walk.frames.push_back(DescribeAddress(dwfl, address));
  const bool full = walk.frames.size() >= static_cast<std::size_t>(kMostFrames);
  return full || walk.deadline.Passed() ? DWARF_CB_ABORT : DWARF_CB_OK;
}

int OnThread(Dwfl_Thread* thread, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  walk.frames.clear();
  dwfl_thread_getframes(thread, OnFrame, &walk);
  walk.threads.emplace_back(dwfl_thread_tid(thread), walk.frames);
  const bool full = walk.threads.size() >= static_cast<std::size_t>(kMostThreads);
  return full || walk.deadline.Passed() ? DWARF_CB_ABORT : DWARF_CB_OK;
}

std::string Format(const Walk& walk) {
  std::string text;
  int number = 1;
  for (const auto& [thread, frames] : walk.threads) {
    if (frames.empty()) continue;
    const bool main_thread = thread == walk.pid;
    text += main_thread ? "stack: " : fmt::format("; thread {}: ", ++number);
    text += fmt::format("{}", fmt::join(frames, " < "));
  }
  return text;
}

std::string TakeStack(pid_t pid, Deadline deadline) {
  static const Dwfl_Callbacks kCallbacks = {dwfl_linux_proc_find_elf, NoDebugInfo, nullptr,
                                            nullptr};
  std::unique_ptr<Dwfl, DwflEnd> dwfl(dwfl_begin(&kCallbacks));
  if (!dwfl) return "no stack: elfutils cannot start";
  int error = dwfl_linux_proc_report(dwfl.get(), pid);
  if (error == 0 && dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) error = -1;
  if (error == 0) error = dwfl_linux_proc_attach(dwfl.get(), pid, false);
  if (error != 0) {
    return fmt::format("no stack: {}", error > 0 ? std::strerror(error) : dwfl_errmsg(-1));
  }
  Walk walk{pid, deadline, {}, {}};
  // The main thread has the smallest number, and threads are visited in the order of /proc.
  dwfl_getthreads(dwfl.get(), OnThread, &walk);
  if (walk.threads.empty() || walk.threads.front().second.empty()) {
    const char* const why = dwfl_errmsg(-1);
    return fmt::format("no stack: {}", why ? why : "it cannot be traced");
  }
  return Format(walk);
}

// The life of the helper: nothing that is open in the agent, no core file, no message of a library.
[[noreturn]] void Read(pid_t pid, Deadline deadline, int answer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(answer, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0u, 0);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const std::string text = TakeStack(pid, deadline);
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = write(STDIN_FILENO, left.data(), left.size());
    if (written <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  _exit(0);
}

// What comes until the other end is closed; `whole`: that was before the deadline.
std::string ReadAll(int fd, Deadline deadline, bool& whole) {
  std::string text;
  char buffer[4096];
  whole = false;
  while (!deadline.Passed()) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, deadline.RemainingMs()) <= 0) continue;
    const ssize_t got = read(fd, buffer, sizeof buffer);
    whole = got == 0;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

// A helper reads it, who is expendable: elfutils ends its process by an assertion when a thread
// goes away under its eyes, and a thread that cannot be interrupted never stops for its tracer. One
// that is late is left behind, and ends with the agent: killed, it would leave the other one
// stopped.
std::string StackText(pid_t pid, Deadline deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no stack: no pipe";
  const Fd ours(ends[0]);
  Fd its(ends[1]);
  const pid_t helper = fork();
  if (helper < 0) return "no stack: no process to read it";
  if (helper == 0) Read(pid, deadline, its.get());
  its.Reset();
  bool whole = false;
  std::string text = ReadAll(ours.get(), deadline, whole);
  if (!whole) return "no stack: it could not be read in time";
  waitpid(helper, nullptr, 0);
  return text.empty() ? "no stack: it went away while it was read" : text;
}

}  // namespace lockstep::agent
