#include "core/control/worker_card.h"

#include <cstring>
#include <string_view>

#include "core/base/check.h"

namespace lockstep::control {
namespace {

constexpr std::size_t kBusBytes = 64;

void Write(std::span<std::byte> field, const std::string& text) {
  if (text.size() >= field.size()) return;
  std::memcpy(field.data(), text.c_str(), text.size() + 1);
}

std::string Read(std::span<const std::byte> field) {
  const std::string_view all(reinterpret_cast<const char*>(field.data()), field.size());
  const std::string_view text = all.substr(0, all.find('\0'));
  const bool sane =
      text.size() < all.size() && text.find_first_of("\n\r\t\x1b") == std::string_view::npos;
  return sane ? std::string(text) : "";
}

}  // namespace

void WriteCard(std::span<std::byte> memory, const WorkerCard& card) {
  LOCKSTEP_CHECK(memory.size() == kWorkerCardBytes, "memory of another size than a card's");
  Write(memory.first(kBusBytes), card.gpu_bus);
  Write(memory.subspan(kBusBytes), card.log_file);
}

WorkerCard ReadCard(std::span<const std::byte> memory) {
  LOCKSTEP_CHECK(memory.size() == kWorkerCardBytes, "memory of another size than a card's");
  return {Read(memory.first(kBusBytes)), Read(memory.subspan(kBusBytes))};
}

}  // namespace lockstep::control
