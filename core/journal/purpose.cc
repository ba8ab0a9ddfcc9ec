// Names of purposes, and their packing into 64 bits of an event. The iteration is stored plus one,
// so that no annotation is 0.
#include "core/journal/purpose.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>

#include "core/base/check.h"

namespace lockstep::journal {
namespace {

constexpr int kDetailBits = 24;
constexpr std::int32_t kMostDetail = (1 << kDetailBits) - 1;

bool HasDetail(Purpose purpose) {
  switch (purpose) {
    case Purpose::kStateBroadcast:
    case Purpose::kBucket:
    case Purpose::kBufferBroadcast:
    case Purpose::kPowerSgdFactorP:
    case Purpose::kPowerSgdFactorQ:
    case Purpose::kJoinShadowBucket:
    case Purpose::kJoinFinalSync:
    case Purpose::kBatchNormForward:
    case Purpose::kBatchNormBackward:
    case Purpose::kReplay:
    case Purpose::kReplayedBucket:
    case Purpose::kCapture:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view NameOf(Purpose purpose) {
  static constexpr std::array<std::string_view, 25> kNames = {"",
                                                              "constructor: parameter count",
                                                              "constructor: parameter shapes",
                                                              "constructor: state",
                                                              "bucket order of rank 0",
                                                              "bucket sizes of rank 0",
                                                              "bucket",
                                                              "bitmap of used parameters",
                                                              "buffers",
                                                              "PowerSGD factor P of bucket",
                                                              "PowerSGD factor Q of bucket",
                                                              "join: alive",
                                                              "join: throw",
                                                              "join: common rank",
                                                              "join: should sync",
                                                              "join: shadow bucket",
                                                              "join: final rank",
                                                              "join: final state",
                                                              "statistics of batch norm",
                                                              "gradient of batch norm",
                                                              "barrier",
                                                              "step of the program",
                                                              "graph replay: call",
                                                              "graph replay: bucket",
                                                              "graph capture: call"};
  const auto index = static_cast<std::size_t>(purpose);
  return index < kNames.size() ? kNames[index] : "unknown";
}

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
  if (HasDetail(annotation.purpose)) text += fmt::format(" {}", annotation.detail);
  if (annotation.iteration >= 0) text += fmt::format(" of iteration {}", annotation.iteration);
  return text;
}

}  // namespace lockstep::journal
