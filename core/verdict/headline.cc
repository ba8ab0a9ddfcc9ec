// A headline is bounded where it is made: words beyond the last are left out, and whole clauses are
// added only as long as they fit.
#include "core/verdict/headline.h"

#include <algorithm>

namespace lockstep::verdict {
namespace {

// A path, or a mangled name; no sentence is of such words.
constexpr std::size_t kMostBytesOfAWord = 120;

bool IsBlank(char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }

std::size_t WordsIn(std::string_view text) {
  std::size_t words = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    words += !IsBlank(text[i]) && (i == 0 || IsBlank(text[i - 1]));
  }
  return words;
}

// Never in the middle of a character of several bytes.
std::string_view Shortened(std::string_view word) {
  std::size_t bytes = std::min(word.size(), kMostBytesOfAWord);
  const auto continues = [&](std::size_t at) {
    return at < word.size() && (static_cast<unsigned char>(word[at]) & 0xc0) == 0x80;
  };
  while (bytes > 0 && continues(bytes)) --bytes;
  return word.substr(0, bytes);
}

// Where the next "; …" or ": …" begins.
std::size_t NextClause(std::string_view text, std::size_t from) {
  return std::min(text.find("; ", from), text.find(": ", from));
}

}  // namespace

std::string FirstWords(std::string_view text, std::size_t most) {
  std::string line;
  std::size_t words = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && !IsBlank(text[end])) ++end;
    if (end > i && words == most) return line + "…";
    if (end > i) {
      if (words++ > 0) line += ' ';
      line += Shortened(text.substr(i, end - i));
    }
    i = end + 1;
  }
  return line;
}

Headline::Headline(std::string_view sentence) : text_(FirstWords(sentence, kMostWords)) {}

Headline Headline::Of(std::string_view message) {
  std::size_t begin = NextClause(message, 0);
  Headline headline(message.substr(0, begin));
  bool whole = true;  // the clause before is there: what explains it may follow
  while (begin != std::string_view::npos) {
    const std::size_t end = NextClause(message, begin + 1);
    if (whole || message[begin] == ';') {
      const std::string before = headline.text_;
      headline.Add(message.substr(begin, end - begin));
      whole = headline.text_ != before;
    }
    begin = end;
  }
  return headline;
}

Headline& Headline::Add(std::string_view clause) {
  const std::string whole = text_ + std::string(clause);
  if (WordsIn(whole) <= kMostWords) text_ = FirstWords(whole, kMostWords);
  return *this;
}

}  // namespace lockstep::verdict
