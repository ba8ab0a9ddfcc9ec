// A row a rank, then a row a place of the program, over all ranks. Places that waited most come
// first. Long names are cut, so that no line is wider than a terminal; the file has them whole.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/grid.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

using enum Grid::Align;

constexpr std::size_t kMostPlaces = 12;
constexpr std::size_t kMostRanks = 32;
constexpr std::size_t kMostName = 60;

// Of some calls: how long they waited, and for whom.
struct Sum {
  std::int64_t calls = 0;
  std::int64_t came_last = 0;
  double waited_ns = 0;
  double longest_ns = 0;
  std::map<int, double> blamed;

  void Add(const store::WaitPlace& place) {
    calls += place.calls;
    came_last += place.came_last;
    waited_ns += place.waited_ns;
    longest_ns = std::max(longest_ns, place.longest_ns);
  }
};

std::string Percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f}", 100 * part / whole) : "-";
}

// "rank 2 (94 %)": the one that was waited for longest.
std::string MostFor(const Sum& sum) {
  if (sum.blamed.empty()) return "-";
  const auto most = std::ranges::max_element(
      sum.blamed, [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("rank {} ({} %)", most->first, Percent(most->second, sum.waited_ns));
}

std::string Short(const std::string& name) {
  const std::string line = OneLine(name);
  return line.size() <= kMostName ? line : line.substr(0, kMostName - 3) + "...";
}

std::map<int, Sum> ByRank(const store::Watched& watched) {
  std::map<int, Sum> ranks;
  for (const store::WatchedRank& rank : watched.ranks) ranks[rank.rank];
  for (const store::WaitPlace& place : watched.places) ranks[place.rank].Add(place);
  for (const store::WaitedFor& blame : watched.blamed) {
    const auto& place = watched.places[static_cast<std::size_t>(blame.place)];
    ranks[place.rank].blamed[blame.rank] += blame.waited_ns;
  }
  return ranks;
}

std::map<int, double> CausedBy(const store::Watched& watched) {
  std::map<int, double> caused;
  for (const store::WaitedFor& blame : watched.blamed) {
    if (std::isfinite(blame.waited_ns)) caused[blame.rank] += blame.waited_ns;
  }
  return caused;
}

std::string Ranks(const store::Watched& watched) {
  const std::map<int, Sum> ranks = ByRank(watched);
  std::map<int, double> caused = CausedBy(watched);
  std::vector<store::WatchedRank> order = watched.ranks;
  std::ranges::stable_sort(
      order, [&](const auto& a, const auto& b) { return caused[a.rank] > caused[b.rank]; });
  Grid grid;
  grid.AddColumns(kRight, {"rank", "made wait", "waited", "%"});
  grid.AddColumn("most of it for", kLeft);
  grid.AddColumn("came last", kRight);
  for (std::size_t i = 0; i < std::min(order.size(), kMostRanks); ++i) {
    const store::WatchedRank& rank = order[i];
    const Sum& sum = ranks.at(rank.rank);
    grid.AddRow({fmt::format("{}", rank.rank), FormatDuration(caused[rank.rank]),
                 FormatDuration(sum.waited_ns),
                 Percent(sum.waited_ns, rank.ended_ns - rank.begun_ns), MostFor(sum),
                 fmt::format("{}", sum.came_last)});
  }
  std::string text = grid.Format(kNarrow);
  if (order.size() > kMostRanks) {
    text += fmt::format("{} ranks more are in the file.\n", order.size() - kMostRanks);
  }
  return text;
}

std::string Places(const store::Watched& watched) {
  using Name = std::tuple<std::string, std::string, std::string>;  // call, site, communicator
  std::map<Name, Sum> places;
  const auto sum_of = [&](const store::WaitPlace& place) -> Sum& {
    return places[{place.call, place.site, place.communicator}];
  };
  for (const store::WaitPlace& place : watched.places) sum_of(place).Add(place);
  for (const store::WaitedFor& blame : watched.blamed) {
    const auto& place = watched.places[static_cast<std::size_t>(blame.place)];
    sum_of(place).blamed[blame.rank] += blame.waited_ns;
  }
  std::erase_if(places, [](const auto& each) { return !(each.second.waited_ns > 0); });
  std::vector<std::pair<Name, Sum>> order(places.begin(), places.end());
  std::ranges::stable_sort(
      order, [](const auto& a, const auto& b) { return a.second.waited_ns > b.second.waited_ns; });
  Grid grid;
  grid.AddColumn("where", kLeft);
  grid.AddColumns(kRight, {"calls", "waited", "longest"});
  grid.AddColumn("most of it for", kLeft);
  for (std::size_t i = 0; i < std::min(order.size(), kMostPlaces); ++i) {
    const auto& [name, sum] = order[i];
    const auto& [call, site, communicator] = name;
    std::string where = call + (site.empty() ? "" : " at " + site);
    if (!communicator.empty() && communicator != "world") where += ", " + communicator;
    grid.AddRow({Short(where), fmt::format("{}", sum.calls), FormatDuration(sum.waited_ns),
                 FormatDuration(sum.longest_ns), MostFor(sum)});
  }
  if (grid.empty()) return "";
  std::string text = "\n" + grid.Format(kNarrow);
  if (order.size() > kMostPlaces) {
    text += fmt::format("{} places more are in the file.\n", order.size() - kMostPlaces);
  }
  return text;
}

std::string Notes(const store::Watched& watched) {
  std::string text =
      "\nwaited: in calls, until the last rank came that the call needed.\n"
      "came last: of all members of a collective. Non-blocking calls count in the\n"
      "MPI_Wait that ends them.\n";
  std::int64_t uncounted = 0;
  std::int64_t calls = 0;
  bool complete = true;
  for (const store::WatchedRank& rank : watched.ranks) {
    uncounted += rank.uncounted;
    calls += rank.calls;
    complete = complete && rank.complete;
  }
  if (uncounted > 0) {
    text += fmt::format("Of {} calls the rank that they needed was not seen.\n", uncounted);
  }
  if (!complete) text += "Not all was watched.\n";
  const auto kept = static_cast<std::int64_t>(watched.calls.size());
  if (kept < calls) text += fmt::format("The trace has the newest {} of {} calls.\n", kept, calls);
  return text;
}

}  // namespace

std::string FormatWaits(const store::Run& run) {
  if (!run.watched) return "";
  double waited = 0;
  double watched = 0;
  for (const store::WaitPlace& place : run.watched->places) waited += place.waited_ns;
  for (const store::WatchedRank& rank : run.watched->ranks)
    watched += rank.ended_ns - rank.begun_ns;
  return fmt::format("Waiting: {} of {} of {} ranks ({} %)\n", FormatDuration(waited),
                     FormatDuration(watched), run.watched->ranks.size(), Percent(waited, watched)) +
         Ranks(*run.watched) + Places(*run.watched) + Notes(*run.watched);
}

}  // namespace lockstep::results::report
