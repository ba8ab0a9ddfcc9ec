// Inputs of the communicator contract are so small that sums and products are exact in every type,
// floats of 8 bits included. Expected results come from core/collective/reference.h. Guard bytes
// behind each buffer show a library that writes too far.
#include "core/comm/testing/contract_data.h"

#include <algorithm>
#include <cstring>

#include "core/base/random.h"
#include "core/collective/float8.h"
#include "core/collective/half.h"
#include "core/collective/reference.h"
#include "fmt/format.h"

namespace lockstep::comm {
namespace {

// Bytes beyond the end that nobody may touch.
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kUntouched{0xa5};

template <typename T>
void Store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

void StoreElement(collective::DataType type, std::byte* to, int value) {
  switch (type) {
    case collective::DataType::kF16:
      return Store(to, collective::F16FromFloat(static_cast<float>(value)));
    case collective::DataType::kBf16:
      return Store(to, collective::Bf16FromFloat(static_cast<float>(value)));
    case collective::DataType::kF32:
      return Store(to, static_cast<float>(value));
    case collective::DataType::kF64:
      return Store(to, static_cast<double>(value));
    case collective::DataType::kI8:
      return Store(to, static_cast<std::int8_t>(value));
    case collective::DataType::kI32:
      return Store(to, static_cast<std::int32_t>(value));
    case collective::DataType::kI64:
      return Store(to, static_cast<std::int64_t>(value));
    case collective::DataType::kU8:
      return Store(to, static_cast<std::uint8_t>(value));
    case collective::DataType::kF8E4M3:
      return Store(to, collective::F8E4M3FromFloat(static_cast<float>(value)));
    case collective::DataType::kF8E5M2:
      return Store(to, collective::F8E5M2FromFloat(static_cast<float>(value)));
  }
}

std::size_t AsSize(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

std::vector<std::byte> ContractCall::SendOf(int rank) const {
  // What a receiver gets is what its peer sends: a buffer as long.
  collective::Operation sent = operation_;
  if (sent.collective == collective::Collective::kRecv)
    sent.collective = collective::Collective::kSend;
  const std::int64_t bytes = collective::SendBytes(sent, world_size_);
  const std::int64_t size = collective::SizeOf(sent.type);
  std::vector<std::byte> data(AsSize(bytes));
  // 1, 2 or 3, but no 3 in floats of 8 bits: sums and products of up to four ranks are exact.
  const std::uint64_t values = collective::IsFloat8(sent.type) ? 2 : 3;
  for (std::int64_t i = 0; i < bytes / size; ++i) {
    const std::uint64_t place =
        static_cast<std::uint64_t>(i) * 64 + static_cast<std::uint64_t>(rank);
    const std::uint64_t mixed = Mix64(seed_ ^ Mix64(place));
    StoreElement(sent.type, data.data() + i * size, static_cast<int>(mixed % values) + 1);
  }
  return data;
}

ContractCall::ContractCall(const collective::Operation& operation, int world_size, int rank,
                           Placement placement, std::uint64_t seed)
    : operation_(operation),
      world_size_(world_size),
      rank_(rank),
      placement_(placement),
      seed_(seed) {
  const std::vector<std::byte> mine = SendOf(rank);
  const std::size_t result = AsSize(collective::RecvBytes(operation, world_size));
  if (placement == Placement::kOutOfPlace) {
    send_ = mine;
    recv_.assign(result + kGuardBytes, kUntouched);
    return;
  }
  // In place one buffer holds both, and the smaller one is this rank's block of it.
  recv_.assign(std::max(mine.size(), result) + kGuardBytes, kUntouched);
  const bool own_block = operation.collective == collective::Collective::kAllGather;
  std::copy(mine.begin(), mine.end(),
            recv_.begin() + (own_block ? rank * static_cast<std::ptrdiff_t>(mine.size()) : 0));
}

collective::Buffers ContractCall::buffers() {
  if (operation_.collective == collective::Collective::kBarrier) return {};
  if (placement_ == Placement::kOutOfPlace) {
    collective::Buffers buffers{send_.data(), recv_.data()};
    if (operation_.collective == collective::Collective::kRecv) buffers.send = nullptr;
    if (operation_.collective == collective::Collective::kSend) buffers.recv = nullptr;
    return buffers;
  }
  const std::int64_t block = operation_.count * collective::SizeOf(operation_.type) * rank_;
  collective::Buffers buffers{recv_.data(), recv_.data()};
  if (operation_.collective == collective::Collective::kAllGather)
    buffers.send = recv_.data() + block;
  if (operation_.collective == collective::Collective::kReduceScatter)
    buffers.recv = recv_.data() + block;
  return buffers;
}

bool ContractCall::reads_result() const {
  if (operation_.collective == collective::Collective::kReduce) return rank_ == operation_.root;
  return operation_.collective != collective::Collective::kBarrier &&
         operation_.collective != collective::Collective::kSend;
}

std::string ContractCall::Wrong() const {
  const auto differ = [](const std::byte* a, const std::byte* b, std::size_t n) {
    return std::mismatch(a, a + n, b).first - a;
  };
  const std::string where =
      fmt::format("{} on rank {} of {}{}", collective::Describe(operation_), rank_, world_size_,
                  placement_ == Placement::kInPlace ? " in place" : "");
  const std::size_t guard = recv_.size() - kGuardBytes;
  for (std::size_t i = guard; i < recv_.size(); ++i) {
    if (recv_[i] != kUntouched) return where + ": wrote beyond the end";
  }
  if (placement_ == Placement::kOutOfPlace && send_ != SendOf(rank_)) {
    return where + ": wrote to the send buffer";
  }
  if (!reads_result()) return "";
  std::vector<std::vector<std::byte>> sends;
  std::vector<const void*> pointers;
  for (int r = 0; r < world_size_; ++r) sends.push_back(SendOf(r));
  for (const auto& send : sends) pointers.push_back(send.data());
  std::vector<std::byte> expected(AsSize(collective::RecvBytes(operation_, world_size_)));
  if (expected.empty()) return "";
  collective::ReferenceResult(operation_, world_size_, pointers, rank_, expected.data());
  const bool shifted = placement_ == Placement::kInPlace &&
                       operation_.collective == collective::Collective::kReduceScatter;
  const std::byte* got = recv_.data() + (shifted ? AsSize(rank_) * expected.size() : 0);
  const auto same = differ(expected.data(), got, expected.size());
  if (AsSize(same) == expected.size()) return "";
  const std::int64_t size = collective::SizeOf(operation_.type);
  const std::int64_t element = same / size;
  const auto bits = [&](const std::byte* data) {
    std::string text;
    for (std::int64_t i = size - 1; i >= 0; --i) {
      text += fmt::format("{:02x}", static_cast<int>(data[element * size + i]));
    }
    return text;
  };
  return fmt::format("{}: element {} is {}, not {}", where, element, bits(got),
                     bits(expected.data()));
}

std::vector<collective::Operation> ContractOperations(int world_size, std::int64_t count,
                                                      collective::Blocking blocking) {
  std::vector<collective::Operation> operations;
  for (int c = 0; c <= static_cast<int>(collective::Collective::kReduce); ++c) {
    collective::Operation operation;
    operation.collective = static_cast<collective::Collective>(c);
    operation.blocking = blocking;
    operation.count = operation.collective == collective::Collective::kBarrier ? 0 : count;
    const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
    for (const collective::DataType type : collective::AllDataTypes()) {
      operation.type = type;
      for (int reduction = 0; reduction < (info.reduces ? 4 : 1); ++reduction) {
        operation.reduction = static_cast<collective::Reduction>(reduction);
        for (int root = 0; root < (info.rooted ? world_size : 1);
             root += std::max(1, world_size - 1)) {
          operation.root = root;
          operations.push_back(operation);
        }
      }
      if (operation.collective == collective::Collective::kBarrier) break;
    }
  }
  return operations;
}

}  // namespace lockstep::comm
