// `lockstep doctor`: the facts of this machine, judged against the known causes of hanging jobs.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/subcommand.h"
#include "core/base/clock.h"
#include "core/base/file_text.h"
#include "core/base/named_members.h"
#include "core/base/run_id.h"
#include "core/base/utc.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/environment/elf.h"
#include "core/environment/facts.h"
#include "core/environment/nvml.h"
#include "core/environment/rules.h"
#include "results/store/run_file.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kResolverSeconds = 3;

struct DoctorArguments {
  std::string format = "text";
  std::string output;
  std::string rules;
  std::string nvml_library;
  std::string nccl_library;
  bool facts = false;
  bool nagios = false;
};

struct Examination {
  environment::Facts facts;
  environment::Checkup checkup;
  std::set<std::string> nccl_rules;  // those that are about an NCCL library
};

environment::Facts Examine(const DoctorArguments& options) {
  environment::Facts facts = environment::HostFacts();
  const auto add = [&](const environment::Facts& more) {
    facts.insert(facts.end(), more.begin(), more.end());
  };
  add(environment::NetworkFacts(kResolverSeconds));
  add(environment::TopologyFacts());
  add(environment::LibraryFacts(options.nccl_library));
  const Result<std::unique_ptr<environment::Nvml>> nvml =
      environment::Nvml::Open(options.nvml_library);
  if (nvml.ok()) {
    add((*nvml)->Describe());
  } else {
    facts.emplace_back("gpu/count", "0");
    facts.emplace_back("gpu/none", nvml.status().message());
  }
  add(environment::VariableFacts());
  return facts;
}

Result<std::vector<environment::Rule>> RulesOf(const DoctorArguments& options) {
  if (options.rules.empty()) return environment::BuiltInRules();
  const std::optional<std::string> text = ReadText(options.rules);
  if (!text) {
    return InvalidInput("--rules-file: '{}' can't be read; name a TOML file of rules",
                        options.rules);
  }
  return environment::ParseRules(*text, options.rules);
}

std::size_t Count(const environment::Checkup& checkup, environment::Level level) {
  return static_cast<std::size_t>(
      std::ranges::count(checkup.ailments, level, &environment::Ailment::level));
}

std::string Counted(const std::string& count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == "1" ? "" : "s");
}

std::string Headline(const Examination& examination) {
  const environment::Checkup& checkup = examination.checkup;
  const std::size_t problems = Count(checkup, environment::Level::kProblem);
  const std::size_t warnings = Count(checkup, environment::Level::kWarning);
  const std::string* gpus = environment::Find(examination.facts, "gpu/count");
  const std::string where =
      fmt::format("{}, {} checked, {} can't be told here", Counted(gpus ? *gpus : "0", "GPU"),
                  Counted(std::to_string(checkup.checked), "rule"), checkup.unchecked.size());
  if (problems + warnings == 0) return fmt::format("no known cause of hangs is here ({})", where);
  const environment::Ailment& worst = checkup.ailments.front();
  return fmt::format("{}, {} ({}); first: {}; {}", Counted(std::to_string(problems), "problem"),
                     Counted(std::to_string(warnings), "warning"), where, worst.message,
                     worst.remedy);
}

std::string CausesText(const std::vector<std::int64_t>& causes) {
  return causes.empty() ? "" : fmt::format(", cause {}", fmt::join(causes, ","));
}

// Each library with its version, and what the rules make of them.
std::string NcclText(const Examination& examination) {
  std::string text;
  for (int i = 0;; ++i) {
    const auto fact = [&](const char* name) {
      return environment::Find(examination.facts, fmt::format("nccl/{}/{}", i, name));
    };
    const std::string* file = fact("file");
    if (file == nullptr) break;
    const std::string* cuda = fact("built_with_cuda");
    text += fmt::format("\nNCCL {}{}: {}\n", *fact("version"),
                        cuda == nullptr ? "" : ", built with CUDA " + *cuda, *file);
  }
  if (text.empty()) return "";
  const auto of_nccl = [&](const std::string& id) { return examination.nccl_rules.contains(id); };
  std::vector<std::string> apply, unchecked;
  for (const environment::Ailment& ailment : examination.checkup.ailments) {
    if (of_nccl(ailment.rule)) apply.push_back(ailment.rule);
  }
  std::copy_if(examination.checkup.unchecked.begin(), examination.checkup.unchecked.end(),
               std::back_inserter(unchecked), of_nccl);
  text += fmt::format("  of {} rules about NCCL {}: {}\n", examination.nccl_rules.size(),
                      apply.size() == 1 ? "1 applies" : fmt::format("{} apply", apply.size()),
                      apply.empty() ? "nothing known speaks against it"
                                    : fmt::format("{}", fmt::join(apply, ", ")));
  if (!unchecked.empty()) {
    text += Wrap(fmt::format("  can't be told here: {}", fmt::join(unchecked, ", ")));
  }
  return text;
}

std::set<std::string> NcclRules(const std::vector<environment::Rule>& rules) {
  std::set<std::string> ids;
  for (const environment::Rule& rule : rules) {
    for (const environment::Condition& condition : rule.when) {
      if (condition.fact.starts_with("nccl/")) ids.insert(rule.id);
    }
  }
  return ids;
}

std::string TextOf(const Examination& examination, bool with_facts) {
  const environment::Checkup& checkup = examination.checkup;
  std::string text = fmt::format("{}: {}\n",
                                 Count(checkup, environment::Level::kProblem) > 0   ? "PROBLEM"
                                 : Count(checkup, environment::Level::kWarning) > 0 ? "WARNING"
                                                                                    : "OK",
                                 Headline(examination));
  for (const environment::Ailment& ailment : checkup.ailments) {
    text += "\n" + Wrap(fmt::format("{} ({}{}): {}", environment::NameOf(ailment.level),
                                    ailment.rule, CausesText(ailment.causes), ailment.message));
    text += Wrap("  -> " + ailment.remedy, 5);
    if (!ailment.source.empty()) text += Wrap("     " + ailment.source, 5);
  }
  text += NcclText(examination);
  if (const std::string* none = environment::Find(examination.facts, "gpu/none")) {
    text += fmt::format("\n{}\n", *none);
  }
  if (!checkup.unchecked.empty()) {
    text += "\n" + Wrap(fmt::format("can't be told here: {}", fmt::join(checkup.unchecked, ", ")));
  }
  if (!with_facts) return text + "\nlockstep doctor --facts shows what was found out\n";
  text += "\n";
  for (const auto& [path, value] : examination.facts) text += fmt::format("{} = {}\n", path, value);
  return text;
}

std::string JsonOf(const Examination& examination) {
  Json ailments = Json::array(), facts = Json::object();
  for (const environment::Ailment& ailment : examination.checkup.ailments) {
    ailments.push_back({{"rule", ailment.rule},
                        {"level", environment::NameOf(ailment.level)},
                        LOCKSTEP_PAIRS(ailment, causes, message, remedy, source)});
  }
  for (const auto& [path, value] : examination.facts) facts[path] = value;
  const Json json = {{"schema", 1},
                     {"lockstep", ThisVersionText()},
                     {"headline", Headline(examination)},
                     {"ailments", std::move(ailments)},
                     {"unchecked", examination.checkup.unchecked},
                     {"facts", std::move(facts)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Monitoring Plugins Guidelines: one line, figures behind a bar, and these exit codes.
enum class PluginState { kOk, kWarning, kCritical, kUnknown };

ExitCode TellNagios(PluginState state, std::string sentence, const std::string& figures = "") {
  constexpr const char* kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  std::replace(sentence.begin(), sentence.end(), '|', '/');
  fmt::print("LOCKSTEP DOCTOR {} - {}{}\n", kWords[static_cast<int>(state)], sentence,
             figures.empty() ? "" : " | " + figures);
  return static_cast<ExitCode>(state);
}

ExitCode TellNagios(const Examination& examination) {
  const std::size_t problems = Count(examination.checkup, environment::Level::kProblem);
  const std::size_t warnings = Count(examination.checkup, environment::Level::kWarning);
  return TellNagios(problems > 0   ? PluginState::kCritical
                    : warnings > 0 ? PluginState::kWarning
                                   : PluginState::kOk,
                    Headline(examination),
                    fmt::format("problems={} warnings={}", problems, warnings));
}

// The same file as of any run, without cases: `show`, `compare` and reports read it.
results::store::Run RunOf(const Examination& examination, double seconds) {
  results::store::Run run;
  run.name = "doctor";
  run.started_at = UtcNow();
  run.id = NewRunId();
  run.duration_seconds = seconds;
  run.command_line = "lockstep doctor";
  run.environment = examination.facts;
  run.plan_text = "{}";
  run.plan_hash = "0000000000000000";
  const bool problems = Count(examination.checkup, environment::Level::kProblem) > 0;
  run.verdict = problems ? verdict::Verdict::kFail : verdict::Verdict::kPass;
  run.exit_code = static_cast<int>(verdict::ExitCodeOf(run.verdict));
  run.summary_line = Headline(examination);
  run.judgement.verdict = run.verdict;
  for (const environment::Ailment& ailment : examination.checkup.ailments) {
    run.judgement.findings.push_back({.cause = verdict::FindingCause::Named(ailment.rule),
                                      .culprits = {},
                                      .proved = true,
                                      .message = ailment.message,
                                      .remedy = ailment.remedy});
  }
  return run;
}

Result<ExitCode> Doctor(const DoctorArguments& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<environment::Rule> rules, RulesOf(options));
  if (!options.nccl_library.empty()) {
    const Status is_nccl = environment::CheckDefines(options.nccl_library, "ncclGetVersion");
    if (!is_nccl.ok()) {
      return InvalidInput("--nccl-library: {}; name a libnccl.so.2", is_nccl.message());
    }
  }
  results::store::RunFile file(options.output);
  if (!options.output.empty()) LOCKSTEP_RETURN_IF_ERROR(file.Check());
  const std::int64_t began_ns = MonotonicNs();
  Examination examination;
  examination.facts = Examine(options);
  examination.checkup = environment::CheckUp(examination.facts, rules);
  examination.nccl_rules = NcclRules(rules);
  results::store::Run run = RunOf(examination, SecondsSince(began_ns));
  if (!options.nagios) {
    fmt::print("{}",
               options.format == "json" ? JsonOf(examination) : TextOf(examination, options.facts));
  }
  if (!options.output.empty()) LOCKSTEP_RETURN_IF_ERROR(file.Store(run));
  if (options.nagios) return TellNagios(examination);
  return verdict::ExitCodeOf(run.verdict);
}

}  // namespace

Work AddDoctor(ArgumentParser& parser) {
  auto options = std::make_shared<DoctorArguments>();
  parser.Flag("--facts", options->facts, "Also print all that was found out");
  parser.Add("--format=WORD", options->format, "Form of what is printed (text or json)")
      .OneOf({"text", "json"})
      .ShowDefault();
  parser.Add("--output=FILE", options->output, "File to write (a result file; default: none)");
  parser.Add("--rules-file=FILE", options->rules, "TOML with rules of your own, instead of ours");
  parser.Add("--nvml-library=FILE", options->nvml_library,
             "Another libnvidia-ml.so than the driver's");
  parser.Add("--nccl-library=FILE", options->nccl_library,
             "The libnccl.so.2 in question (alone; default: all that can be found)");
  parser.Renamed("--rules", "--rules-file");
  parser.Flag("--nagios", options->nagios,
              "One line and the exit codes of a monitoring plugin (0 OK, 1 WARNING, 2 CRITICAL, 3 "
              "UNKNOWN)");
  return [options]() -> Result<ExitCode> {
    Result<ExitCode> code = Doctor(*options);
    if (code.ok() || !options->nagios) return code;
    return TellNagios(PluginState::kUnknown, code.status().message());
  };
}

}  // namespace lockstep::cli
