// Compares machines by the newest level of every case, each with the median of all others. The
// limit widens with the spread of the fleet. A machine may also be slow in a part of its cases
// only, such as large messages.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "core/stats/stats.h"
#include "results/compare/change_text.h"
#include "results/compare/compare.h"
#include "results/compare/trend.h"

namespace lockstep::results::compare {
namespace {

constexpr double kDeviations = 4;
constexpr double kNormal = 1.4826;    // median absolute deviation -> standard deviation
constexpr double kSpreadMin = 0.005;  // machines are never more alike than this

// Of single cases, which scatter more than their median.
constexpr double kCaseTimes = 2;  // peer_min
constexpr std::size_t kFewestSlowCases = 2;
constexpr std::size_t kSlowPart = 4;  // one of so many

// A case of a machine.
struct Excess {
  double log_ratio = 0;  // of its level and the median of the others
  bool slow = false;     // beyond the limit of the case
};
// Of one machine, by the case's name.
using Excesses = std::map<std::string, Excess>;

double Deviation(const std::vector<double>& values) {
  const double middle = stats::Median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return std::max(kSpreadMin, kNormal * stats::Median(distances));
}

double LimitOf(const std::vector<double>& others, double peer_min) {
  return std::max(peer_min, kDeviations * Deviation(others));
}

std::vector<double> Without(const std::map<std::string, double>& values, const std::string& name) {
  std::vector<double> others;
  for (const auto& [other, value] : values) {
    if (other != name) others.push_back(value);
  }
  return others;
}

// Log levels of a case by machine.
void AddCase(const std::string& name, const std::map<std::string, double>& levels, double peer_min,
             std::map<std::string, Excesses>& machines) {
  for (const auto& [machine, level] : levels) {
    const std::vector<double> others = Without(levels, machine);
    const double log_ratio = level - stats::Median(others);
    Excess& known = machines[machine].try_emplace(name, Excess{log_ratio}).first->second;
    known.log_ratio = std::max(known.log_ratio, log_ratio);
    known.slow = known.slow || log_ratio > LimitOf(others, std::log1p(kCaseTimes * peer_min));
  }
}

// A level is known from launches, as in a comparison, and is that of now.
bool HasLevel(const Series& series) {
  if (!series.no_time.empty() || !series.left_out.empty()) return false;
  const stats::LevelSegment& level = series.segments.segments.back();
  std::size_t launches = 0;
  for (std::size_t i = level.first; i <= level.last; ++i) launches += series.nights[i].launches;
  return launches >= kFewestLaunches;
}

std::map<std::string, Excesses> ExcessesByMachine(std::span<const Series> all, double peer_min) {
  using Case = std::tuple<std::string, std::string, std::string, int>;
  std::map<Case, std::map<std::string, double>> levels;  // by machine, of the logarithm
  for (const Series& one : all) {
    if (!HasLevel(one)) continue;
    levels[{one.program, one.name, one.backend, one.ranks}][one.machine] =
        one.segments.segments.back().level;
  }
  std::map<std::string, Excesses> machines;
  for (const auto& [key, by_machine] : levels) {
    if (by_machine.size() < kFewestMachines) continue;
    AddCase(std::get<1>(key), by_machine, peer_min, machines);
  }
  return machines;
}

Peer PeerOf(const std::string& machine, const Excesses& excesses) {
  Peer peer;
  peer.machine = machine;
  peer.cases = excesses.size();
  std::vector<double> values;
  for (const auto& [name, excess] : excesses) {
    values.push_back(excess.log_ratio);
    if (excess.slow) ++peer.cases_slow;
    if (!peer.worst_case.empty() && std::expm1(excess.log_ratio) <= peer.worst_excess) continue;
    peer.worst_case = name;
    peer.worst_excess = std::expm1(excess.log_ratio);
  }
  peer.excess = std::expm1(stats::Median(values));
  return peer;
}

// Whether it is slow, and why.
void Judge(Peer& peer) {
  if (peer.excess > peer.limit) {
    peer.why = fmt::format("{} % beside its peers (limit {} %)", ChangeText(peer.excess),
                           ChangeText(peer.limit));
  } else if (peer.cases_slow >= std::max(kFewestSlowCases, peer.cases / kSlowPart)) {
    peer.why = fmt::format("in {} of {} cases; most in {}: {} %", peer.cases_slow, peer.cases,
                           peer.worst_case, ChangeText(peer.worst_excess));
  }
  peer.slow = !peer.why.empty();
}

}  // namespace

std::vector<Peer> ComparePeers(std::span<const Series> series, double peer_min) {
  std::vector<Peer> peers;
  std::map<std::string, double> of_machines;
  for (const auto& [machine, excesses] : ExcessesByMachine(series, peer_min)) {
    peers.push_back(PeerOf(machine, excesses));
    of_machines[machine] = peers.back().excess;
  }
  for (Peer& peer : peers) {
    peer.machines = peers.size();
    peer.limit = LimitOf(Without(of_machines, peer.machine), peer_min);
    Judge(peer);
  }
  std::stable_sort(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) {
    return std::tuple(a.slow, a.excess) > std::tuple(b.slow, b.excess);
  });
  return peers;
}

}  // namespace lockstep::results::compare
