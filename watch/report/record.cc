// Totals by address become rows by line, because each process has addresses of its own.
#include "watch/report/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace lockstep::watch::report {

namespace store = results::store;
using events::FactsOf;

namespace {

std::string CommunicatorOf(int rank, const Place& place, const Locate& locate) {
  if (place.made_by == Call::kNone) return "";
  if (place.made_by == Call::kGroupInit) return fmt::format("group {}", place.made_at);
  if (place.made_by == Call::kInit && place.made_at == 0) return "world";
  return fmt::format("{} at {}", FactsOf(place.made_by).name, locate(rank, place.made_at));
}

std::int32_t NumberOf(std::int32_t value) { return value >= 0 ? value : -1; }

class Recorder {
 public:
  Recorder(const Scale& scale, const Locate& locate) : scale_(scale), locate_(locate) {}

  void Add(int rank, const RankTotals& totals, const RankProcess& process) {
    if (totals.begun == 0) return;
    watched_.ranks.push_back({rank, process.pid, Ns(totals.begun), Ns(totals.ended),
                              static_cast<std::int64_t>(totals.calls),
                              static_cast<std::int64_t>(totals.uncounted), process.complete});
    for (const auto& [place, spent] : totals.places) Add(RowOf(rank, place), spent);
    for (const auto& call : totals.newest) {
      const PastCall& past = call->past;
      watched_.calls.push_back({RowOf(rank, past.place), past.thread, NumberOf(past.peer),
                                NumberOf(past.tag), Ns(past.entered), Ns(past.left),
                                Span(past.waited), past.waited_for});
    }
    rows_.clear();
  }

  store::Watched Take() {
    for (const auto& [key, blame] : blamed_) {
      watched_.blamed.push_back(
          {key.first, key.second, static_cast<std::int64_t>(blame.times), Span(blame.ticks)});
    }
    return std::move(watched_);
  }

 private:
  double Ns(std::uint64_t ticks) const {
    return static_cast<double>(static_cast<std::int64_t>(ticks - scale_.origin_ticks)) *
           scale_.ns_per_tick;
  }
  double Span(std::uint64_t ticks) const { return static_cast<double>(ticks) * scale_.ns_per_tick; }

  std::int32_t RowOf(int rank, const Place& place) {
    const auto known = rows_.find(place);
    if (known != rows_.end()) return known->second;
    store::WaitPlace row;
    row.rank = rank;
    row.call = FactsOf(place.call).name;
    row.site = place.site == 0 ? "" : locate_(rank, place.site);
    row.communicator = CommunicatorOf(rank, place, locate_);
    const auto [found, fresh] =
        by_name_.insert({{rank, row.call, row.site, row.communicator},
                         static_cast<std::int32_t>(watched_.places.size())});
    if (fresh) watched_.places.push_back(std::move(row));
    rows_[place] = found->second;
    return found->second;
  }

  void Add(std::int32_t number, const Spent& spent) {
    store::WaitPlace& row = watched_.places[static_cast<std::size_t>(number)];
    row.calls += static_cast<std::int64_t>(spent.calls);
    row.came_last += static_cast<std::int64_t>(spent.came_last);
    row.waited_ns += Span(spent.waited);
    row.longest_ns = std::max(row.longest_ns, Span(spent.longest));
    for (const auto& [rank, blame] : spent.blamed) {
      Blame& all = blamed_[{number, rank}];
      all.times += blame.times;
      all.ticks += blame.ticks;
    }
  }

  const Scale& scale_;
  const Locate& locate_;
  store::Watched watched_;
  std::map<Place, std::int32_t> rows_;  // of the rank that is added
  std::map<std::tuple<int, std::string, std::string, std::string>, std::int32_t> by_name_;
  std::map<std::pair<std::int32_t, int>, Blame> blamed_;
};

}  // namespace

store::Watched Record(const Waits& waits, const Scale& scale,
                      const std::vector<RankProcess>& processes, const Locate& locate) {
  Recorder recorder(scale, locate);
  for (std::size_t rank = 0; rank < waits.ranks().size(); ++rank) {
    recorder.Add(static_cast<int>(rank), waits.ranks()[rank], processes[rank]);
  }
  return recorder.Take();
}

}  // namespace lockstep::watch::report
