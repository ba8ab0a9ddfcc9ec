// The only file that includes CLI11: each of its users would compile it again. Options are handed
// out as untyped pointers for that reason, and are turned back here alone.
#include "core/base/argument_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/units.h"
#include "core/base/version.h"
#include "core/base/wrap.h"

namespace lockstep {
namespace {

// CLI11 calls an option by its long name; the reader may have typed the short one.
std::string WithAllNames(const CLI::App& app, std::string text) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (!text.starts_with(name + ":")) continue;
    return option->get_name(/*positional=*/false, /*all_options=*/true) + text.substr(name.size());
  }
  for (const CLI::App* named : app.get_subcommands()) text = WithAllNames(*named, std::move(text));
  return text;
}

// CLI11 says only that a subcommand is missing when the word given is none.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining();
  const auto known = app.get_subcommands([](const CLI::App*) { return true; });
  const bool unknown = !known.empty() && app.get_subcommands().empty() && !words.empty();
  if (!unknown || words.front().starts_with('-')) return WithAllNames(app, OneLine(error.what()));
  std::string names;
  for (const CLI::App* each : known) names += " " + each->get_name();
  return fmt::format("'{}' is not a subcommand; choose from:{}", OneLine(words.front()), names);
}

CLI::Option& Of(void* option) { return *static_cast<CLI::Option*>(option); }

// CLI11 prints what it keeps for itself: "{false}" of a flag that clears its variable, "[a]" of a
// list, and for a default what an option means that stands alone.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    constexpr std::string_view kCleared = "{false}";
    for (std::size_t at; (at = name.find(kCleared)) != std::string::npos;) {
      name.erase(at, kCleared.size());
    }
    return name;
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = " " + option->get_type_name();
    std::string value = option->get_default_str();
    if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
    if (!value.empty() && option->get_expected_min() > 0) text += "=" + value;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text + (option->get_required() ? " REQUIRED" : "");
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    const std::string head = make_option_name(option, positional) + make_option_opts(option);
    // Two blanks before the help, or a new line.
    if (head.size() + 4 > column_width_) {
      return fmt::format("  {}\n{:{}}{}\n", head, "", column_width_, make_option_desc(option));
    }
    return fmt::format("  {:{}}{}\n", head, column_width_ - 2, make_option_desc(option));
  }
};

// Options that are not in --help leave an empty line.
std::string WithoutGaps(std::string help) {
  for (std::size_t at; (at = help.find("\n\n\n")) != std::string::npos;) help.erase(at, 1);
  if (help.ends_with("\n\n")) help.pop_back();
  return help;
}

// "--timeout=TIME": the names, and the shape of what they take.
std::pair<std::string, std::string> NamesAndShape(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

template <typename T, typename... Those>
constexpr bool kIsOf = (... ||
                        (std::is_same_v<T, Those> || std::is_same_v<T, std::optional<Those>>));

// Replaces the word by a number that CLI11 reads, or tells why it is none.
template <typename Number>
void ReadBy(CLI::Option& option, Result<Number> (*parse)(const std::string& word)) {
  option.transform(CLI::Validator(
      [parse](std::string& word) {
        const Result<Number> number = parse(word);
        if (!number.ok()) return number.status().message();
        word = fmt::format("{}", *number);
        return std::string();
      },
      ""));
}

Result<double> ReadTime(const std::string& word) {
  const Result<double> seconds = ParseSeconds("", word);
  if (seconds.ok()) return seconds;
  return InvalidInput(seconds.status().message().substr(2));  // behind the option's name
}

Result<std::int64_t> ReadCount(const std::string& word) {
  const Result<std::int64_t> bytes = ParseBytes("", word);
  if (bytes.ok()) return bytes;
  return InvalidInput("'{}' is not a count", word);
}

Result<double> ReadReal(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  if (whole && std::isfinite(value)) return value;
  return InvalidInput("'{}' is not a number", word);
}

CLI::Validator Bounded(CLI::Validator range, const std::string& least, const std::string& most) {
  return range.description(fmt::format("{}..{}", least, most));
}

}  // namespace

using Option = ArgumentParser::Option;

Option Option::Required() {
  Of(option_).required();
  return *this;
}

Option Option::ShowDefault() {
  Of(option_).capture_default_str();
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& words) {
  Of(option_).check(CLI::Validator(
      [words](const std::string& word) {
        if (std::ranges::find(words, word) != words.end()) return std::string();
        return fmt::format("'{}' is none of {}", word, fmt::join(words, ", "));
      },
      fmt::format("{{{}}}", fmt::join(words, ","))));
  return *this;
}

Option Option::WordRenamed(const std::string& old, const std::string& now) {
  Of(option_).transform(CLI::Validator(
      [old, now](const std::string& word) {
        return word == old ? fmt::format("'{}' is called '{}' now", old, now) : std::string();
      },
      ""));
  return *this;
}

Option Option::ValueMoved(const std::string& now) {
  Of(option_).check(CLI::Validator(
      [now](const std::string& word) {
        const bool alone = word == "true" || word == "false";
        return alone ? std::string() : fmt::format("takes no value now; write {}{}", now, word);
      },
      ""));
  return *this;
}

Option Option::Between(std::int64_t least, std::int64_t most) {
  Of(option_).check(
      Bounded(CLI::Range(least, most), fmt::format("{}", least), fmt::format("{}", most)));
  return *this;
}

Option Option::BetweenReals(double least, double most) {
  Of(option_).check(
      Bounded(CLI::Range(least, most), fmt::format("{:g}", least), fmt::format("{:g}", most)));
  return *this;
}

Option Option::SplitAtCommas() {
  Of(option_).delimiter(',');
  return *this;
}

Option Option::OneWordEach() {
  Of(option_).allow_extra_args(false);
  return *this;
}

Option Option::AnyNumber() {
  Of(option_).expected(0, CLI::detail::expected_max_vector_size);
  return *this;
}

Option Option::WithoutWordMeans(int most, const std::string& value) {
  Of(option_).expected(0, most)->default_str(value);
  return *this;
}

struct ArgumentParser::Impl {
  std::unique_ptr<CLI::App> owned;  // of the program; a subcommand's belongs to the program's
  CLI::App* app = nullptr;
};

ArgumentParser::ArgumentParser(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ArgumentParser::ArgumentParser(const std::string& description, const std::string& program)
    : impl_(std::make_unique<Impl>()) {
  impl_->owned = std::make_unique<CLI::App>(description, program);
  impl_->app = impl_->owned.get();
  impl_->app->formatter(std::make_shared<HelpFormatter>());
  impl_->app->set_version_flag("--version", program + " " + ThisVersionText(),
                               "Print the version and exit");
}

ArgumentParser::ArgumentParser(ArgumentParser&&) noexcept = default;
ArgumentParser::~ArgumentParser() = default;

template <typename T>
Option ArgumentParser::Add(const std::string& names, T& value, const std::string& help) {
  const auto [spelled, shape] = NamesAndShape(names);
  CLI::Option* option = impl_->app->add_option(spelled, value, help);
  if (!shape.empty()) option->type_name(shape);
  if constexpr (kIsOf<T, double>) {
    ReadBy(*option, shape == "TIME" ? &ReadTime : &ReadReal);
  } else if constexpr (kIsOf<T, int, std::int64_t, std::uint64_t>) {
    if (shape == "COUNT" || shape == "RANK") ReadBy(*option, &ReadCount);
  }
  return Option(option);
}

template Option ArgumentParser::Add(const std::string&, std::string&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option ArgumentParser::Add(const std::string&, int&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::int64_t&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::uint64_t&, const std::string&);
template Option ArgumentParser::Add(const std::string&, double&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::optional<int>&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::optional<std::int64_t>&,
                                    const std::string&);
template Option ArgumentParser::Add(const std::string&, std::optional<double>&, const std::string&);

Option ArgumentParser::Flag(const std::string& names, bool& value, const std::string& help) {
  return Option(impl_->app->add_flag(names, value, help));
}

void ArgumentParser::Refuse(const std::string& names, const std::string& why) {
  const std::size_t last = names.find_last_of(',');
  const std::string name = last == std::string::npos ? names : names.substr(last + 1);
  const CLI::callback_t refuse = [name, why](const CLI::results_t&) -> bool {
    throw CLI::ValidationError(name, why);
  };
  impl_->app->add_option(names, refuse)->expected(0, 1)->group("");  // "": not in --help
}

void ArgumentParser::Renamed(const std::string& old, const std::string& now) {
  Refuse(old, "is called " + now + " now");
}

ArgumentParser ArgumentParser::Subcommand(const std::string& name, const std::string& description,
                                          std::function<void()> chosen) {
  auto impl = std::make_unique<Impl>();
  impl->app = impl_->app->add_subcommand(name, description);
  impl->app->callback(std::move(chosen));
  impl_->app->require_subcommand(1);
  return ArgumentParser(std::move(impl));
}

void ArgumentParser::KeepUnknown(std::vector<std::string>& words) {
  CLI::App* app = impl_->app;
  app->allow_extras();
  app->parse_complete_callback([app, &words] { words = app->remaining(); });
}

void ArgumentParser::Footer(const std::string& text) { impl_->app->footer(text); }

Result<std::optional<std::string>> ArgumentParser::Parse(std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // as CLI11 wants them
  CLI::App& app = *impl_->app;
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return std::optional(WithoutGaps(app.help()));  // of the subcommand, if one was named
  } catch (const CLI::CallForVersion&) {
    return std::optional(app.version() + "\n");
  } catch (const CLI::ParseError& error) {
    std::string command = app.get_name();
    for (const CLI::App* named : app.get_subcommands()) command += " " + named->get_name();
    return InvalidInput("{}; see {} --help", Explain(app, error), command);
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>> ArgumentParser::Parse(int argc, const char* const* argv) {
  return Parse(std::vector<std::string>(argv + 1, argv + argc));
}

bool ArgumentParser::Given(std::string_view name) const {
  return impl_->app->count(std::string(name)) > 0;
}

}  // namespace lockstep
