// From the histories of all ranks to the end of each. The first call that timed out is what counts:
// behind it, the rank leaves, and the calls of the others fail because of that.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/trace_ddp/rank.h"
#include "cli/trace_ddp/rank_history.h"

namespace lockstep::cli::trace_ddp {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// gloo tells a wait that lasted too long like any error; only its words differ.
bool IsTimeout(const Status& status) {
  return status.code() == StatusCode::kDeadlineExceeded ||
         status.message().find("Timed out") != std::string::npos;
}

bool IsOfGloo(const Status& status) { return status.message().starts_with("gloo: "); }

// What gloo said before it ended the process: the last line of it.
std::string LastWords(std::string_view errors) {
  while (errors.ends_with('\n')) errors.remove_suffix(1);
  std::string_view line = errors.substr(errors.rfind('\n') + 1);  // npos + 1 is 0
  constexpr std::string_view kWhat = "  what():  ";
  if (line.starts_with(kWhat)) line.remove_prefix(kWhat.size());
  return std::string(line.empty() ? "it said nothing" : line);
}

std::int64_t FailedAt(const RankHistory& history) {
  return history.failed_ns.value_or(history.end_ns.value_or(kNever));
}

bool TimedOut(const RankHistory& history) {
  return history.end_ns && IsTimeout(history.trace.status);
}

bool Connected(const RankHistory& history) { return !history.moments.empty(); }

// By others, such as the kernel where memory lacks. No program of training does it.
bool Killed(const RankHistory& history) {
  return !history.end_ns && history.process.state == 0 && history.process.signal == SIGKILL;
}

// What the rank was in at that time, or was last.
Moment At(const RankHistory& history, std::int64_t ns) {
  Moment at;
  for (const Moment& moment : history.moments) {
    if (moment.ns <= ns) at = moment;
  }
  return at;
}

// Whether the call that it was in at that time ended well, so that it was no wait for ever.
bool EndedWellAfter(const RankHistory& history, std::int64_t ns) {
  return std::ranges::any_of(history.moments, [&](const Moment& moment) {
    return moment.ns >= ns && moment.ns < history.failed_ns.value_or(kNever) && !moment.inside;
  });
}

// nullptr: it has not so many.
const TracedCall* CallAt(const TracedRank& trace, std::size_t index) {
  for (const TracedSection& section : trace.sections) {
    if (index < section.calls.size()) return &section.calls[index];
    index -= section.calls.size();
  }
  return nullptr;
}

std::string After(std::size_t calls) {
  return calls == 0 ? "before any collective" : fmt::format("after collective {}", calls - 1);
}

class Conclusion {
 public:
  Conclusion(const std::vector<RankHistory>& histories, const Limits& limits)
      : histories_(histories), limits_(limits) {
    for (std::size_t rank = 0; rank < histories.size(); ++rank) {
      if (Killed(histories[rank])) lost_ = fmt::format("rank {} was killed", rank);
      if (TimedOut(histories[rank])) first_ns_ = std::min(first_ns_, FailedAt(histories[rank]));
    }
    for (std::size_t rank = 0; rank < histories.size(); ++rank) {
      const std::string why = WhyNoHang(histories[rank]);
      if (!why.empty()) no_hang_ += fmt::format("; rank {} {}", rank, why);
    }
    if (no_hang_.empty() && AllInOneCall()) no_hang_ = "; all ranks were in this collective";
  }

  TracedRank Of(const RankHistory& history) const {
    TracedRank rank = history.trace;
    rank.end = EndOf(history);
    switch (rank.end) {
      case TraceEnd::kFinished:
        break;
      case TraceEnd::kNotEnded:
        rank.message = DescribeNotEnded(history);
        break;
      case TraceEnd::kTimedOut:
      case TraceEnd::kSuspectedHang:
        rank.message = DescribeTimeout(history);
        break;
      case TraceEnd::kLostPeers:
        rank.message = DescribeLoss(history);
        break;
      default:
        rank.message = history.end_ns ? rank.status.message() : DescribeCrash(history);
    }
    return rank;
  }

 private:
  TraceEnd EndOf(const RankHistory& history) const {
    if (!history.end_ns) {
      const bool own = history.process.state == 0 && !Killed(history);
      return own ? TraceEnd::kFailed : TraceEnd::kNotEnded;
    }
    const Status& status = history.trace.status;
    if (status.ok()) return TraceEnd::kFinished;
    if (!Connected(history)) return IsTimeout(status) ? TraceEnd::kTimedOut : TraceEnd::kLostPeers;
    if (IsTimeout(status)) return no_hang_.empty() ? TraceEnd::kSuspectedHang : TraceEnd::kTimedOut;
    const bool later = FailedAt(history) > first_ns_ || !lost_.empty();
    return IsOfGloo(status) && later ? TraceEnd::kLostPeers : TraceEnd::kFailed;
  }

  // Why those who wait may only wait for this rank's next call; "": this rank waits, too, or ended.
  std::string WhyNoHang(const RankHistory& history) const {
    if (first_ns_ == kNever || FailedAt(history) == first_ns_) return "";
    if (history.end_ns && *history.end_ns <= first_ns_) return "";
    if (Killed(history)) return "was killed";
    const bool crashed = !history.end_ns && history.process.state == 0;
    if (crashed) return "";  // nobody knows when
    const Moment at = At(history, first_ns_ - 1);
    if (!at.inside) {
      return fmt::format("was still busy ({}) {}", journal::NameOf(at.phase), After(at.calls));
    }
    if (EndedWellAfter(history, first_ns_)) {
      return fmt::format("ended collective {} later", at.begun - 1);
    }
    if (!history.end_ns) return "did not end";
    const auto recently = static_cast<std::int64_t>(limits_.timeout_seconds / 2 * 1e9);
    if (at.ns <= first_ns_ - recently) return "";
    return fmt::format("had just called collective {}", at.begun - 1);
  }

  // When the first of them timed out. Then nothing is wrong with the order of calls: what should
  // move data is slow.
  bool AllInOneCall() const {
    const auto call = [&](const RankHistory& history) -> const TracedCall* {
      const Moment at = At(history, first_ns_ - 1);
      return at.inside ? CallAt(history.trace, at.begun - 1) : nullptr;
    };
    const TracedCall* first = call(histories_.front());
    return std::ranges::all_of(histories_, [&](const RankHistory& history) {
      const TracedCall* other = call(history);
      return first != nullptr && other != nullptr && first->sequence == other->sequence &&
             first->operation == other->operation;
    });
  }

  std::string DescribeTimeout(const RankHistory& history) const {
    if (!Connected(history)) {
      return fmt::format("it did not connect within {} s: {}", limits_.connect_seconds,
                         history.trace.status.message());
    }
    return fmt::format("it waited more than {} s: {}; last: {}{}", limits_.timeout_seconds,
                       history.trace.status.message(), DescribeLastCall(history.trace), no_hang_);
  }

  std::string DescribeLoss(const RankHistory& history) const {
    std::string text = Connected(history) ? "" : "could not connect: ";
    text += history.trace.status.message();
    if (!lost_.empty()) return text + "; " + lost_;
    return text + (FailedAt(history) > first_ns_ ? "; a rank that had timed out left before" : "");
  }

  std::string DescribeNotEnded(const RankHistory& history) const {
    const char state = history.process.state;
    const bool stopped = state == 'T' || state == 't';
    if (Killed(history)) {
      return fmt::format(
          "its process was killed: by the kernel, if memory lacks, or by somebody; "
          "last: {}",
          DescribeLastCall(history.trace));
    }
    return fmt::format(
        "no rank did anything new within {} s; its process is {}; phase {}; last: {}",
        limits_.patience_seconds, stopped ? "stopped" : fmt::format("in state {}", state),
        journal::NameOf(At(history, kNever).phase), DescribeLastCall(history.trace));
  }

  static std::string DescribeCrash(const RankHistory& history) {
    const EndedRank& process = history.process;
    const std::string how = process.signal == 0
                                ? fmt::format("exit code {}", process.exit_code)
                                : fmt::format("SIG{}", sigabbrev_np(process.signal));
    return fmt::format("crashed: {} in or after {}: {}", how, DescribeLastCall(history.trace),
                       LastWords(process.errors));
  }

  const std::vector<RankHistory>& histories_;
  const Limits& limits_;
  std::int64_t first_ns_ = kNever;  // when the first call timed out
  std::string lost_;                // whose connections closed at an unknown time
  std::string no_hang_;             // why no hang is suspected, rank by rank
};

}  // namespace

Result<TracedRanks> Conclude(const std::vector<RankHistory>& histories, const Limits& limits) {
  for (std::size_t rank = 0; rank < histories.size(); ++rank) {
    const Status& lacks = histories[rank].environment;
    if (!lacks.ok()) return Status(lacks.code(), fmt::format("rank {}: {}", rank, lacks.message()));
  }
  const Conclusion conclusion(histories, limits);
  TracedRanks ranks;
  for (const RankHistory& history : histories) ranks.push_back(conclusion.Of(history));
  return ranks;
}

}  // namespace lockstep::cli::trace_ddp
