#include "results/compare/peers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "core/stats/stats.h"

namespace lockstep {
namespace {

constexpr double kDeviations = 4;
constexpr double kNormal = 1.4826;    // median absolute deviation -> standard deviation
constexpr double kSpreadMin = 0.005;  // machines are never more alike than this

// Of one machine: log excess by case.
using Excesses = std::map<std::string, double>;

std::map<std::string, Excesses> ExcessesByMachine(std::span<const Series> all) {
  std::map<std::string, std::map<std::string, double>> levels;  // case -> machine -> log level
  for (const Series& series : all) {
    const std::string key = series.program + "\n" + series.name + "\n" + series.backend + "\n" +
                            std::to_string(series.ranks);
    levels[key][series.machine] = series.segments.segments.back().level;
  }
  std::map<std::string, Excesses> excesses;
  for (const auto& [key, by_machine] : levels) {
    if (by_machine.size() < kFewestMachines) continue;
    const std::size_t begin = key.find('\n') + 1;
    const std::string name = key.substr(begin, key.find('\n', begin) - begin);
    for (const auto& [machine, level] : by_machine) {
      std::vector<double> others;
      for (const auto& [other, its_level] : by_machine) {
        if (other != machine) others.push_back(its_level);
      }
      const double excess = level - Median(others);
      double& known = excesses[machine].try_emplace(name, excess).first->second;
      known = std::max(known, excess);
    }
  }
  return excesses;
}

double Deviation(const std::vector<double>& values) {
  const double middle = Median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return std::max(kSpreadMin, kNormal * Median(distances));
}

Peer PeerOf(const std::string& machine, const Excesses& excesses) {
  Peer peer;
  peer.machine = machine;
  peer.cases = excesses.size();
  std::vector<double> values;
  for (const auto& [name, excess] : excesses) {
    values.push_back(excess);
    if (!peer.worst_case.empty() && std::expm1(excess) <= peer.worst_excess) continue;
    peer.worst_case = name;
    peer.worst_excess = std::expm1(excess);
  }
  peer.excess = std::expm1(Median(values));
  return peer;
}

}  // namespace

std::vector<Peer> ComparePeers(std::span<const Series> series, double peer_min) {
  std::vector<Peer> peers;
  for (const auto& [machine, excesses] : ExcessesByMachine(series)) {
    peers.push_back(PeerOf(machine, excesses));
  }
  for (Peer& peer : peers) {
    std::vector<double> others;
    for (const Peer& other : peers) {
      if (&other != &peer) others.push_back(other.excess);
    }
    peer.machines = peers.size();
    peer.limit = std::max(peer_min, kDeviations * Deviation(others));
    peer.slow = peer.excess > peer.limit;
  }
  std::stable_sort(peers.begin(), peers.end(),
                   [](const Peer& a, const Peer& b) { return a.excess > b.excess; });
  return peers;
}

}  // namespace lockstep
