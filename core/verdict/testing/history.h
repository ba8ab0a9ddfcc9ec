// Test material: what is known of a rank, written down as it would have happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/collective.h"
#include "core/journal/message_count.h"
#include "core/journal/purpose.h"
#include "core/verdict/judge.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {

inline collective::Operation AllReduce(std::int64_t count = 256,
                                       collective::DataType type = collective::DataType::kF32) {
  return {.collective = collective::Collective::kAllReduce, .type = type, .count = count};
}
inline collective::Operation Barrier() { return {.collective = collective::Collective::kBarrier}; }

// Each call appends what the worker would journal; operations count from sequence 0 of communicator
// 0 unless On() chose another.
class History {
 public:
  explicit History(int rank) {
    evidence_.rank = rank;
    In(journal::Phase::kStart);
  }
  History& In(journal::Phase phase) {
    phase_ = phase;
    return Add({.kind = journal::EventKind::kPhase});
  }
  History& Case(std::uint32_t index) {
    case_ = index;
    return Add({.kind = journal::EventKind::kCase});
  }
  History& On(std::uint16_t communicator) {
    communicator_ = communicator;
    return *this;
  }
  // What the following operations are for.
  History& As(journal::Purpose purpose, int detail = 0) {
    annotation_ = {.purpose = purpose, .detail = detail, .iteration = annotation_.iteration};
    return *this;
  }
  History& Iteration(int iteration) {
    annotation_.iteration = iteration;
    return *this;
  }
  // Whole operations.
  History& Does(const collective::Operation& operation, int times = 1) {
    for (int i = 0; i < times; ++i) {
      Enters(operation);
      Last(journal::EventKind::kEnd);
    }
    return *this;
  }
  History& Queues(const collective::Operation& operation) {
    return Put(journal::EventKind::kEnqueue, operation, 1);
  }
  // The newest that it queued.
  History& Starts(const collective::Operation& operation) {
    return Put(journal::EventKind::kStart, operation, 0);
  }
  History& Enters(const collective::Operation& operation) {
    return Queues(operation).Starts(operation);
  }
  History& FailsIn(const collective::Operation& operation) {
    return Enters(operation).Last(journal::EventKind::kError);
  }
  // Takes part in the making of communicator `made` out of the current one.
  History& EntersSplit(int made, int color = 0) {
    journal::JournalEvent event;
    event.kind = journal::EventKind::kSplit;
    event.communicator = communicator_;
    event.sequence = splits_[communicator_]++;
    event.count = made;
    event.root = color;
    return Add(event);
  }
  History& Splits(int made, int color = 0) {
    return EntersSplit(made, color).Last(journal::EventKind::kSplitEnd);
  }
  History& FailsSplit(int made) {
    Splits(made);
    evidence_.journal.events.back().value = 1;
    return *this;
  }
  History& Idle() {
    evidence_.idle = true;
    return Add({.kind = journal::EventKind::kIdle});
  }
  History& Leaves(int code) {
    return Add({.value = code, .kind = journal::EventKind::kExit}).Exited(code);
  }
  // How the process stands.
  History& WrongData(std::string what) {
    evidence_.wrong_data = std::move(what);
    return *this;
  }
  History& Missed(std::uint64_t events) {
    evidence_.journal.missed = events;
    return *this;
  }
  // As an agent sends a long history.
  History& Newest(std::size_t most) {
    auto& [events, missed] = evidence_.journal;
    missed = events.size() - std::min(most, events.size());
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(missed));
    return *this;
  }
  History& Exited(int code) {
    evidence_.state = ProcessState::kExited;
    evidence_.exit_code = code;
    return *this;
  }
  History& Signalled(int signal) { return State(ProcessState::kSignalled, signal); }
  History& Stopped(int signal) { return State(ProcessState::kStopped, signal); }
  History& Lost() { return State(ProcessState::kLost, 0); }
  History& Reports(std::string error) {
    evidence_.error = std::move(error);
    return *this;
  }
  History& Silent(double seconds) {
    evidence_.seconds_silent = seconds;
    return *this;
  }
  History& Starved(double seconds) {
    evidence_.starved_s = seconds;
    return *this;
  }
  History& Asleep(std::string system) {
    evidence_.asleep = true;
    evidence_.system = std::move(system);
    return *this;
  }
  // Where it runs.
  History& Of(std::string host, int pid) {
    evidence_.host = std::move(host);
    evidence_.pid = pid;
    return *this;
  }
  operator RankEvidence() const { return evidence_; }  // NOLINT: reads as a list of histories

 private:
  History& State(ProcessState state, int signal) {
    evidence_.state = state;
    evidence_.signal = signal;
    return *this;
  }
  History& Add(const journal::JournalEvent& event) {
    auto& events = evidence_.journal.events;
    events.push_back(event);
    events.back().index = events.size();
    events.back().ticks = 1000 * events.size();
    events.back().case_index = case_;
    events.back().phase = phase_;
    return *this;
  }
  History& Put(journal::EventKind kind, const collective::Operation& operation, int is_new) {
    journal::JournalEvent event;
    event.kind = kind;
    event.communicator = communicator_;
    event.sequence = next_[communicator_] - 1 + is_new;
    event.nth = nth_[{communicator_, operation.collective}] += static_cast<std::uint32_t>(is_new);
    std::uint32_t& before = before_[communicator_];
    if (is_new != 0) before = messages_[communicator_].Next(operation.collective, operation.root);
    event.messages_before = before;
    event.collective = operation.collective;
    event.type = operation.type;
    event.count = operation.count;
    event.reduction = operation.reduction;
    event.root = operation.root;
    event.value = journal::PackAnnotation(annotation_);
    next_[communicator_] += static_cast<std::uint64_t>(is_new);
    return Add(event);
  }
  History& Last(journal::EventKind kind) {
    journal::JournalEvent event = evidence_.journal.events.back();
    event.kind = kind;
    return Add(event);
  }

  RankEvidence evidence_;
  std::uint32_t case_ = 0;
  std::uint16_t communicator_ = 0;
  journal::Phase phase_ = journal::Phase::kStart;
  journal::Annotation annotation_;
  std::map<std::uint16_t, std::uint64_t> next_;
  std::map<std::uint16_t, std::uint64_t> splits_;
  std::map<std::pair<std::uint16_t, collective::Collective>, std::uint32_t> nth_;
  std::map<std::uint16_t, journal::MessageCount> messages_;
  std::map<std::uint16_t, std::uint32_t> before_;  // of the newest operation
};

inline constexpr double kDeadline = 5;

inline History At50(int rank) {
  return History(rank).In(journal::Phase::kMeasure).Does(AllReduce(), 49).Enters(AllReduce());
}
inline History After49(int rank) {
  return History(rank).In(journal::Phase::kMeasure).Does(AllReduce(), 49);
}

inline std::vector<Outcome> OutcomesOf(const Judgement& judgement) {
  std::vector<Outcome> outcomes;
  for (const RankOutcome& rank : judgement.outcomes) outcomes.push_back(rank.outcome);
  return outcomes;
}

// Every rank that a text names: of "ranks 0, 2-4 and 7" all five.
inline std::set<int> RanksNamedIn(const std::string& text) {
  std::set<int> ranks;
  std::istringstream words(text);
  bool after_rank = false;
  for (std::string word; words >> word;) {
    const std::size_t digit = word.find_first_of("0123456789");
    if (after_rank && digit == 0) {
      int first = 0, last = 0;
      const bool range = std::sscanf(word.c_str(), "%d-%d", &first, &last) == 2;
      for (int rank = first; rank <= (range ? last : first); ++rank) ranks.insert(rank);
    }
    after_rank = word.ends_with("rank") || word.ends_with("ranks") ||
                 (after_rank && (digit == 0 || word == "and"));
  }
  return ranks;
}

// At 3 a.m. a person reads one line: who, or which link or host, on one line of few words.
inline void ExpectHeadline(const Finding& finding) {
  const std::string& text = finding.headline.text();
  std::istringstream words(text);
  const auto count = std::distance(std::istream_iterator<std::string>(words), {});
  EXPECT_GE(count, 1) << finding.cause.name() << ": " << finding.message;
  EXPECT_LE(count, 25) << text;
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("\n")));
  const std::set<int> named = RanksNamedIn(text);
  const bool place = text.find("link ") != std::string::npos || text.find("host ") == 0;
  const bool names = std::any_of(finding.culprits.begin(), finding.culprits.end(),
                                 [&](int rank) { return named.contains(rank); });
  EXPECT_TRUE(finding.culprits.empty() || place || names)
      << text << ": of " << ::testing::PrintToString(finding.culprits);
  for (const Finding& general : finding.evidence) ExpectHeadline(general);
}

// Every message is read by a person at night: one line, and every finding says what to do.
inline void ExpectReadable(const Judgement& judgement) {
  for (const Finding& finding : judgement.findings) {
    ExpectHeadline(finding);
    EXPECT_THAT(finding.message, ::testing::Not(::testing::HasSubstr("\n")));
    EXPECT_LT(finding.message.size(), 1200u);
    EXPECT_FALSE(finding.message.empty());
    EXPECT_FALSE(finding.remedy.empty());
  }
}

inline Judgement JudgeAll(const std::vector<RankEvidence>& evidence) {
  Judgement judgement = Judge(evidence, kDeadline);
  EXPECT_EQ(judgement.outcomes.size(), evidence.size());
  ExpectReadable(judgement);
  return judgement;
}

}  // namespace lockstep::verdict
