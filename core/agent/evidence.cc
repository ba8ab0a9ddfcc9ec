// /proc says what a process does: two looks tell sleep from work, and the stack (stack.h) says
// where it is. Each look is bounded, because a process in the kernel may not answer a debugger.
#include "core/agent/evidence.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/agent/stack.h"
#include "core/base/fd.h"
#include "core/base/file_text.h"
#include "core/base/now.h"
#include "core/base/process_stat.h"

namespace lockstep::agent {
namespace {

constexpr double kLookSeconds = 0.05;

struct NamedCall {
  long number;
  const char* name;
  bool sleeps;  // waits for something that no peer can bring
};

// Those in which a process of ours can be found waiting.
constexpr NamedCall kCalls[] = {
    {SYS_nanosleep, "nanosleep", true},
    {SYS_clock_nanosleep, "clock_nanosleep", true},
#ifdef SYS_pause
    {SYS_pause, "pause", true},
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll_wait", false},
#endif
    {SYS_rt_sigsuspend, "rt_sigsuspend", true},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", true},
    {SYS_wait4, "wait4", true},
    {SYS_waitid, "waitid", true},
    {SYS_flock, "flock", true},
    {SYS_fsync, "fsync", true},
    {SYS_futex, "futex", false},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect6", false},
    {SYS_epoll_pwait, "epoll_pwait", false},
    {SYS_read, "read", false},
    {SYS_readv, "readv", false},
    {SYS_write, "write", false},
    {SYS_writev, "writev", false},
    {SYS_recvfrom, "recvfrom", false},
    {SYS_recvmsg, "recvmsg", false},
    {SYS_sendto, "sendto", false},
    {SYS_sendmsg, "sendmsg", false},
    {SYS_accept, "accept", false},
    {SYS_accept4, "accept4", false},
    {SYS_connect, "connect", false},
    {SYS_sched_yield, "sched_yield", false},
    {SYS_ioctl, "ioctl", false},
    {SYS_process_vm_readv, "process_vm_readv", false},
    {SYS_process_vm_writev, "process_vm_writev", false},
    {SYS_exit_group, "exit_group", false},
};

const NamedCall* FindCall(long number) {
  const auto* const found =
      std::ranges::find_if(kCalls, [&](const NamedCall& c) { return c.number == number; });
  return found == std::end(kCalls) ? nullptr : found;
}

std::string ReadProc(pid_t pid, const char* name) {
  return TextOf(fmt::format("/proc/{}/{}", pid, name));
}

// One look at the main thread.
struct Look {
  char state = '?';            // proc(5): R S D T t Z X
  std::string call;            // /proc/pid/syscall, as it is
  std::int64_t cpu_ns = -1;    // of all threads
  std::int64_t switches = -1;  // how often the main thread went to sleep
};

Look LookOnce(pid_t pid) {
  Look look;
  if (const std::optional<ProcessStat> stat = StatOf(pid)) look.state = stat->state;
  look.call = ReadProc(pid, "syscall");
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    look.cpu_ns = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  const std::string status = ReadProc(pid, fmt::format("task/{}/status", pid).c_str());
  constexpr char kSwitches[] = "\nvoluntary_ctxt_switches:";
  if (const auto at = status.find(kSwitches); at != std::string::npos) {
    look.switches = std::strtoll(status.c_str() + at + sizeof kSwitches - 1, nullptr, 10);
  }
  return look;
}

// poll, ppoll of no descriptor and select, pselect6 of none are sleeps in disguise.
bool WaitsForNothing(const NamedCall& call, unsigned long first, unsigned long second) {
  const std::string_view name = call.name;
  if (name == "poll" || name == "ppoll") return second == 0;
  if (name == "select" || name == "pselect6") return first == 0;
  return false;
}

struct CallInfo {
  std::string name;  // empty when not in a system call, or not known
  bool sleeps = false;
};

std::string_view WithoutNumber(std::string_view call) {
  return call.substr(std::min(call.find(' '), call.size()));
}

// A sleep that a stop interrupted (also ours, while the stack was taken) goes on as
// restart_syscall, with the arguments and the stack of the call that it continues.
CallInfo ParseCall(const std::string& text, const std::string& earlier) {
  long number = -1;
  unsigned long first = 0, second = 0;
  if (std::sscanf(text.c_str(), "%ld %lx %lx", &number, &first, &second) < 3 || number < 0) {
    return {};
  }
  if (number == SYS_restart_syscall && WithoutNumber(text) == WithoutNumber(earlier)) {
    number = std::strtol(earlier.c_str(), nullptr, 10);
  }
  const NamedCall* const call = FindCall(number);
  if (!call) return {SystemCallName(number), false};
  return {call->name, call->sleeps || WaitsForNothing(*call, first, second)};
}

std::string DescribeState(const Look& before, const Look& after, const CallInfo& call,
                          bool asleep) {
  const double used = static_cast<double>(after.cpu_ns - before.cpu_ns) / 1e9 / kLookSeconds;
  if (after.state == 'Z' || after.state == 'X') return "gone";
  if (asleep) return "asleep in " + call.name;
  std::string text = after.state == 'D' ? "in uninterruptible sleep" : "";
  if (text.empty()) text = after.state == 'R' || used > 0.5 ? "running" : "waiting";
  if (!call.name.empty()) text += " in " + call.name;
  if (after.call.empty()) text += " (system call not readable)";
  if (before.cpu_ns >= 0 && after.cpu_ns >= 0) text += fmt::format(", {:.0f} % CPU", used * 100);
  return text;
}

// The kernel function it sleeps in, where the kernel tells.
std::string WaitChannel(pid_t pid) {
  std::string name = ReadProc(pid, "wchan");
  return name.empty() || name == "0" ? "" : fmt::format(" [{}]", name);
}

}  // namespace

std::string SystemCallName(long number) {
  const NamedCall* const call = FindCall(number);
  return call ? call->name : fmt::format("system call {}", number);
}

bool IsEnding(pid_t pid) {
  const std::optional<ProcessStat> stat = StatOf(pid);
  return stat && stat->ending();
}

SystemEvidence LookAt(pid_t pid, Deadline deadline, const std::string& earlier_call) {
  const Look before = LookOnce(pid);
  SleepNs(static_cast<long>(kLookSeconds * 1e9));
  const Look after = LookOnce(pid);
  const CallInfo call = ParseCall(after.call, earlier_call);
  SystemEvidence evidence;
  const bool restarted = WithoutNumber(after.call) == WithoutNumber(earlier_call);
  evidence.call = restarted ? earlier_call : after.call;
  evidence.asleep = call.sleeps && after.state == 'S' && before.call == after.call &&
                    before.switches == after.switches && after.switches >= 0;
  evidence.text = DescribeState(before, after, call, evidence.asleep) + WaitChannel(pid);
  if (after.state == 'R' || after.state == 'S') {
    evidence.text += "; " + StackText(pid, deadline);
  }
  return evidence;
}

journal::WorkerLog ReadLogEnd(const std::string& path, std::size_t most) {
  journal::WorkerLog log;
  log.path = path;
  // The path is what a worker said: it may name a pipe or a device.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return log;
  log.bytes = info.st_size;
  log.cut_bytes = std::max<std::int64_t>(log.bytes - static_cast<std::int64_t>(most), 0);
  log.text.resize(static_cast<std::size_t>(log.bytes - log.cut_bytes));
  const ssize_t got = pread(file.get(), log.text.data(), log.text.size(), log.cut_bytes);
  log.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (log.cut_bytes > 0) {
    const std::size_t line = log.text.find('\n');
    const std::size_t drop = line == std::string::npos ? 0 : line + 1;
    log.text.erase(0, drop);
    log.cut_bytes += static_cast<std::int64_t>(drop);
  }
  // HDF5's strings end with a zero byte.
  std::replace(log.text.begin(), log.text.end(), '\0', ' ');
  return log;
}

}  // namespace lockstep::agent
