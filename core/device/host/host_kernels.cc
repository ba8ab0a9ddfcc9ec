#include "core/device/host/host_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/collective/half.h"

namespace lockstep {
namespace {

// How each type is read into and written from the float (or double) that it is computed in.
struct F32 {
  using Word = float;
  using Wide = float;
  static Wide From(Word word) { return word; }
  static Word To(Wide value) { return value; }
};
struct F64 {
  using Word = double;
  using Wide = double;
  static Wide From(Word word) { return word; }
  static Word To(Wide value) { return value; }
};
struct F16 {
  using Word = std::uint16_t;
  using Wide = float;
  static Wide From(Word word) { return FloatFromF16(word); }
  static Word To(Wide value) { return F16FromFloat(value); }
};
struct Bf16 {
  using Word = std::uint16_t;
  using Wide = float;
  static Wide From(Word word) { return FloatFromBf16(word); }
  static Word To(Wide value) { return Bf16FromFloat(value); }
};

template <typename Function>
void WithType(DataType type, Function function) {
  switch (type) {
    case DataType::kF32:
      return function(F32());
    case DataType::kF64:
      return function(F64());
    case DataType::kF16:
      return function(F16());
    case DataType::kBf16:
      return function(Bf16());
    default:
      LOCKSTEP_CHECK(false, "arithmetic is for floating-point types");
  }
}

// Applies `function` to elements of two ranges of one type.
template <typename Function>
void Elementwise(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
                 Function function) {
  stream.Enqueue([=] {
    WithType(type, [&]<typename Type>(Type) {
      auto* out = static_cast<typename Type::Word*>(to);
      const auto* in = static_cast<const typename Type::Word*>(from);
      for (std::int64_t i = 0; i < count; ++i) {
        out[i] = Type::To(function(Type::From(out[i]), Type::From(in[i])));
      }
    });
    return OkStatus();
  });
}

// Keeps the compiler from dropping a loop whose result nobody wants.
inline void Consume(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

void ReadOnce(const void* from, std::int64_t bytes) {
  const auto* bytes_from = static_cast<const char*>(from);
  std::uint64_t sum = 0;
  std::int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes_from + i, sizeof(word));
    sum ^= word;
  }
  for (; i < bytes; ++i) sum ^= static_cast<unsigned char>(bytes_from[i]);
  Consume(sum);
}

// Bytes a nanosecond that ReadOnce reaches in `bytes` of memory: small ranges stay in a cache, so
// the rate depends on the size. Measured once for each power of two from 4 KiB to 64 MiB.
constexpr std::int64_t kSmallestRange = 4 << 10;
constexpr std::int64_t kLargestRange = 64 << 20;

double MeasureRate(const char* memory, std::int64_t bytes) {
  constexpr int kRounds = 5;
  static const TickScale scale = CalibrateTicks();
  const std::int64_t passes = std::max<std::int64_t>(1, (std::int64_t{4} << 20) / bytes);
  double fastest_ns = 0;
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms up
    const Ticks begin = NowTicks();
    for (std::int64_t pass = 0; pass < passes; ++pass) ReadOnce(memory, bytes);
    const double ns = scale.DurationNs(begin, NowTicks());
    if (round == 1 || (round > 1 && ns < fastest_ns)) fastest_ns = ns;
  }
  return static_cast<double>(passes * bytes) / std::max(fastest_ns, 1.0);
}

double ReadRate(std::int64_t bytes) {
  static const std::vector<double> rates = [] {
    std::vector<char> memory(kLargestRange, 1);
    std::vector<double> measured;
    for (std::int64_t range = kSmallestRange; range <= kLargestRange; range *= 2) {
      measured.push_back(MeasureRate(memory.data(), range));
    }
    return measured;
  }();
  std::size_t index = 0;
  for (std::int64_t range = kSmallestRange; range < bytes && index + 1 < rates.size(); range *= 2) {
    ++index;
  }
  return rates[index];
}

// Below this a pass is mostly the call, so it is repeated over the same few bytes.
constexpr std::int64_t kFewestBytesAPass = 64;

}  // namespace

void HostKernels::Copy(Stream& stream, void* to, const void* from, std::int64_t bytes) {
  if (to == from || bytes == 0) return;
  stream.Enqueue([=] {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return OkStatus();
  });
}

void HostKernels::Zero(Stream& stream, void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  stream.Enqueue([=] {
    std::memset(to, 0, static_cast<std::size_t>(bytes));
    return OkStatus();
  });
}

void HostKernels::Scale(Stream& stream, DataType type, void* to, const void* from,
                        std::int64_t count, double factor) {
  Elementwise(stream, type, to, from, count, [factor]<typename Wide>(Wide, Wide value) {
    return value * static_cast<Wide>(factor);
  });
}

void HostKernels::Divide(Stream& stream, DataType type, void* to, const void* from,
                         std::int64_t count, double divisor) {
  Elementwise(stream, type, to, from, count, [divisor]<typename Wide>(Wide, Wide value) {
    return value / static_cast<Wide>(divisor);
  });
}

void HostKernels::Add(Stream& stream, DataType type, void* to, const void* from,
                      std::int64_t count) {
  Elementwise(stream, type, to, from, count,
              []<typename Wide>(Wide sum, Wide value) { return sum + value; });
}

void HostKernels::Convert(Stream& stream, DataType to_type, void* to, DataType from_type,
                          const void* from, std::int64_t count) {
  if (to_type == from_type) return Copy(stream, to, from, count * SizeOf(to_type));
  stream.Enqueue([=] {
    WithType(to_type, [&]<typename To>(To) {
      WithType(from_type, [&]<typename From>(From) {
        auto* out = static_cast<typename To::Word*>(to);
        const auto* in = static_cast<const typename From::Word*>(from);
        for (std::int64_t i = 0; i < count; ++i) {
          out[i] = To::To(static_cast<typename To::Wide>(From::From(in[i])));
        }
      });
    });
    return OkStatus();
  });
}

void HostKernels::Read(Stream& stream, const void* from, std::int64_t bytes) {
  stream.Enqueue([=] {
    ReadOnce(from, bytes);
    return OkStatus();
  });
}

void HostKernels::Compute(Stream& stream, double ns, const void* memory, std::int64_t bytes) {
  LOCKSTEP_CHECK(bytes > 0, "computing needs memory to read");
  stream.Enqueue([=] {
    const double wanted = ns * ReadRate(std::max(bytes, kSmallestRange));
    std::int64_t left = static_cast<std::int64_t>(wanted);
    while (left > 0) {
      const std::int64_t pass = std::min(left, bytes);
      ReadOnce(memory, pass);
      left -= std::max(pass, kFewestBytesAPass);
    }
    return OkStatus();
  });
}

}  // namespace lockstep
