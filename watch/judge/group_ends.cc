// How ranks of process groups end. They may end at any time: only what others still wait for is
// missing. An error of a collective is mostly the end of another rank, so a rank that failed in one
// blames nobody yet.
#include <fmt/format.h>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

void Judge::EndedInGroup(int rank, End how, int code) {
  Rank& mine = history_.ranks[Index(rank)];
  const bool well = how == End::kExited && code == 0;
  if (how == End::kDied) mine.gone = "died";
  if (how == End::kExited) mine.gone = well ? "ended" : fmt::format("exited with code {}", code);
  if (rank_lost_ || explained_ || (mine.failed && !well)) return;
  const std::size_t before = findings_.size();
  NothingMoreFrom(rank, true);
  if (how == End::kExited && !well && findings_.size() == before) TellGone(rank, nullptr);
}

// `missed`: what another rank is in without this one; null: nobody waits for it.
void Judge::TellGone(int rank, const Position* missed) {
  if (rank_lost_) return;
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

}  // namespace lockstep::watch::judge
