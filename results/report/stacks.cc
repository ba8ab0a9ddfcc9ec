// Ranks that hang together mostly hang alike, so their lines and stacks are shown once, with the
// numbers of all of them. The text of a stack is core/agent's: "asleep in pause [do_sys]; stack:
// pause@libc.so.6 < main@bench; thread 2: …".
#include "results/report/stacks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/verdict/wording.h"
#include "results/report/figures.h"

namespace lockstep::results::report {
namespace {

using verdict::RankOutcome;

// Ranks of which the same is said, and the first of them.
struct Group {
  std::string key;
  const RankOutcome* first;
  std::vector<int> ranks;
  double most_silent = 0;
};

// The culprits first, else in the order of ranks.
std::vector<const RankOutcome*> Unfinished(const verdict::Judgement& judgement) {
  std::set<int> culprits;
  for (const verdict::Finding& finding : judgement.findings) {
    culprits.insert(finding.culprits.begin(), finding.culprits.end());
  }
  std::vector<const RankOutcome*> found;
  for (const RankOutcome& outcome : judgement.outcomes) {
    if (outcome.outcome != verdict::Outcome::kFinished) found.push_back(&outcome);
  }
  std::stable_partition(found.begin(), found.end(), [&](const RankOutcome* outcome) {
    return culprits.contains(outcome->rank);
  });
  return found;
}

template <typename KeyOf>
std::vector<Group> GroupsOf(const std::vector<const RankOutcome*>& outcomes, const KeyOf& key_of) {
  std::vector<Group> groups;
  for (const RankOutcome* outcome : outcomes) {
    const std::string key = key_of(*outcome);
    if (key.empty()) continue;
    auto group = std::ranges::find(groups, key, &Group::key);
    if (group == groups.end()) group = groups.insert(group, {key, outcome, {}});
    group->ranks.push_back(outcome->rank);
    group->most_silent = std::max(group->most_silent, outcome->seconds_silent);
  }
  for (Group& group : groups) std::ranges::sort(group.ranks);
  return groups;
}

std::string EndOf(const RankOutcome& outcome) {
  std::string text(verdict::NameOf(outcome.outcome));
  if (outcome.exit_code != 0) text += fmt::format(", exit code {}", outcome.exit_code);
  if (outcome.signal != 0) text += fmt::format(", signal {}", outcome.signal);
  if (!outcome.where.empty()) text += ", at " + OneLine(outcome.where);
  return text;
}

// (what the process did, its stack or "")
std::pair<std::string, std::string> SplitOf(const std::string& evidence) {
  constexpr std::string_view kStack = "; stack: ";
  const std::size_t at = evidence.find(kStack);
  if (at == std::string::npos) return {OneLine(evidence), ""};
  return {OneLine(evidence.substr(0, at)), OneLine(evidence.substr(at + kStack.size()))};
}

// Hexadecimal numbers differ from process to process.
std::string WithoutAddresses(const std::string& text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    kept += text[i];
    if (!kept.ends_with("0x")) continue;
    while (i + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
  }
  return kept;
}

// Files keep the beginning of a long stack, so its last frame may be a part of one.
constexpr std::size_t kMaybeCut = 1800;

std::string StackKey(const RankOutcome& outcome) {
  auto [state, stack] = SplitOf(outcome.evidence);
  if (outcome.evidence.size() > kMaybeCut) stack.resize(std::min(stack.rfind(" < "), stack.size()));
  return WithoutAddresses(stack.empty() ? state : stack);
}

// Frames of a stack over lines that are not too long, threads on lines of their own.
std::string Wrapped(std::string_view stack) {
  constexpr std::string_view kIndent = "    ";
  std::string text, line(kIndent);
  while (!stack.empty()) {
    const std::size_t thread = stack.find("; thread ");
    const std::size_t end = std::min(stack.find(" < "), thread);
    const std::string_view frame = stack.substr(0, end);
    if (line.size() > kIndent.size() && line.size() + frame.size() > kStackWidth) {
      text += line + "\n";
      line = kIndent;
    }
    line += frame;
    if (end == std::string_view::npos) break;
    const bool next_thread = end == thread;
    line += next_thread ? "" : " < ";
    stack.remove_prefix(end + (next_thread ? 2 : 3));
    if (!next_thread) continue;
    text += line + "\n";
    line = kIndent;
  }
  return text + line + "\n";
}

}  // namespace

std::string FormatUnfinished(const verdict::Judgement& judgement) {
  const std::vector<const RankOutcome*> outcomes = Unfinished(judgement);
  if (outcomes.empty()) return "";
  std::string text = "\nRanks that did not finish\n";
  for (const Group& group : GroupsOf(outcomes, EndOf)) {
    text += fmt::format("  {}: {}", verdict::FormatRanks(group.ranks), group.key);
    if (group.most_silent > 0) text += fmt::format(", silent {:.1f} s", group.most_silent);
    text += "\n";
  }
  std::string stacks;
  for (const Group& group : GroupsOf(outcomes, StackKey)) {
    const auto [state, stack] = SplitOf(group.first->evidence);
    stacks += fmt::format("  {}: {}\n{}", verdict::FormatRanks(group.ranks), state,
                          stack.empty() ? "" : Wrapped(stack));
  }
  return stacks.empty() ? text : text + "\nStacks\n" + stacks;
}

}  // namespace lockstep::results::report
