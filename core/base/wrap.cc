#include "core/base/wrap.h"

#include <algorithm>

namespace lockstep {
namespace {

// All bytes but the continuations of UTF-8.
std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Wrap(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;  // of the last line; its words begin behind `start`
  std::size_t start = 0;
  while (!text.empty()) {
    // A word, with the spaces before it.
    const std::size_t word = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    const std::size_t width = Characters(text.substr(0, end));
    if (used > start && used + width > columns) {
      lines += "\n" + std::string(indent, ' ');
      used = start = indent;
      text.remove_prefix(word);
      continue;
    }
    lines += text.substr(0, end);
    used += width;
    text.remove_prefix(end);
  }
  return lines + "\n";
}

std::string OneLine(std::string_view text) {
  constexpr std::string_view kNamed = "\n\t\r", kNames = "ntr";
  constexpr std::string_view kDigits = "0123456789abcdef";
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t named = kNamed.find(c);
    if (byte >= ' ' && byte != 0x7f) {
      line += c;
    } else if (named != std::string_view::npos) {
      line += {'\\', kNames[named]};
    } else {
      line += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return line;
}

}  // namespace lockstep
