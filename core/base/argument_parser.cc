// The only file that includes CLI11: each of its users would compile it again. Options are handed
// out as untyped pointers for that reason, and are turned back here alone.
#include "core/base/argument_parser.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "core/base/version.h"

namespace lockstep {
namespace {

std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// CLI11 says only that a subcommand is missing when the word given is none.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining();
  const auto known = app.get_subcommands([](const CLI::App*) { return true; });
  const bool unknown = !known.empty() && app.get_subcommands().empty() && !words.empty();
  if (!unknown || words.front().starts_with('-')) return OneLine(error.what());
  std::string names;
  for (const CLI::App* each : known) names += " " + each->get_name();
  return fmt::format("'{}' is not a subcommand; choose from:{}", OneLine(words.front()), names);
}

CLI::Option& Of(void* option) { return *static_cast<CLI::Option*>(option); }

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

Option Option::OneOf(std::vector<std::string> words) {
  Of(option_).check(CLI::IsMember(std::move(words)));
  return *this;
}

Option Option::Between(std::int64_t least, std::int64_t most) {
  Of(option_).check(CLI::Range(least, most));
  return *this;
}

Option Option::BetweenReals(double least, double most) {
  Of(option_).check(CLI::Range(least, most));
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
  impl_->app->set_version_flag("--version", program + " " + ThisVersionText(),
                               "Print the version and exit");
}

ArgumentParser::ArgumentParser(ArgumentParser&&) noexcept = default;
ArgumentParser::~ArgumentParser() = default;

template <typename T>
Option ArgumentParser::Add(const std::string& names, T& value, const std::string& help) {
  return Option(impl_->app->add_option(names, value, help));
}

template Option ArgumentParser::Add(const std::string&, std::string&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option ArgumentParser::Add(const std::string&, int&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::int64_t&, const std::string&);
template Option ArgumentParser::Add(const std::string&, std::uint64_t&, const std::string&);
template Option ArgumentParser::Add(const std::string&, double&, const std::string&);

void ArgumentParser::Flag(const std::string& names, bool& value, const std::string& help) {
  impl_->app->add_flag(names, value, help);
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
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  CLI::App& app = *impl_->app;
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return std::optional(app.help());  // of the subcommand, if one was named
  } catch (const CLI::CallForVersion&) {
    return std::optional(app.version() + "\n");
  } catch (const CLI::ParseError& error) {
    return InvalidInput(fmt::format("{}; see {} --help", Explain(app, error), app.get_name()));
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
