// How ranks end. Those of process groups may do so at any time: only what others still wait for is
// missing. An error of a collective is mostly the end of another rank, so a rank that failed in one
// blames nobody yet.
#include <fmt/format.h>

#include <algorithm>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

namespace {

std::string HowItEnded(End how, int code) {
  return how == End::kDied ? "died" : fmt::format("exited with code {}", code);
}

}  // namespace

void Judge::Ended(int rank, End how, int code, bool first) {
  Rank& mine = history_.ranks[Index(rank)];
  if (mine.lost) return;
  mine.lost = true;
  if (mine.finalized) return NothingMoreFrom(rank, true);
  if (mine.in_group) return EndedInGroup(rank, how, code, first);
  if (TellUnfit(rank)) rank_lost_ = true;
  if (EndsAreConsequences()) return;
  rank_lost_ = true;
  if (how != End::kExited && !first) return;
  TellHang(Cause::kLostRank, {rank},
           fmt::format("rank {} {} without MPI_Finalize; last seen {}", rank, HowItEnded(how, code),
                       Describe(rank)));
}

void Judge::Stopped(int rank) {
  const Rank& mine = history_.ranks[Index(rank)];
  if (mine.lost || mine.finalized || EndsAreConsequences()) return;
  stopped_.insert(rank);
  TellHang(Cause::kStoppedRank, {rank},
           fmt::format("rank {} is stopped; last seen {}", rank, Describe(rank)));
}

// What others do while a rank is stopped is a consequence.
bool Judge::EndsAreConsequences() const {
  return rank_lost_ || !stopped_.empty() ||
         std::any_of(history_.ranks.begin(), history_.ranks.end(),
                     [](const Rank& each) { return each.misused || each.aborted; });
}

void Judge::EndedInGroup(int rank, End how, int code, bool first) {
  const Rank& mine = history_.ranks[Index(rank)];
  const bool died = how != End::kExited;
  const bool well = NoteGone(rank, how, code);
  if (Explained(well ? rank : -1) || rank_lost_ || died_untold_ || (mine.failed && !well)) return;
  if (first || !died) TellMissedBy(rank, died);
  // By _exit(0) a program may leave a thread behind that waits for what nobody will send.
  died_inside_well_ = died_inside_ == rank ? how == End::kQuit && code == 0 : died_inside_well_;
  if (rank_lost_) return;
  if (!died && !well) TellGone(rank, nullptr);
  // It may have ended itself by _exit(). But if a launcher ends others now, that is its doing.
  died_untold_ = died;
}

bool Judge::NoteGone(int rank, End how, int code) {
  const bool well = how == End::kExited && code == 0;
  history_.ranks[Index(rank)].gone = well ? "ended" : HowItEnded(how, code);
  return well;
}

void Judge::TellMissedBy(int rank, bool died) {
  NothingMoreFrom(rank, true);
  if (died && !history_.ranks[Index(rank)].open.empty()) died_inside_ = rank;
}

// `missed`: what another rank is in without this one; null: nobody waits for it.
void Judge::TellGone(int rank, const Position* missed) {
  if (rank_lost_ || !stopped_.empty()) return;
  const Rank& mine = history_.ranks[Index(rank)];
  if (missed && mine.gone == "ended") {
    rank_lost_ = true;
    Add(Cause::kMissingCall, {rank},
        fmt::format("rank {} ended without {} {}, which rank {} called{}", rank,
                    events::FactsOf(missed->first.call).name, missed->first.count2,
                    missed->first_rank, WhereNow(missed->first_rank, missed->first)),
        0);
    return;
  }
  std::string text =
      fmt::format("rank {} {} {}{}", rank, mine.gone, Describe(rank), mine.failed ? " failed" : "");
  if (missed) {
    text += fmt::format("; rank {} waits for it in {}", missed->first_rank,
                        Named(missed->first_rank, missed->first));
  }
  rank_lost_ = true;
  Add(Cause::kLostRank, {rank}, std::move(text), 0);
}

void Judge::AllEnded() {
  TellLostMessages();
  if (!suspects_.empty()) return;
  const bool failed = std::ranges::any_of(history_.ranks, &Rank::failed);
  if (told_.empty() && died_inside_ >= 0 && (failed || !died_inside_well_)) {
    TellGone(died_inside_, nullptr);
  }
  if (died_untold_) return;
  // Where each rank that failed blames another, the first tells what all of them know.
  for (int rank = 0; rank < history_.size && told_.empty() && !rank_lost_; ++rank) {
    if (history_.ranks[Index(rank)].failed && !history_.ranks[Index(rank)].gone.empty()) {
      TellGone(rank, nullptr);
    }
  }
}

}  // namespace lockstep::watch::judge
