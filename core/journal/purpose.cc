// Names of purposes, and their packing into 64 bits of an event. The iteration is stored plus one,
// so that no annotation is 0.
#include "core/journal/purpose.h"

#include <fmt/core.h>

#include <cstddef>
#include <iterator>

#include "core/base/check.h"

namespace lockstep::journal {
namespace {

constexpr int kDetailBits = 24;
constexpr std::int32_t kMostDetail = (1 << kDetailBits) - 1;

struct PurposeInfo {
  std::string_view name;
  bool detailed = false;  // its detail says something
};
constexpr PurposeInfo kPurposes[] = {{""},
                                     {"constructor: parameter count"},
                                     {"constructor: parameter shapes"},
                                     {"constructor: state", true},
                                     {"bucket order of rank 0"},
                                     {"bucket sizes of rank 0"},
                                     {"bucket", true},
                                     {"bitmap of used parameters"},
                                     {"buffers", true},
                                     {"PowerSGD factor P of bucket", true},
                                     {"PowerSGD factor Q of bucket", true},
                                     {"join: alive"},
                                     {"join: throw"},
                                     {"join: common rank"},
                                     {"join: should sync"},
                                     {"join: shadow bucket", true},
                                     {"join: final rank"},
                                     {"join: final state", true},
                                     {"statistics of batch norm", true},
                                     {"gradient of batch norm", true},
                                     {"barrier"},
                                     {"step of the program"},
                                     {"graph replay: call", true},
                                     {"graph replay: bucket", true},
                                     {"graph capture: call", true}};

PurposeInfo InfoOf(Purpose purpose) {
  const auto index = static_cast<std::size_t>(purpose);
  return index < std::size(kPurposes) ? kPurposes[index] : PurposeInfo{"unknown"};
}

}  // namespace

std::string_view NameOf(Purpose purpose) { return InfoOf(purpose).name; }

std::int64_t PackAnnotation(const Annotation& annotation) {
  LOCKSTEP_CHECK(annotation.detail >= 0 && annotation.detail <= kMostDetail,
                 "a detail has 24 bits");
  if (annotation == Annotation()) return 0;
  // The iteration is stored plus one, so that -1 and "nothing" are both 0.
  const std::uint32_t iteration = static_cast<std::uint32_t>(annotation.iteration) + 1;
  return static_cast<std::int64_t>(std::uint64_t{iteration} << 32 |
                                   static_cast<std::uint64_t>(annotation.detail) << 8 |
                                   static_cast<std::uint64_t>(annotation.purpose));
}

Annotation UnpackAnnotation(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return {.purpose = static_cast<Purpose>(bits & 0xff),
          .detail = static_cast<std::int32_t>((bits >> 8) & kMostDetail),
          .iteration = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits >> 32) - 1)};
}

std::string Describe(const Annotation& annotation) {
  if (annotation.purpose == Purpose::kNone) return "";
  std::string text(NameOf(annotation.purpose));
  if (InfoOf(annotation.purpose).detailed) text += fmt::format(" {}", annotation.detail);
  if (annotation.iteration >= 0) text += fmt::format(" of iteration {}", annotation.iteration);
  return text;
}

}  // namespace lockstep::journal
