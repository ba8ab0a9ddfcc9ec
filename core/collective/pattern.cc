// Writes the inputs and compares the results of a collective, block by block, where the host
// reaches the memory. Values come from pattern_values.h alone, which the GPU's kernels share. Loops
// are built for plain x86-64, AVX2 and AVX-512, and chosen when the program runs. Memory of a
// device is passed on to its PatternMemory.
#include "core/collective/pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/random.h"
#include "core/collective/float8.h"
#include "core/collective/half.h"
#include "core/collective/pattern_memory.h"
#include "core/collective/pattern_values.h"

namespace lockstep::collective {
namespace {

// Elements are generated in aligned blocks of this many, each with a key of its own: the expected
// values of a block stay in the first-level cache while they are compared.
constexpr std::int64_t kBlock = kPatternBlock;

// Writes elements [first, first + count) of the block with this key to `out`: what `rank`
// contributes, or (kResult) what all contributions give.
using Generator = void (*)(const PatternTerms& terms, std::uint32_t rank, std::uint64_t key,
                           std::uint32_t first, std::uint32_t count, void* out);

template <class Encoding, class Rule, bool kResult>
LOCKSTEP_INLINE void GenerateLoop(const PatternTerms& shared_terms, std::uint32_t rank,
                                  std::uint64_t key, std::uint32_t first, std::uint32_t count,
                                  void* out) {
  const PatternTerms terms = shared_terms;  // a copy that `out` cannot alias
  auto* const words = static_cast<typename Encoding::Word*>(out);
  const auto upper_key = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t weyl = static_cast<std::uint32_t>(key) + first * kWeylStep;
  for (std::uint32_t i = 0; i < count; ++i, weyl += kWeylStep) {
    const PatternBits bits = DrawBits(weyl, upper_key);
    if constexpr (std::is_same_v<Rule, CopyRule>) {
      words[i] = Encoding::FromBits(bits);
    } else if constexpr (kResult) {
      words[i] = Encoding::FromValue(Rule::Result(terms, bits));
    } else {
      words[i] =
          Encoding::FromValue(Rule::Contribution(terms, SlotOf(rank, terms.world, bits), bits));
    }
  }
}

// The same loop for the vectors that every x86-64 has, for AVX2, and for AVX-512 (v4) where a type
// is narrow: there arithmetic takes longer than memory. Wide vectors lower some processors' clock.
#if defined(__x86_64__)
template <class Encoding, class Rule, bool kResult>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void GenerateV4(
    const PatternTerms& terms, auto... where) {
  GenerateLoop<Encoding, Rule, kResult>(terms, where...);
}

template <class Encoding, class Rule, bool kResult>
[[gnu::target("avx2")]] void GenerateAvx2(const PatternTerms& terms, auto... where) {
  GenerateLoop<Encoding, Rule, kResult>(terms, where...);
}
#endif

template <class Encoding, class Rule, bool kResult>
void Generate(const PatternTerms& terms, std::uint32_t rank, std::uint64_t key, std::uint32_t first,
              std::uint32_t count, void* out) {
#if defined(__x86_64__)
  if constexpr (sizeof(typename Encoding::Word) <= 2) {
    static const bool is_v4 = __builtin_cpu_supports("x86-64-v4");
    if (is_v4) return GenerateV4<Encoding, Rule, kResult>(terms, rank, key, first, count, out);
  }
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return GenerateAvx2<Encoding, Rule, kResult>(terms, rank, key, first, count, out);
#endif
  GenerateLoop<Encoding, Rule, kResult>(terms, rank, key, first, count, out);
}

template <class Rule, bool kResult>
Generator GeneratorOf(DataType type) {
  return WithPatternType(type, []<DataType kType>() -> Generator {
    return &Generate<PatternEncoding<kType>, Rule, kResult>;
  });
}

PatternRule RuleOf(const Operation& operation) {
  if (!InfoOf(operation.collective).reduces) return PatternRule::kCopy;
  static constexpr PatternRule kRules[] = {PatternRule::kSum, PatternRule::kProd,
                                           PatternRule::kOrder, PatternRule::kOrder};
  return kRules[static_cast<std::size_t>(operation.reduction)];
}

template <bool kResult>
Generator GeneratorOf(const Operation& operation) {
  switch (RuleOf(operation)) {
    case PatternRule::kCopy:
      return GeneratorOf<CopyRule, true>(operation.type);
    case PatternRule::kSum:
      return GeneratorOf<SumRule, kResult>(operation.type);
    case PatternRule::kProd:
      return GeneratorOf<ProdRule, kResult>(operation.type);
    case PatternRule::kOrder:
      break;
  }
  return GeneratorOf<OrderRule, kResult>(operation.type);
}

// All but the total of the weights, which needs a loop over the slots.
PatternTerms TermsOf(const Operation& operation, int world_size) {
  const PatternRange& range = kPatternRanges[static_cast<std::size_t>(operation.type)];
  const std::uint32_t room = (1u << range.sum_bits) - 1;
  PatternTerms terms;
  terms.world = static_cast<std::uint32_t>(world_size);
  terms.contributors = std::min(terms.world, room);
  terms.weight_mask = std::bit_floor(room / terms.contributors) - 1;
  terms.extra_mask = room;
  terms.wide_mask = static_cast<std::uint32_t>((std::uint64_t{1} << range.wide_bits) - 1);
  terms.order_mask = (1u << range.order_bits) - 1;
  terms.order_offset = range.order_offset;
  terms.order_flip = operation.reduction == Reduction::kMax ? -1 : 0;
  terms.exponent_mask = range.exponent_max < 8 ? 3 : 7;
  terms.twos =
      std::min(terms.world, static_cast<std::uint32_t>(range.exponent_max) - terms.exponent_mask);
  terms.sign_mask = range.is_signed ? 1 : 0;
  return terms;
}

// Of all contributors. Every rank of a simulation asks, and there may be many: with many the
// weights are the numbers from 1 to a power of two, again and again.
std::int32_t TotalWeightOf(const PatternTerms& terms) {
  constexpr std::uint32_t kDoubled = 1u << 12;  // from here on WeightOf takes bits of a slot twice
  std::int32_t total = 0;
  if (terms.weight_mask >= kDoubled) {
    for (std::uint32_t slot = 0; slot < terms.contributors; ++slot) total += WeightOf(terms, slot);
    return total;
  }
  const auto sum_to = [](std::uint32_t last) { return last * (last + 1) / 2; };
  const std::uint32_t period = terms.weight_mask + 1;
  return static_cast<std::int32_t>(terms.contributors / period * sum_to(period) +
                                   sum_to(terms.contributors % period));
}

PatternTerms TermsOf(const Operation& operation, int world_size, std::int32_t weight_total) {
  PatternTerms terms = TermsOf(operation, world_size);
  terms.weight_total = weight_total;
  return terms;
}

// Calls generate(key, first, count, done) for each block that [begin, begin + count) touches.
template <class Callback>
void ForEachBlock(std::uint64_t stream, std::int64_t begin, std::int64_t count,
                  const Callback& callback) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t element = begin + done;
    const std::int64_t first = element % kBlock;
    const std::int64_t n = std::min(kBlock - first, count - done);
    const std::uint64_t key = PatternKey(stream, element / kBlock);
    callback(key, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(n), done);
    done += n;
  }
}

// The random stream of one iteration. Reductions share one among all ranks (sender 0); what is only
// copied has one for each sender.
std::uint64_t StreamOf(std::uint64_t seed, std::uint64_t stamp, const Operation& operation,
                       int rank) {
  const bool shared = InfoOf(operation.collective).reduces;
  const std::uint64_t sender = shared ? 0 : static_cast<std::uint64_t>(rank) + 1;
  return Mix64(Mix64(Mix64(seed) ^ stamp) ^ sender);
}

template <class Word>
Word Load(const unsigned char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::string TextOf(DataType type, const unsigned char* bytes) {
  switch (type) {
    case DataType::kF16:
      return fmt::format("{}", FloatFromF16(Load<std::uint16_t>(bytes)));
    case DataType::kBf16:
      return fmt::format("{}", FloatFromBf16(Load<std::uint16_t>(bytes)));
    case DataType::kF8E4M3:
      return fmt::format("{}", FloatFromF8E4M3(bytes[0]));
    case DataType::kF8E5M2:
      return fmt::format("{}", FloatFromF8E5M2(bytes[0]));
    default:
      return WithPatternType(type, [&]<DataType kType>() {
        return fmt::format("{}", Load<typename PatternEncoding<kType>::Word>(bytes));
      });
  }
}

// "1.5 (0x3e00)".
std::string FormatElement(DataType type, const unsigned char* bytes) {
  const auto size = static_cast<std::size_t>(SizeOf(type));
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  return fmt::format("{} (0x{:0{}x})", TextOf(type, bytes), bits, 2 * size);
}

// Counts and names the elements of a block that differ; its first is element `begin` of the buffer.
void Locate(DataType type, const unsigned char* expected, const unsigned char* got,
            std::int64_t begin, std::int64_t count, CheckReport& report) {
  const auto size = static_cast<std::size_t>(SizeOf(type));
  for (std::int64_t i = 0; i < count; ++i, expected += size, got += size) {
    if (std::memcmp(expected, got, size) == 0) continue;
    ++report.wrong;
    if (report.first.size() >= CheckReport::kReported) continue;
    report.first.push_back({.element = begin + i,
                            .expected = FormatElement(type, expected),
                            .got = FormatElement(type, got)});
  }
}

// A quiet NaN with a payload, or the smallest (u8: largest) integer, repeated.
std::uint64_t PoisonOf(DataType type) {
  static constexpr std::uint64_t kPoisons[] = {
      0x7ead, 0x7fed, 0x7fdeadbf, 0x7ffdeadbeefdeadb, 0x80, 0x80000000, 0x8000000000000000,
      0xff,   0x7f,   0x7f};
  static_assert(std::size(kPoisons) == kDataTypeCount);
  return kPoisons[static_cast<std::size_t>(type)];
}

}  // namespace

Pattern::Pattern(std::uint64_t seed, const Operation& operation, int world_size,
                 PatternMemory* memory)
    : seed_(seed), operation_(operation), world_size_(world_size), memory_(memory) {
  LOCKSTEP_CHECK(world_size >= 1 && world_size <= kMaxWorldSize, "world size out of range");
  LOCKSTEP_CHECK(operation.count >= 0, "a negative count");
  weight_total_ = TotalWeightOf(TermsOf(operation, world_size));
}

PatternPiece Pattern::PieceOf(std::uint64_t stream, std::int64_t begin, std::int64_t count,
                              int rank, bool result) const {
  return PatternPiece{.type = operation_.type,
                      .rule = RuleOf(operation_),
                      .result = result,
                      .rank = static_cast<std::uint32_t>(rank),
                      .stream = stream,
                      .begin = begin,
                      .count = count,
                      .terms = TermsOf(operation_, world_size_, weight_total_)};
}

void Pattern::FillSend(void* data, std::int64_t begin, std::int64_t count, int rank,
                       std::uint64_t stamp) const {
  LOCKSTEP_CHECK(begin >= 0 && count >= 0, "a range of elements");
  if (memory_ != nullptr) {
    const std::uint64_t stream = StreamOf(seed_, stamp, operation_, rank);
    return memory_->Generate(PieceOf(stream, begin, count, rank, /*result=*/false), data);
  }
  const PatternTerms terms = TermsOf(operation_, world_size_, weight_total_);
  const Generator generate = GeneratorOf<false>(operation_);
  auto* const bytes = static_cast<unsigned char*>(data);
  const std::int64_t size = SizeOf(operation_.type);
  ForEachBlock(StreamOf(seed_, stamp, operation_, rank), begin, count,
               [&](std::uint64_t key, std::uint32_t first, std::uint32_t n, std::int64_t done) {
                 generate(terms, static_cast<std::uint32_t>(rank), key, first, n,
                          bytes + done * size);
               });
}

void Pattern::Poison(void* data, std::int64_t begin, std::int64_t count) const {
  LOCKSTEP_CHECK(begin >= 0 && count >= 0, "a range of elements");
  const auto size = static_cast<std::size_t>(SizeOf(operation_.type));
  const std::uint64_t poison = PoisonOf(operation_.type);
  if (memory_ != nullptr) return memory_->Fill(operation_.type, poison, data, count);
  std::array<unsigned char, 64 * 8> line;
  for (std::size_t i = 0; i < 64; ++i) std::memcpy(line.data() + i * size, &poison, size);
  auto* bytes = static_cast<unsigned char*>(data);
  for (std::int64_t left = count; left > 0; left -= 64) {
    const std::size_t n = static_cast<std::size_t>(std::min<std::int64_t>(left, 64)) * size;
    std::memcpy(bytes, line.data(), n);
    bytes += n;
  }
}

void Pattern::CheckRecv(const void* data, std::int64_t begin, std::int64_t count, int rank,
                        std::uint64_t stamp, CheckReport& report) const {
  LOCKSTEP_CHECK(begin >= 0 && count >= 0, "a range of elements");
  switch (operation_.collective) {
    case Collective::kBarrier:
    case Collective::kSend:
      return;
    case Collective::kAllReduce:
      return CheckFrom({.sender = rank}, data, begin, count, stamp, report);
    case Collective::kReduce:
      if (rank != operation_.root) return;
      return CheckFrom({.sender = rank}, data, begin, count, stamp, report);
    case Collective::kBroadcast:
    case Collective::kRecv:
      return CheckFrom({.sender = operation_.root}, data, begin, count, stamp, report);
    case Collective::kReduceScatter:
      return CheckFrom({.sender = rank, .shift = rank * operation_.count}, data, begin, count,
                       stamp, report);
    case Collective::kAllGather:
      return CheckGathered(data, begin, count, stamp, report);
  }
}

void Pattern::CheckGathered(const void* data, std::int64_t begin, std::int64_t count,
                            std::uint64_t stamp, CheckReport& report) const {
  const auto* bytes = static_cast<const unsigned char*>(data);
  const std::int64_t end = begin + count;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t sender = at / operation_.count;
    const std::int64_t n = std::min(end, (sender + 1) * operation_.count) - at;
    CheckFrom({.sender = static_cast<int>(sender), .shift = -sender * operation_.count}, bytes, at,
              n, stamp, report);
    bytes += n * SizeOf(operation_.type);
    at += n;
  }
}

void Pattern::CheckElsewhere(const PatternPiece& piece, const void* data, std::int64_t begin,
                             CheckReport& report) const {
  const PatternDifference difference = memory_->Compare(piece, data);
  report.wrong += difference.wrong;
  if (difference.wrong == 0 || report.first.size() >= CheckReport::kReported) return;
  std::uint64_t expected = 0;
  WithPatternType(piece.type, [&]<DataType kType>() {
    const auto word = PatternElement<kType>(piece, piece.begin + difference.first);
    std::memcpy(&expected, &word, sizeof(word));
  });
  const auto text = [&](const std::uint64_t& bits) {
    return FormatElement(piece.type, reinterpret_cast<const unsigned char*>(&bits));
  };
  report.first.push_back({.element = begin + difference.first,
                          .expected = text(expected),
                          .got = text(difference.got)});
}

void Pattern::CheckFrom(Source source, const void* data, std::int64_t begin, std::int64_t count,
                        std::uint64_t stamp, CheckReport& report) const {
  const PatternTerms terms = TermsOf(operation_, world_size_, weight_total_);
  const Generator generate = GeneratorOf<true>(operation_);
  const auto* const bytes = static_cast<const unsigned char*>(data);
  const std::int64_t size = SizeOf(operation_.type);
  alignas(64) std::array<unsigned char, kBlock * 8> expected;
  report.checked += count;
  const std::uint64_t stream = StreamOf(seed_, stamp, operation_, source.sender);
  if (memory_ != nullptr) {
    const PatternPiece piece = PieceOf(stream, begin + source.shift, count, 0, /*result=*/true);
    return CheckElsewhere(piece, data, begin, report);
  }
  ForEachBlock(stream, begin + source.shift, count,
               [&](std::uint64_t key, std::uint32_t first, std::uint32_t n, std::int64_t done) {
                 generate(terms, 0, key, first, n, expected.data());
                 const unsigned char* got = bytes + done * size;
                 const std::size_t length = n * static_cast<std::size_t>(size);
                 if (std::memcmp(expected.data(), got, length) == 0) return;
                 Locate(operation_.type, expected.data(), got, begin + done, n, report);
               });
}

}  // namespace lockstep::collective
