// The command line of a program: options, flags, subcommands, --help. CLI11 does the parsing; its
// header costs seconds of compile time, so argument_parser.cc alone includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep {

// Variables that options fill must outlive Parse.
class ArgumentParser {
 public:
  // Narrows what one option takes; each verb returns the option itself.
  class Option {
   public:
    explicit Option(void* option) : option_(option) {}
    Option Required();
    Option ShowDefault();  // --help prints what the variable holds now
    Option OneOf(const std::vector<std::string>& words);
    // A word of earlier versions is an error that names today's.
    Option WordRenamed(const std::string& old, const std::string& now);
    // Of a flag that took a value in earlier versions: which option takes it now.
    Option ValueMoved(const std::string& now);
    Option Between(std::int64_t least, std::int64_t most);
    Option BetweenReals(double least, double most);
    Option SplitAtCommas();
    Option OneWordEach();  // of a list: one word after each naming of the option
    Option AnyNumber();    // of a list: also no word at all
    // At most `most` words; without one the option means `value`.
    Option WithoutWordMeans(int most, const std::string& value);

   private:
    void* option_;  // a CLI::Option
  };

  // Has --help, and --version as core/base/version.h tells it.
  ArgumentParser(const std::string& description, const std::string& program);
  ArgumentParser(ArgumentParser&&) noexcept;
  ~ArgumentParser();

  // `names`: "-n,--iters=COUNT"; a name without dashes is a positional. Behind `=` stands the shape
  // of a value, as docs/option_words.md explains shapes. T: std::string, a vector of them, int,
  // std::int64_t, std::uint64_t or double, or the std::optional of a number. A TIME is read with
  // its unit ("250ms"), a COUNT also as "1K"; no number is infinite.
  template <typename T>
  Option Add(const std::string& names, T& value, const std::string& help);
  // A name that begins with `!` clears the variable.
  Option Flag(const std::string& names, bool& value, const std::string& help);

  // Names that this program does not know, with the reason in the error. --help is silent of them.
  void Refuse(const std::string& names, const std::string& why);
  // A spelling of earlier versions.
  void Renamed(const std::string& old, const std::string& now);

  // A subcommand with options of its own. Once any was added, one of them must be named; Parse
  // calls the chosen one's `chosen`.
  ArgumentParser Subcommand(const std::string& name, const std::string& description,
                            std::function<void()> chosen);
  void KeepUnknown(std::vector<std::string>& words);  // what no option takes, instead of an error

  void Footer(const std::string& text);  // below --help's options

  // Fills the variables. The text to print when --help or --version was asked for, otherwise none.
  // kInvalidInput names the word that is wrong, and --help.
  Result<std::optional<std::string>> Parse(std::vector<std::string> arguments);
  Result<std::optional<std::string>> Parse(int argc, const char* const* argv);

  // Was the option on the command line?
  [[nodiscard]] bool Given(std::string_view name) const;

 private:
  struct Impl;
  explicit ArgumentParser(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
