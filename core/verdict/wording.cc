// Bounded text for messages: ranks as ranges, signals by name, foreign text on one line.
#include "core/verdict/wording.h"

#include <fmt/core.h>
#include <string.h>

#include <cstddef>

#include "core/collective/collective.h"
#include "core/journal/purpose.h"
#include "core/verdict/messages.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict {

std::string FormatRanks(const std::vector<int>& ranks) {
  constexpr std::size_t kRanges = 6;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::vector<std::string> parts;
  std::size_t next = 0;
  while (next < ranks.size() && parts.size() < kRanges) {
    std::size_t end = next + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - next < 3) end = next + 1;  // "1 and 2", not "1-2"
    parts.push_back(end - next == 1 ? fmt::format("{}", ranks[next])
                                    : fmt::format("{}-{}", ranks[next], ranks[end - 1]));
    next = end;
  }
  if (next < ranks.size()) parts.push_back(fmt::format("{} more", ranks.size() - next));
  std::string text = "ranks " + parts[0];
  for (std::size_t part = 1; part < parts.size(); ++part) {
    text += (part + 1 == parts.size() ? " and " : ", ") + parts[part];
  }
  return text;
}

std::string_view Verb(const std::vector<int>& ranks, std::string_view one, std::string_view many) {
  return ranks.size() == 1 ? one : many;
}

std::string WaitingClause(const std::vector<int>& waiting, const std::vector<int>& culprits) {
  if (waiting.empty()) return "";
  return fmt::format("; {} {} for {}", FormatRanks(waiting), Verb(waiting, "waits", "wait"),
                     Verb(culprits, "it", "them"));
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string ShortLine(std::string_view text) {
  constexpr std::size_t kBytes = 400;
  std::string line;
  for (const char c : text.substr(0, kBytes)) {
    const bool blank = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (text.size() > kBytes) line += " …";
  return line;
}

std::string_view Doing(Phase phase) {
  static constexpr std::string_view kDoing[] = {"starting",
                                                "connecting",
                                                "allocating memory",
                                                "between two collectives",
                                                "checking results",
                                                "loading data",
                                                "computing",
                                                "finalizing",
                                                "constructing its model",
                                                "in a forward pass",
                                                "in a backward pass",
                                                "leaving join",
                                                "evaluating",
                                                "in a barrier of the program"};
  const auto index = static_cast<std::size_t>(phase);
  // A history can come from elsewhere.
  return index < std::size(kDoing) ? kDoing[index] : "in an unknown phase";
}

std::string Seconds(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string NameOfInvocation(const JournalEvent& event) {
  if (journal::IsSplit(event.kind)) {
    return fmt::format("the making of communicator {}", event.count);
  }
  const std::string_view name = collective::NameOf(event.collective);
  const Annotation annotation = journal::UnpackAnnotation(event.value);
  if (annotation.purpose == Purpose::kBucket) {
    return fmt::format("{} of {}", name, journal::Describe(annotation));
  }
  std::string text = fmt::format("{} {}", name, event.nth);
  if (collective::IsMessage(event.collective)) {
    const bool sends = event.collective == collective::Collective::kSend;
    text += fmt::format(" {} peer {}", sends ? "to" : "from", event.root);
  }
  const bool plain = annotation.purpose == Purpose::kNone || annotation.purpose == Purpose::kStep ||
                     (annotation.purpose == Purpose::kBarrier &&
                      event.collective == collective::Collective::kBarrier);
  const Annotation purpose = {annotation.purpose, annotation.detail};
  if (!plain) text += fmt::format(" ({})", journal::Describe(purpose));
  const bool of_world = event.communicator == 0 || event.communicator >= kFirstLane;
  return of_world ? text : fmt::format("{} of communicator {}", text, event.communicator);
}

std::string DescribeInvocation(const JournalEvent& event) {
  if (journal::IsSplit(event.kind)) {
    return fmt::format("the making of communicator {} (split {} of communicator {})", event.count,
                       event.sequence, event.communicator);
  }
  if (event.communicator >= kFirstLane) {
    const bool sends = event.collective == collective::Collective::kSend;
    return fmt::format("{} {} ({} rank {} of its communicator) {} x {}",
                       collective::NameOf(event.collective), event.nth, sends ? "to" : "from",
                       event.root, collective::NameOf(event.type), event.count);
  }
  const std::string_view name = collective::NameOf(event.collective);
  const std::string purpose = journal::Describe(journal::UnpackAnnotation(event.value));
  return fmt::format("{} {} (sequence {} of communicator {}){}{}{}", name, event.nth,
                     event.sequence, event.communicator,
                     collective::Describe(OperationOf(event)).substr(name.size()),
                     purpose.empty() ? "" : ", ", purpose);
}

}  // namespace lockstep::verdict
