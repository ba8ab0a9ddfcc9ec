// A row a thread that is in a call: mostly one a rank. What is not known is "-", or null.
#include "watch/status/print.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/version.h"
#include "core/base/wrap.h"
#include "results/report/figures.h"
#include "results/report/grid.h"

namespace lockstep::watch::status {
namespace {

using Json = nlohmann::ordered_json;
using results::report::Grid;

std::string RankText(const RankNow& rank) {
  return rank.rank < 0 ? "?" : fmt::format("{}", rank.rank);
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string SecondsText(double seconds) { return fmt::format("{:.1f}", seconds); }

void AddRow(const RankNow& rank, std::vector<std::string> rest, Grid& grid) {
  std::vector<std::string> cells = {RankText(rank), fmt::format("{}", rank.pid), rank.state};
  cells.insert(cells.end(), std::make_move_iterator(rest.begin()),
               std::make_move_iterator(rest.end()));
  grid.AddRow(std::move(cells));
}

void AddRank(const RankNow& rank, Grid& grid) {
  if (rank.state == "ended") {
    const std::string code =
        rank.exit_code < 0 ? "ended" : fmt::format("ended, exit code {}", rank.exit_code);
    return AddRow(rank, {"-", code, "-", "-"}, grid);
  }
  if (!rank.watched) return AddRow(rank, {"-", "not watched any more", "-", "-"}, grid);
  if (rank.calls.empty()) return AddRow(rank, {"-", "-", "-", "-"}, grid);
  for (const CallNow& call : rank.calls) {
    const std::string seconds = SecondsText(call.seconds);
    if (call.thread.inside) {
      AddRow(rank,
             {seconds, Describe(call.thread), OrDash(NameOfComm(call.thread.call)),
              OrDash(OneLine(call.site))},
             grid);
    } else if (rank.polls) {
      const std::string what = fmt::format("polls with {}", events::FactsOf(rank.poll_call).name);
      AddRow(rank, {"-", what, "-", OrDash(OneLine(rank.poll_site))}, grid);
    } else {
      AddRow(rank, {seconds, "in no call", "-", "-"}, grid);
    }
  }
}

// Where a job's command is longer, its beginning says enough; the document has all.
std::string Short(const std::string& command) {
  constexpr std::size_t kMost = 72;
  const std::string line = OneLine(command);
  return line.size() <= kMost ? line : line.substr(0, kMost - 3) + "...";
}

std::string Heading(const JobNow& job) {
  const std::string ranks = job.size > static_cast<int>(job.ranks.size())
                                ? fmt::format("{} of {} ranks here", job.ranks.size(), job.size)
                                : fmt::format("{} ranks", job.ranks.size());
  return fmt::format("job {}: {} ({}, watcher {})", OrDash(OneLine(job.name)), Short(job.command),
                     ranks, job.watcher);
}

Json ToJson(const CallNow& call) {
  const Event& event = call.thread.call;
  const bool inside = call.thread.inside;
  const auto number = [&](std::int32_t value) {
    return inside && value >= 0 ? Json(value) : Json(nullptr);
  };
  Json json = {{"thread", call.thread.thread},
               {"inside", inside},
               {"call", events::FactsOf(event.call).name},
               {"text", inside ? Json(Describe(call.thread)) : Json(nullptr)},
               {"seconds", call.seconds},
               {"peer", number(event.peer)},
               {"tag", number(event.tag)}};
  const std::string comm = inside ? NameOfComm(event) : "";
  json["communicator"] = comm.empty() ? Json(nullptr) : Json(comm);
  json["site"] = call.site.empty() ? Json(nullptr) : Json(call.site);
  json["requests"] = call.thread.requests;
  return json;
}

Json ToJson(const RankNow& rank) {
  Json calls = Json::array();
  for (const CallNow& call : rank.calls) calls.push_back(ToJson(call));
  return {{"rank", rank.rank < 0 ? Json(nullptr) : Json(rank.rank)},
          {"pid", rank.pid},
          {"state", rank.state},
          {"exit_code", rank.exit_code < 0 ? Json(nullptr) : Json(rank.exit_code)},
          {"watched", rank.watched},
          {"events", rank.events},
          {"polls", rank.polls},
          {"poll_call", rank.polls ? Json(events::FactsOf(rank.poll_call).name) : Json(nullptr)},
          {"poll_site", rank.poll_site.empty() ? Json(nullptr) : Json(rank.poll_site)},
          {"calls", std::move(calls)}};
}

}  // namespace

std::string FormatTable(const std::vector<JobNow>& jobs) {
  if (jobs.empty()) return "No job is watched here: start one with lockstep watch -- COMMAND\n";
  using enum Grid::Align;
  Grid grid;
  grid.AddColumn("rank", kRight);
  grid.AddColumn("pid", kRight);
  grid.AddColumn("state", kLeft);
  grid.AddColumn("seconds", kRight);
  for (const char* title : {"in", "of", "at"}) grid.AddColumn(title, kLeft);
  for (const JobNow& job : jobs) {
    grid.AddHeading(Heading(job));
    for (const RankNow& rank : job.ranks) AddRank(rank, grid);
  }
  return grid.Format();
}

std::string FormatJson(const std::vector<JobNow>& jobs) {
  Json list = Json::array();
  for (const JobNow& job : jobs) {
    Json ranks = Json::array();
    for (const RankNow& rank : job.ranks) ranks.push_back(ToJson(rank));
    list.push_back({{"job", job.name},
                    {"command", job.command},
                    {"watcher", job.watcher},
                    {"size", job.size},
                    {"ranks", std::move(ranks)}});
  }
  const Json document = {{"lockstep", ThisVersionText()}, {"jobs", std::move(list)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::watch::status
