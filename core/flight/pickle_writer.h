// Writes data as a pickle of protocol 2, as PyTorch's own writer does: a text is written once and
// then referred to.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep::flight {

// Containers are opened and closed: BeginList, items, EndList; BeginDictionary, Text (a key), its
// value, …, EndDictionary.
class PickleWriter {
 public:
  PickleWriter() { bytes_ = {'\x80', '\x02'}; }

  void None() { bytes_ += 'N'; }
  void Bool(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void Integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
      bytes_ += 'K';
      Append(static_cast<std::uint64_t>(value), 1);
    } else if (value == static_cast<std::int32_t>(value)) {
      bytes_ += 'J';
      Append(static_cast<std::uint64_t>(value), 4);
    } else {
      bytes_ += "\x8a\x08";
      Append(static_cast<std::uint64_t>(value), 8);
    }
  }
  void Real(double value) {
    bytes_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  void Text(std::string_view text) {
    const auto [known, is_new] = memo_.emplace(text, memo_.size());
    bytes_ += is_new ? 'X' : 'j';
    if (!is_new) return Append(known->second, 4);
    Append(text.size(), 4);
    bytes_ += text;
    bytes_ += 'r';
    Append(known->second, 4);
  }
  void BeginList() { bytes_ += "]("; }
  void EndList() { bytes_ += 'e'; }
  void BeginDictionary() { bytes_ += "}("; }
  void EndDictionary() { bytes_ += 'u'; }
  void Pair(std::string_view first, std::string_view second) {
    Text(first);
    Text(second);
    bytes_ += '\x86';
  }
  // Ends the pickle.
  std::string Take() {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  void Append(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  std::string bytes_;
  std::unordered_map<std::string, std::uint64_t> memo_;
};

}  // namespace lockstep::flight
