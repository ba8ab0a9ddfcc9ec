// The first line of a finding: who does what, in which call, and whom it keeps. At 3 a.m. a person
// reads one line.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::verdict {

// One line of at most kMostWords words, however it was made.
class Headline {
 public:
  // 25 with the verdict and the name of a case before it: "FAIL: exit/rank1: rank 1 …".
  static constexpr std::size_t kMostWords = 23;

  Headline() = default;
  // What is too long is cut.
  explicit Headline(std::string_view sentence);
  // As fmt::format makes it, here and in Add.
  template <typename First, typename... More>
  explicit Headline(fmt::format_string<First, More...> sentence, First&& first, More&&... more)
      : Headline(fmt::format(sentence, std::forward<First>(first), std::forward<More>(more)...)) {}
  // Of a message "a: b; c" the first clause and those of the others that fit.
  static Headline Of(std::string_view message);

  // Adds a clause with its separator ("; rank 0 waits for it"), or nothing where it does not fit:
  // what matters most is added first.
  Headline& Add(std::string_view clause);
  template <typename First, typename... More>
  Headline& Add(fmt::format_string<First, More...> clause, First&& first, More&&... more) {
    return Add(fmt::format(clause, std::forward<First>(first), std::forward<More>(more)...));
  }

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend bool operator==(const Headline&, const Headline&) = default;
  // What a failed test shows.
  friend void PrintTo(const Headline& headline, std::ostream* out) { *out << headline.text_; }

 private:
  std::string text_;
};

// So many words of a text from outside (a library's error), on one line.
std::string FirstWords(std::string_view text, std::size_t most);

}  // namespace lockstep::verdict
