// Opcodes: CPython's Lib/pickletools.py; what PyTorch writes: torch/csrc/jit/serialization/pickler.
#include <fmt/core.h>

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "core/flight/document.h"

namespace lockstep::flight {
namespace {

using Kind = FlightValue::Kind;

// What asks for an object of the reading program, or for its help.
constexpr std::pair<std::uint8_t, const char*> kForbidden[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {0x82, "EXT1"},
    {0x83, "EXT2"},     {0x84, "EXT4"},         {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

class PickleReader {
 public:
  PickleReader(std::string bytes, const std::string& name) : name_(name) {
    bytes_ = document_.Own(std::move(bytes));
  }

  Result<FlightDocument> Read() {
    while (!stopped_) {
      start_ = next_;
      if (left() == 0) return Error("ends before its STOP: it is cut off");
      LOCKSTEP_RETURN_IF_ERROR(Do(static_cast<std::uint8_t>(bytes_[next_++])));
      if (stack_.size() > kStackMax) return Error("keeps too much on its stack");
    }
    return std::move(document_);
  }

 private:
  static constexpr std::size_t kStackMax = std::size_t{1} << 24;

  Status Error(const std::string& what) const {
    return InvalidInput("{}: {} (offset {}); take the dump again, or name the directory of another",
                        name_, what, start_);
  }
  Status Refuse(std::uint8_t opcode) const {
    for (const auto& [forbidden, name] : kForbidden) {
      if (forbidden != opcode) continue;
      return InvalidInput(
          "{}: opcode {} at offset {} asks for code, and a dump is data only: nothing of the file "
          "was run; do not trust it, and do not load it with Python",
          name_, name, start_);
    }
    return Error(fmt::format("opcode 0x{:02x} is none of the data of protocol 2 to 5", opcode));
  }
  Status CutOff() const { return Error("is cut off within an opcode"); }

  std::size_t left() const { return bytes_.size() - next_; }
  // `size` bytes, little endian.
  Result<std::uint64_t> Number(std::size_t size) {
    if (left() < size) return CutOff();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[next_ + i])} << (8 * i);
    }
    next_ += size;
    return value;
  }

  Status Push(FlightValue value) {
    stack_.push_back(value);
    return OkStatus();
  }
  Status Text(std::size_t length_bytes) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t length, Number(length_bytes));
    if (length > left()) return CutOff();
    if (length > std::numeric_limits<std::uint32_t>::max()) return Error("holds a text too long");
    const FlightValue value = FlightText(bytes_.substr(next_, length));
    next_ += length;
    return Push(value);
  }
  Status Integer(std::size_t size, bool is_signed) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::uint64_t value, Number(size));
    if (is_signed && size < 8 && size > 0 && (value >> (8 * size - 1)) != 0) {
      value |= ~std::uint64_t{0} << (8 * size);
    }
    return Push(FlightInteger(static_cast<std::int64_t>(value)));
  }
  Status Long(std::size_t length_bytes) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t length, Number(length_bytes));
    // Some unsigned 64-bit numbers need a ninth byte, which is 0.
    if (length == 9 && left() >= 9 && bytes_[next_ + 8] == 0) {
      LOCKSTEP_RETURN_IF_ERROR(Integer(8, false));
      ++next_;
      return OkStatus();
    }
    if (length > 8) return Error("holds an integer of more than 64 bits");
    return Integer(length, true);
  }
  Status Real() {
    if (left() < 8) return CutOff();
    std::uint64_t bits = 0;  // big endian
    for (std::size_t i = 0; i < 8; ++i) {
      bits = bits << 8 | static_cast<std::uint8_t>(bytes_[next_ + i]);
    }
    next_ += 8;
    return Push(FlightReal(std::bit_cast<double>(bits)));
  }

  // Where the items above the newest mark begin; the mark is taken away.
  Result<std::size_t> PopMark() {
    if (marks_.empty()) return Error("wants a mark that is not there");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }
  // Items of this and the enclosing mark must stay apart.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Status Need(std::size_t values) const {
    if (stack_.size() < floor() + values) return Error("takes more from its stack than is there");
    return OkStatus();
  }

  Status NewList(bool empty) {
    FlightValue value;
    if (!document_.AddList(value)) return Error("holds too many lists");
    std::size_t begin = stack_.size();
    if (!empty) {
      LOCKSTEP_ASSIGN_OR_RETURN(begin, PopMark());
    }
    return Collect(value, begin);
  }
  Status Tuple(std::size_t values) {
    LOCKSTEP_RETURN_IF_ERROR(Need(values));
    FlightValue value;
    if (!document_.AddList(value)) return Error("holds too many lists");
    return Collect(value, stack_.size() - values);
  }
  Status Collect(FlightValue list, std::size_t begin) {
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
    document_.ListOf(list).assign(first, stack_.end());
    stack_.erase(first, stack_.end());
    return Push(list);
  }
  Status NewDictionary(bool empty) {
    FlightValue value;
    if (!document_.AddDictionary(value)) return Error("holds too many dictionaries");
    if (empty) return Push(value);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::size_t begin, PopMark());
    stack_.insert(stack_.begin() + static_cast<std::ptrdiff_t>(begin), value);
    return Fill(begin + 1);
  }
  Status Append(std::size_t begin) {
    if (begin <= floor() || !stack_[begin - 1].Is(Kind::kList)) {
      return Error("appends to what is no list");
    }
    auto& list = document_.ListOf(stack_[begin - 1]);
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
    list.insert(list.end(), first, stack_.end());
    stack_.erase(first, stack_.end());
    return OkStatus();
  }
  Status Fill(std::size_t begin) {
    if (begin <= floor() || !stack_[begin - 1].Is(Kind::kDictionary)) {
      return Error("sets items of what is no dictionary");
    }
    if ((stack_.size() - begin) % 2 != 0) return Error("has a key without a value");
    auto& dictionary = document_.DictionaryOf(stack_[begin - 1]);
    for (std::size_t i = begin; i < stack_.size(); i += 2) {
      dictionary.emplace_back(stack_[i], stack_[i + 1]);
    }
    stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    return OkStatus();
  }

  // Writers number their memo from 0 upwards.
  Status Put(std::uint64_t index) {
    LOCKSTEP_RETURN_IF_ERROR(Need(1));
    if (index > memo_.size()) return Error("numbers its memo out of order");
    if (index == memo_.size()) memo_.emplace_back();
    memo_[index] = stack_.back();
    return OkStatus();
  }
  Status PutNumbered(std::size_t size) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t index, Number(size));
    return Put(index);
  }
  Status Get(std::size_t size) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t index, Number(size));
    if (index >= memo_.size()) return Error("gets from its memo what was not put there");
    return Push(memo_[index]);
  }

  Status Protocol() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t protocol, Number(1));
    if (protocol < 2 || protocol > 5) {
      return Error(fmt::format("is a pickle of protocol {}, and 2 to 5 are read", protocol));
    }
    return OkStatus();
  }
  Status Frame() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::uint64_t length, Number(8));
    return length > left() ? CutOff() : OkStatus();
  }
  Status Stop() {
    LOCKSTEP_RETURN_IF_ERROR(Need(1));
    if (stack_.size() != 1 || !marks_.empty()) return Error("leaves more than one value");
    document_.root = stack_.back();
    stopped_ = true;
    return OkStatus();
  }
  Status ToItems(bool dictionary) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::size_t begin, PopMark());
    return dictionary ? Fill(begin) : Append(begin);
  }
  Status ToItem(std::size_t values, bool dictionary) {
    LOCKSTEP_RETURN_IF_ERROR(Need(values + 1));
    const std::size_t begin = stack_.size() - values;
    return dictionary ? Fill(begin) : Append(begin);
  }
  Status Pop() {
    if (stack_.size() == floor() && !marks_.empty()) {
      marks_.pop_back();
      return OkStatus();
    }
    LOCKSTEP_RETURN_IF_ERROR(Need(1));
    stack_.pop_back();
    return OkStatus();
  }
  Status PopToMark() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::size_t begin, PopMark());
    stack_.resize(begin);
    return OkStatus();
  }
  Status Duplicate() {
    LOCKSTEP_RETURN_IF_ERROR(Need(1));
    return Push(stack_.back());
  }

  Status Mark() {
    marks_.push_back(stack_.size());
    return marks_.size() <= kStackMax ? OkStatus() : Error("sets too many marks");
  }

  struct Row {
    std::string_view opcodes;
    Status (*run)(PickleReader& reader);
  };
  static const Row kRows[];

  Status Do(std::uint8_t opcode);

  const std::string& name_;
  FlightDocument document_;
  std::string_view bytes_;
  std::size_t next_ = 0;
  std::size_t start_ = 0;  // of the opcode
  bool stopped_ = false;
  std::vector<FlightValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<FlightValue> memo_;
};

const PickleReader::Row PickleReader::kRows[] = {
    {"\x80", [](PickleReader& r) { return r.Protocol(); }},
    {"\x95", [](PickleReader& r) { return r.Frame(); }},
    {".", [](PickleReader& r) { return r.Stop(); }},
    {"(", [](PickleReader& r) { return r.Mark(); }},
    {"0", [](PickleReader& r) { return r.Pop(); }},
    {"1", [](PickleReader& r) { return r.PopToMark(); }},
    {"2", [](PickleReader& r) { return r.Duplicate(); }},
    // Single values.
    {"N", [](PickleReader& r) { return r.Push(FlightValue()); }},
    {"\x88", [](PickleReader& r) { return r.Push(FlightBool(true)); }},
    {"\x89", [](PickleReader& r) { return r.Push(FlightBool(false)); }},
    {"J", [](PickleReader& r) { return r.Integer(4, true); }},
    {"K", [](PickleReader& r) { return r.Integer(1, false); }},
    {"M", [](PickleReader& r) { return r.Integer(2, false); }},
    {"\x8a", [](PickleReader& r) { return r.Long(1); }},
    {"\x8b", [](PickleReader& r) { return r.Long(4); }},
    {"G", [](PickleReader& r) { return r.Real(); }},
    {"CU\x8c", [](PickleReader& r) { return r.Text(1); }},
    {"XBT", [](PickleReader& r) { return r.Text(4); }},
    {"\x8d\x8e\x96", [](PickleReader& r) { return r.Text(8); }},
    // Tuples and sets (\x8f, \x91) become lists.
    {"]\x8f", [](PickleReader& r) { return r.NewList(true); }},
    {"lt\x91", [](PickleReader& r) { return r.NewList(false); }},
    {")", [](PickleReader& r) { return r.Tuple(0); }},
    {"\x85", [](PickleReader& r) { return r.Tuple(1); }},
    {"\x86", [](PickleReader& r) { return r.Tuple(2); }},
    {"\x87", [](PickleReader& r) { return r.Tuple(3); }},
    {"}", [](PickleReader& r) { return r.NewDictionary(true); }},
    {"d", [](PickleReader& r) { return r.NewDictionary(false); }},
    {"a", [](PickleReader& r) { return r.ToItem(1, false); }},
    {"e\x90", [](PickleReader& r) { return r.ToItems(false); }},
    {"s", [](PickleReader& r) { return r.ToItem(2, true); }},
    {"u", [](PickleReader& r) { return r.ToItems(true); }},
    // The memo.
    {"q", [](PickleReader& r) { return r.PutNumbered(1); }},
    {"r", [](PickleReader& r) { return r.PutNumbered(4); }},
    {"\x94", [](PickleReader& r) { return r.Put(r.memo_.size()); }},
    {"h", [](PickleReader& r) { return r.Get(1); }},
    {"j", [](PickleReader& r) { return r.Get(4); }},
};

Status PickleReader::Do(std::uint8_t opcode) {
  using Run = Status (*)(PickleReader&);
  static const std::array<Run, 256> kRuns = [] {
    std::array<Run, 256> runs = {};
    for (const Row& row : kRows) {
      for (const char one : row.opcodes) runs[static_cast<std::uint8_t>(one)] = row.run;
    }
    return runs;
  }();
  const Run run = kRuns[opcode];
  return run != nullptr ? run(*this) : Refuse(opcode);
}

}  // namespace

Result<FlightDocument> ReadPickle(std::string bytes, const std::string& name) {
  return PickleReader(std::move(bytes), name).Read();
}

}  // namespace lockstep::flight
