// Ranks that hang together mostly hang alike, so their lines and the stacks of their threads are
// shown once, with the numbers of all of them. The text of a stack is core/agent's: "asleep in
// pause [do_sys]; stack: pause@libc.so.6 < main@bench; thread 2: …".
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/wrap.h"
#include "core/verdict/wording.h"
#include "results/report/figures.h"
#include "results/report/findings.h"

namespace lockstep::results::report {
namespace {

using verdict::RankOutcome;

// Ranks of which the same is said.
struct Group {
  std::string key;
  std::string text;  // of the first of them
  std::vector<int> ranks;
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

void Add(std::string key, std::string text, int rank, std::vector<Group>& groups) {
  auto group = std::ranges::find(groups, key, &Group::key);
  if (group == groups.end()) {
    group = groups.insert(group, {std::move(key), std::move(text), {}});
  }
  group->ranks.push_back(rank);
  std::ranges::sort(group->ranks);
}

std::string EndOf(const RankOutcome& outcome) {
  std::string text(verdict::NameOf(outcome.outcome));
  if (outcome.exit_code != 0) text += fmt::format(", exit code {}", outcome.exit_code);
  if (outcome.signal != 0) text += fmt::format(", signal {}", outcome.signal);
  if (!outcome.where.empty()) text += ": " + OneLine(outcome.where);
  return text;
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

// Files keep the beginning of a long text, so its last frame may be a part of one.
constexpr std::size_t kMaybeCut = 1800;

// (what the process did, the stacks of its threads, the main one first)
std::pair<std::string, std::vector<std::string>> SplitOf(std::string evidence) {
  const bool maybe_cut = evidence.size() > kMaybeCut;
  std::ranges::replace(evidence, '\n', ' ');  // of stacks
  evidence = OneLine(evidence);
  std::vector<std::string> threads;
  for (const std::string_view mark : {"; thread ", "; stack: "}) {
    for (std::size_t at; (at = evidence.rfind(mark)) != std::string::npos; evidence.resize(at)) {
      const std::size_t frames = evidence.find(": ", at);
      if (frames != std::string::npos) threads.push_back(evidence.substr(frames + 2));
    }
  }
  std::ranges::reverse(threads);
  if (maybe_cut && !threads.empty()) {
    std::string& last = threads.back();
    last.resize(std::min(last.rfind(" < "), last.size()));
  }
  return {evidence, threads};
}

// Frames over lines that are not too long.
std::string Wrapped(std::string_view frames) {
  constexpr std::string_view kIndent = "    ", kBelow = " < ";
  std::string text, line(kIndent);
  while (!frames.empty()) {
    const std::size_t end = std::min(frames.find(kBelow), frames.size());
    if (line != kIndent && line.size() + end > kStackWidth) {
      text += line + "\n";
      line = kIndent;
    }
    line += line == kIndent ? "" : " ";
    line += frames.substr(0, end);
    line += end < frames.size() ? " <" : "";
    frames.remove_prefix(std::min(end + kBelow.size(), frames.size()));
  }
  return text + line + "\n";
}

std::string EndLines(const std::vector<const RankOutcome*>& outcomes) {
  std::vector<Group> groups;
  std::map<std::string, double> most_silent;
  for (const RankOutcome* outcome : outcomes) {
    const std::string end = EndOf(*outcome);
    Add(end, end, outcome->rank, groups);
    most_silent[end] = std::max(most_silent[end], outcome->seconds_silent);
  }
  std::string text;
  for (const Group& group : groups) {
    text += fmt::format("  {}: {}", verdict::FormatRanks(group.ranks), group.text);
    const double silent = most_silent[group.key];
    if (silent >= 0.05) text += fmt::format(", silent {:.1f} s", silent);
    text += "\n";
  }
  return text;
}

// Main threads before the others.
std::string StackLines(const std::vector<const RankOutcome*>& outcomes) {
  std::vector<Group> mains, others;
  for (const RankOutcome* outcome : outcomes) {
    const auto [state, threads] = SplitOf(outcome->evidence);
    if (state.empty() && threads.empty()) continue;
    const std::string frames = threads.empty() ? "" : Wrapped(threads.front());
    Add(WithoutAddresses(threads.empty() ? state : threads.front()), ": " + state + "\n" + frames,
        outcome->rank, mains);
    for (std::size_t i = 1; i < threads.size(); ++i) {
      Add(WithoutAddresses(threads[i]), ", another thread\n" + Wrapped(threads[i]), outcome->rank,
          others);
    }
  }
  std::string text;
  for (const std::vector<Group>* groups : {&mains, &others}) {
    for (const Group& group : *groups) {
      text += "  " + verdict::FormatRanks(group.ranks) + group.text;
    }
  }
  return text;
}

}  // namespace

std::string FormatUnfinished(const verdict::Judgement& judgement) {
  const std::vector<const RankOutcome*> outcomes = Unfinished(judgement);
  if (outcomes.empty()) return "";
  const std::string stacks = StackLines(outcomes);
  return "\nRanks that did not finish\n" + EndLines(outcomes) +
         (stacks.empty() ? "" : "\nStacks and errors\n" + stacks);
}

}  // namespace lockstep::results::report
