// Every collective computed in the most obvious way: rank after rank, element after element.
// Contract suites compare libraries with it, so nothing here is fast or shared with what it judges.
// Narrow floats are rounded after every step, as a library without wider sums does.
#include "core/collective/reference.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/check.h"
#include "core/collective/float8.h"
#include "core/collective/half.h"

namespace lockstep::collective {
namespace {

template <typename T>
T Combine(Reduction reduction, T a, T b) {
  // Unsigned of at least the width of int: integers wrap instead of overflowing.
  using Wide =
      typename std::conditional_t<std::is_integral_v<T>,
                                  std::conditional<sizeof(T) == 8, std::uint64_t, unsigned>,
                                  std::type_identity<T>>::type;
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case Reduction::kProd:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case Reduction::kMin:
      return b < a ? b : a;
    case Reduction::kMax:
      return a < b ? b : a;
  }
  LOCKSTEP_CHECK(false, "a Reduction that is not in the table");
  return a;
}

template <typename T>
void CombineInto(Reduction reduction, const void* input, void* total, std::int64_t count) {
  const auto* in = static_cast<const T*>(input);
  auto* out = static_cast<T*>(total);
  for (std::int64_t i = 0; i < count; ++i) out[i] = Combine(reduction, out[i], in[i]);
}

// Types whose arithmetic is float's.
template <typename Word, float (*kToFloat)(Word), Word (*kFromFloat)(float)>
void CombineNarrowInto(Reduction reduction, const void* input, void* total, std::int64_t count) {
  const auto* in = static_cast<const Word*>(input);
  auto* out = static_cast<Word*>(total);
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = kFromFloat(Combine(reduction, kToFloat(out[i]), kToFloat(in[i])));
  }
}

void CombineInto(const Operation& operation, const void* input, void* total) {
  static constexpr decltype(&CombineInto<float>) kCombine[] = {
      &CombineNarrowInto<std::uint16_t, FloatFromF16, F16FromFloat>,
      &CombineNarrowInto<std::uint16_t, FloatFromBf16, Bf16FromFloat>,
      &CombineInto<float>,
      &CombineInto<double>,
      &CombineInto<std::int8_t>,
      &CombineInto<std::int32_t>,
      &CombineInto<std::int64_t>,
      &CombineInto<std::uint8_t>,
      &CombineNarrowInto<std::uint8_t, FloatFromF8E4M3, F8E4M3FromFloat>,
      &CombineNarrowInto<std::uint8_t, FloatFromF8E5M2, F8E5M2FromFloat>};
  static_assert(std::size(kCombine) == kDataTypeCount);
  kCombine[static_cast<std::size_t>(operation.type)](operation.reduction, input, total,
                                                     operation.count);
}

// Reduces operation.count elements that start `offset` bytes into every rank's send buffer.
void Reduce(const Operation& operation, const std::vector<const void*>& sends, std::int64_t offset,
            void* recv) {
  const auto block = static_cast<std::size_t>(operation.count * SizeOf(operation.type));
  std::memcpy(recv, static_cast<const char*>(sends.front()) + offset, block);
  for (std::size_t rank = 1; rank < sends.size(); ++rank) {
    CombineInto(operation, static_cast<const char*>(sends[rank]) + offset, recv);
  }
}

}  // namespace

void ReferenceResult(const Operation& operation, int world_size,
                     const std::vector<const void*>& sends, int rank, void* recv) {
  LOCKSTEP_CHECK(static_cast<std::size_t>(world_size) == sends.size() && world_size > 0,
                 "one send buffer a rank");
  const std::int64_t block = operation.count * SizeOf(operation.type);
  if (block == 0) return;
  switch (operation.collective) {
    case Collective::kBarrier:
    case Collective::kSend:
      return;
    case Collective::kAllReduce:
      return Reduce(operation, sends, 0, recv);
    case Collective::kReduce:
      if (rank == operation.root) Reduce(operation, sends, 0, recv);
      return;
    case Collective::kReduceScatter:
      return Reduce(operation, sends, rank * block, recv);
    case Collective::kBroadcast:
    case Collective::kRecv:
      std::memcpy(recv, sends.at(static_cast<std::size_t>(operation.root)),
                  static_cast<std::size_t>(block));
      return;
    case Collective::kAllGather:
      for (std::size_t from = 0; from < sends.size(); ++from) {
        std::memcpy(static_cast<char*>(recv) + static_cast<std::int64_t>(from) * block, sends[from],
                    static_cast<std::size_t>(block));
      }
      return;
  }
}

}  // namespace lockstep::collective
