// Test material: a mesh of ranks in virtual time, of which some links are slow.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/link_traffic.h"
#include "core/verdict/links/slow_link.h"
#include "core/verdict/links/testing/link_history.h"

namespace lockstep::verdict::links {

inline constexpr double kBegin = 1000;
inline constexpr int kPortions = 60;
inline constexpr double kEvery = 0.05;     // between two portions of one way
inline constexpr double kBrief = 0.00005;  // on the way, and for a look

// One look every `every_s`, the first `phase_s` after the beginning.
inline std::vector<LinkLook> Looks(double every_s, double phase_s) {
  std::vector<LinkLook> looks;
  for (double at_s = kBegin - 1 + phase_s; at_s < kBegin + kEvery * (kPortions + 2);
       at_s += every_s) {
    looks.push_back({at_s - kBrief, at_s, at_s + kBrief});
  }
  return looks;
}

inline void Delay(LinkWay& way, double seconds) {
  for (LinkWay::Portion& portion : way.portions) portion.came_s = portion.written_s + seconds;
}

inline void Relay(LinkWay& way, double told_s) {
  way.relayed = true;
  for (LinkWay::Portion& portion : way.portions) portion.told_s = told_s;
}

// Every pair connected, a portion every 50 ms each way, looks every 4 ms at moments of their own.
inline LinkHistory Mesh(int ranks = 4) {
  LinkHistory history(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    history.end(rank).looks = Looks(0.004, 0.0011 * rank);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      LinkWay& way = history.way(rank, peer);
      for (int i = 0; i < kPortions; ++i) {
        const double written_s = kBegin + kEvery * i + 0.0017 * (rank + peer);
        way.portions.push_back({.written_s = written_s, .came_s = written_s + kBrief});
      }
    }
  }
  return history;
}

// From `slow` to its peers `to` (all where it is -1) bytes take `seconds`; the kernel sees it, too.
inline LinkHistory SlowMesh(int slow, int to, double seconds) {
  LinkHistory history = Mesh();
  for (int peer = 0; peer < history.size(); ++peer) {
    if (peer == slow || (to != -1 && to != peer)) continue;
    Delay(history.way(slow, peer), seconds);
    history.way(slow, peer).round_trip_s = seconds;
  }
  return history;
}

inline std::vector<Finding> FindIn(const std::vector<RankEvidence>& evidence) {
  return FindSlowLinks(PointersTo(evidence));
}
inline std::vector<Finding> Find(LinkHistory history) { return FindIn(history.Evidence()); }

}  // namespace lockstep::verdict::links
