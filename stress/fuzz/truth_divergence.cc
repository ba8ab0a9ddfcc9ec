// One rank of a right program calls something else. What journals can show of it, by communicator:
//
//   in the first position where it differs   the truth
//   both it and others called                the mismatch, named after what differs, proved. Of
//   three
//                                            and more that called, the rank that differs; of two,
//                                            both (nobody can say who is right)
//   it ended its program before              rank_exited: that rank. With one other in the group,
//                                            either: a call too few of one is a call too many of
//                                            the other
//   it calls one more than all others        that rank, once most of the group have ended without
//                                            it; before, those that ended look as if they were
//                                            short
//   all ended in order all the same          collective_mismatch: that rank; of two, both
//   the others did not come so far           somebody waits for it elsewhere while it waits here: a
//                                            ring over communicators, which it is in
//   (its calls on each are right: swap)      the same; a proof only where a rank that waits can
//                                            call nothing else, which two streams can, and no send
//                                            is in it that the library may keep
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "core/verdict/semantics.h"
#include "stress/fuzz/truth.h"

namespace lockstep::stress::fuzz {
namespace {

std::vector<collective::Operation> On(const std::vector<PlannedCall>& calls,
                                      std::size_t communicator) {
  std::vector<collective::Operation> operations;
  for (const PlannedCall& call : calls) {
    if (call.communicator != communicator || IsMessage(call.operation)) continue;
    operations.push_back(call.operation);
  }
  return operations;
}

// Calls that a rank made on a communicator until then.
std::size_t Called(const FuzzRun& run, int rank, std::size_t communicator, std::int64_t ns) {
  std::size_t called = 0;
  for (const journal::JournalEvent& event : run.journals[static_cast<std::size_t>(rank)].events) {
    if (static_cast<std::int64_t>(event.ticks) > ns) break;
    const bool message = event.collective == collective::Collective::kSend ||
                         event.collective == collective::Collective::kRecv;
    const bool calls =
        event.kind == journal::EventKind::kEnqueue && event.communicator == communicator;
    called += calls && !message ? 1 : 0;
  }
  return called;
}

struct Divergence {
  bool differs = false;
  bool shorter = false;  // the faulty rank makes fewer calls, the same as far as they go
  bool longer = false;
  std::size_t communicator = 0;
  std::size_t position = 0;
  std::vector<int> others = {};        // members
  std::vector<int> others_over = {};   // who ended in order
  std::vector<int> others_there = {};  // who called that position
  bool there = false;                  // the faulty rank did
  std::set<verdict::Cause> causes = {};
};

std::set<verdict::Cause> CausesOf(const collective::Operation& a, const collective::Operation& b) {
  if (a.collective != b.collective) return {verdict::Cause::kCollectiveMismatch};
  std::set<verdict::Cause> causes;
  if (a.type != b.type) causes.insert(verdict::Cause::kTypeMismatch);
  if (a.count != b.count) causes.insert(verdict::Cause::kCountMismatch);
  const collective::CollectiveInfo& info = collective::InfoOf(a.collective);
  if (info.rooted && a.root != b.root) causes.insert(verdict::Cause::kRootMismatch);
  if (info.reduces && a.reduction != b.reduction) causes.insert(verdict::Cause::kReductionMismatch);
  return causes;
}

// A fault alters the calls on one communicator at most.
Divergence FindDivergence(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns) {
  Divergence found;
  const std::vector<PlannedCall> all_meant = MeantCalls(trial, trial.faulty);
  const std::vector<PlannedCall> all_real = RealCalls(trial, trial.faulty);
  for (std::size_t c = 0; c < trial.communicators.size() && !found.differs; ++c) {
    const std::vector<collective::Operation> meant = On(all_meant, c);
    const std::vector<collective::Operation> real = On(all_real, c);
    std::size_t at = 0;
    while (at < meant.size() && at < real.size() && verdict::SameCall(meant[at], real[at])) ++at;
    if (at == meant.size() && at == real.size()) continue;
    found.differs = true;
    found.shorter = at == real.size();
    found.longer = at == meant.size();
    found.communicator = c;
    found.position = at;
    if (!found.shorter && !found.longer) found.causes = CausesOf(meant[at], real[at]);
    found.there = Called(run, trial.faulty, c, ns) > at;
    for (const int rank : trial.communicators[c].members) {
      if (rank == trial.faulty) continue;
      found.others.push_back(rank);
      if (Called(run, rank, c, ns) > at) found.others_there.push_back(rank);
      const comm::sim::RankEnd& end = run.report.ranks[static_cast<std::size_t>(rank)];
      if (end.state == comm::sim::RankState::kFinished && end.at_ns <= ns)
        found.others_over.push_back(rank);
    }
  }
  return found;
}

std::string WrongMismatch(const FuzzTrial& trial, const Divergence& truth,
                          const verdict::Finding& first) {
  if (!truth.causes.contains(first.cause.known())) {
    std::set<std::string_view> names;
    for (const verdict::Cause cause : truth.causes) names.insert(verdict::NameOf(cause));
    return fmt::format("cause: not {}", fmt::join(names, " or "));
  }
  if (!first.proved) return "certainty";
  std::vector<int> culprits = {trial.faulty};
  if (truth.others_there.size() == 1) culprits.push_back(truth.others_there[0]);
  std::ranges::sort(culprits);
  return first.culprits == culprits ? "" : fmt::format("culprit: not {}", fmt::join(culprits, ","));
}

std::string WrongRing(const FuzzTrial& trial, const verdict::Finding& first, bool named) {
  const bool messages = std::ranges::any_of(trial.senders, [](int sender) { return sender >= 0; });
  if (trial.communicators.size() < 2 && !messages) return "cause: a ring in one communicator";
  // Nobody can prove that a library that keeps small messages did not keep one.
  const verdict::Setting setting = SettingOf(trial);
  const bool by_send = !verdict::SemanticsOf(setting.backend).sends_wait &&
                       first.message.find("waits in send") != std::string::npos;
  if (first.proved != (setting.one_stream && !by_send)) return "certainty";
  return named ? "" : "culprit: the rank that errs is not named";
}

// Nobody can say which of two made a wrong number of calls. Before most of the group ended, who did
// looks short where the faulty rank calls one more.
bool MayBeOthers(const Divergence& truth, const verdict::Finding& first, bool named) {
  const bool of_two = truth.others.size() == 1;
  if (named) return of_two && first.culprits.size() == 2;
  if (truth.shorter) return of_two && first.culprits == truth.others;
  const bool most_ended = 2 * truth.others_over.size() > truth.others.size() + 1;
  return !most_ended && first.culprits == truth.others_over;
}

}  // namespace

std::string WrongAboutCalls(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns,
                            const verdict::Finding& first) {
  const Divergence truth = FindDivergence(trial, run, ns);
  const bool named = std::ranges::find(first.culprits, trial.faulty) != first.culprits.end();
  const bool alone = named && first.culprits.size() == 1;
  if (truth.there && !truth.others_there.empty() && !truth.causes.empty()) {
    return WrongMismatch(trial, truth, first);
  }
  if (first.cause == verdict::Cause::kOrderInversion) return WrongRing(trial, first, named);
  if (truth.shorter || truth.longer) {
    if (alone) return "";
    return MayBeOthers(truth, first, named) ? "" : "culprit: not the rank that errs";
  }
  return "cause: the journals show nothing of it";
}

bool MadeAnotherNumberOfCalls(const FuzzTrial& trial, const FuzzRun& run) {
  const Divergence truth = FindDivergence(trial, run, kAtTheEnd);
  return truth.shorter || truth.longer;
}

}  // namespace lockstep::stress::fuzz
