// The group /watch: what `lockstep watch --report` keeps. Only its runs have it. Rows of two of its
// tables name rows of a third, which is checked when they are read.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/named_members.h"
#include "core/hdf5/handle.h"
#include "results/store/datasets.h"
#include "results/store/run.h"
#include "results/store/table.h"

namespace lockstep::results::store {

void Describe(auto& fields, Is<WatchedRank> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, pid, begun_ns, ended_ns, calls, uncounted, complete);
}

void Describe(auto& fields, Is<WaitPlace> auto& row) {
  LOCKSTEP_FIELDS(fields, row, rank, call, site, communicator, calls, came_last, waited_ns,
                  longest_ns);
}

void Describe(auto& fields, Is<WaitedFor> auto& row) {
  LOCKSTEP_FIELDS(fields, row, place, rank, times, waited_ns);
}

void Describe(auto& fields, Is<WatchedCall> auto& row) {
  LOCKSTEP_FIELDS(fields, row, place, thread, peer, tag, entered_ns, left_ns, waited_ns,
                  waited_for);
}

inline void WriteWatched(hdf5::File& file, const Run& run) {
  if (!run.watched) return;
  CreateGroup(file, "/watch");
  WriteTable(file, "/watch/ranks", run.watched->ranks);
  WriteTable(file, "/watch/places", run.watched->places);
  WriteTable(file, "/watch/waited_for", run.watched->blamed);
  WriteTable(file, "/watch/calls", run.watched->calls);
}

template <typename Row>
std::vector<Row> ReadOfPlaces(hdf5::File& file, const std::string& path, std::size_t places) {
  std::vector<Row> rows = ReadTable<Row>(file, path);
  for (const Row& row : rows) {
    if (row.place >= 0 && static_cast<std::size_t>(row.place) < places) continue;
    file.Note("{} names place {}, of {}", path, row.place, places);
    return {};
  }
  return rows;
}

inline void ReadWatched(hdf5::File& file, Run& run) {
  if (!file.ok() || !Exists(file, "/watch")) return;
  Watched watched;
  watched.ranks = ReadTable<WatchedRank>(file, "/watch/ranks");
  watched.places = ReadTable<WaitPlace>(file, "/watch/places");
  const std::size_t places = watched.places.size();
  watched.blamed = ReadOfPlaces<WaitedFor>(file, "/watch/waited_for", places);
  watched.calls = ReadOfPlaces<WatchedCall>(file, "/watch/calls", places);
  run.watched = std::move(watched);
}

}  // namespace lockstep::results::store
