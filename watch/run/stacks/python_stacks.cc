// The innermost frame that belongs neither to Python's library nor to an installed package is the
// user's. The innermost of all tells whether the main thread is inside PyTorch: in a collective, in
// backward(), or in the forward pass of DistributedDataParallel.
#include "watch/run/stacks/python_stacks.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/print_stderr.h"
#include "core/base/process_stat.h"

extern char** environ;

namespace lockstep::watch::run::stacks {
namespace {

constexpr int kWaitMs = 10'000;

bool Has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

bool OfALibrary(const std::string& path) {
  return path.empty() || path.front() == '<' || Has(path, "/site-packages/") ||
         Has(path, "/dist-packages/") || Has(path, "/lib/python3");
}

bool MayWaitForRanks(const std::string& path) {
  return Has(path, "/torch/distributed/") || Has(path, "/torch/autograd/") ||
         Has(path, "/torch/nn/parallel/");
}

// Of a dump, line by line, which begins "Process 4711: python3 train.py". The main thread has a
// name only where the program has loaded Python's module of threads; its number is the process's.
class MainThread {
 public:
  bool Begins(const std::string& line) {
    if (line.starts_with("Process ")) process_ = "Thread " + line.substr(8, line.find(':') - 8);
    return Has(line, "\"MainThread\"") || (!process_.empty() && line.starts_with(process_ + " "));
  }

 private:
  std::string process_;
};

// All that `words` print within kWaitMs; `code`: 127 where they can't be started.
std::string OutputOf(const char* const* words, int* code) {
  *code = 127;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = -1;
  const int failed =
      posix_spawnp(&child, words[0], &actions, nullptr, const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char some[4096];
  pollfd readable = {ends[0], POLLIN, 0};
  while (failed == 0) {
    const ssize_t got = poll(&readable, 1, kWaitMs) > 0 ? read(ends[0], some, sizeof some) : -1;
    if (got < 0) kill(child, SIGKILL);
    if (got <= 0) break;
    text.append(some, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (failed != 0) return {};
  int status = 0;
  waitpid(child, &status, 0);
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return text;
}

// Who ended meanwhile has no stack, and nothing is wrong with that.
bool IsAlive(pid_t pid) {
  const std::optional<ProcessStat> stat = StatOf(pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

void SayOnce(const std::string& why) {
  static bool said = false;
  if (!said) PrintStderr("lockstep watch: no lines of Python: {}\n", why);
  said = true;
}

// "    barrier (/usr/lib/torch/distributed.py:2790)" -> "barrier at distributed.py:2790"; "": none.
std::string FrameOf(const std::string& line) {
  const std::size_t open = line.find(" (", 4);
  if (!line.starts_with("    ") || open == line.npos || line.back() != ')') return {};
  const std::string path = line.substr(open + 2, line.size() - open - 3);
  return line.substr(4, open - 4) + " at " + std::filesystem::path(path).filename().string();
}

std::string DumpOfPython(pid_t pid) {
  const std::string number = std::to_string(pid);
  const char* const words[] = {"py-spy", "dump",         "--full-filenames",
                               "--pid",  number.c_str(), nullptr};
  int code = 0;
  const std::string text = OutputOf(words, &code);
  if (code == 0) return text;
  if (code == 127) {
    SayOnce("py-spy is not installed (pip install py-spy)");
  } else if (IsAlive(pid)) {
    SayOnce(
        fmt::format("py-spy can't look at process {}: {}", pid, text.substr(0, text.find('\n'))));
  }
  return {};
}

}  // namespace

PythonStack ReadPythonStack(const std::string& dump) {
  PythonStack stack;
  std::istringstream lines(dump);
  std::string line;
  MainThread main_thread;
  bool main = false;
  bool innermost = true;
  while (std::getline(lines, line)) {
    const bool begins = main_thread.Begins(line);
    if (line.starts_with("Thread ")) main = begins;
    const std::size_t open = line.rfind(" (");
    const std::size_t colon = line.rfind(':');
    if (!main || line.compare(0, 4, "    ") != 0 || open == line.npos || colon == line.npos ||
        colon < open || line.back() != ')') {
      continue;
    }
    const std::string path = line.substr(open + 2, colon - open - 2);
    if (innermost) stack.in_torch = MayWaitForRanks(path);
    innermost = false;
    if (OfALibrary(path)) continue;
    stack.line = std::filesystem::path(path).filename().string() +
                 line.substr(colon, line.size() - colon - 1);
    break;
  }
  return stack;
}

std::string ReadPythonThreads(const std::string& dump) {
  std::string main;
  std::string others;
  std::string* text = nullptr;
  MainThread main_thread;
  bool innermost = true;
  std::istringstream lines(dump);
  std::string line;
  while (std::getline(lines, line)) {
    const bool begins_main = main_thread.Begins(line);
    if (line.starts_with("Thread ")) {
      text = begins_main ? &main : &others;
      const std::size_t name = line.find('"');
      *text +=
          "; thread " +
          (name == line.npos ? "of Python" : line.substr(name + 1, line.rfind('"') - name - 1));
      innermost = true;
    } else if (const std::string frame = FrameOf(line); text != nullptr && !frame.empty()) {
      *text += (std::exchange(innermost, false) ? ": " : " < ") + frame;
    }
  }
  return main + others;
}

bool IsPython(pid_t pid) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return program.filename().string().starts_with("python");
}

PythonStack LookAtPython(pid_t pid) { return ReadPythonStack(DumpOfPython(pid)); }

std::string PythonThreads(pid_t pid) { return ReadPythonThreads(DumpOfPython(pid)); }

}  // namespace lockstep::watch::run::stacks
