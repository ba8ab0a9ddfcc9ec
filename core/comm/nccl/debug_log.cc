// NCCL's own warnings often say more than its error codes. It is made to write them to a file in
// memory, which the agent of this process holds as well. The user's NCCL_DEBUG and NCCL_DEBUG_FILE
// go first, and their file is then read instead.
#include "core/comm/nccl/debug_log.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <utility>

#include "core/base/process_stat.h"
#include "core/journal/worker_log.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

constexpr std::size_t kLines = 3;
constexpr std::size_t kMostBytes = 600;

struct Capture {
  std::once_flag once;
  std::string path;
  bool ours = false;
};

Capture& TheCapture() {
  static auto* const capture = new Capture;
  return *capture;
}

// NCCL's placeholders: %h the host's name, %p the process.
std::string Expand(const std::string& pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') path += HostName();
    if (next == 'p') path += fmt::format("{}", getpid());
    if (next == 'h' || next == 'p') {
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

// A file without a name in any folder: it ends with this process, however that ends. Empty: none
// can be made.
std::string NewFile() {
  const int fd = memfd_create("lockstep-log", MFD_CLOEXEC);  // open until the end
  return fd < 0 ? "" : fmt::format("/proc/self/fd/{}", fd);
}

std::deque<std::string> LastLines(const std::string& path) {
  std::ifstream file(path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!journal::IsNews(line)) continue;
    lines.push_back(line);
    if (lines.size() > kLines) lines.pop_front();
  }
  return lines;
}

}  // namespace

const std::string& CaptureDebugLog() {
  Capture& capture = TheCapture();
  std::call_once(capture.once, [&] {
    const std::string theirs = VariableText("NCCL_DEBUG_FILE");
    if (!theirs.empty()) {
      capture.path = Expand(theirs);
      return;
    }
    if (VariableText("NCCL_DEBUG").empty()) setenv("NCCL_DEBUG", "WARN", 0);
    capture.path = VariableText(journal::kWorkerLogVariable);
    if (capture.path.empty()) capture.path = NewFile();
    if (capture.path.empty()) return;  // NCCL writes to standard output
    capture.ours = true;
    setenv("NCCL_DEBUG_FILE", capture.path.c_str(), 0);
  });
  return capture.path;
}

std::string DebugLogEnd() {
  const Capture& capture = TheCapture();
  if (capture.path.empty()) return "";
  std::string text;
  for (const std::string& line : LastLines(capture.path))
    text += (text.empty() ? "" : " | ") + line;
  if (text.empty()) return "";
  if (text.size() > kMostBytes) text = "…" + text.substr(text.size() - kMostBytes);
  return fmt::format("NCCL's log {}ends: {}", capture.ours ? "" : capture.path + " ",
                     WithoutControls(std::move(text)));
}

std::string WithoutControls(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace lockstep::comm::nccl
