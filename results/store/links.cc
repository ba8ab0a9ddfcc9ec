// The group /links: pairs as a table, and matrices for those who plot. Only the table is read back.
#include "results/store/links.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/named_members.h"
#include "results/store/attributes.h"
#include "results/store/datasets.h"
#include "results/store/schema.h"
#include "results/store/table.h"

namespace lockstep::results::store {
namespace {

void DescribeLinks(auto&& fields, auto& links) {
  LOCKSTEP_FIELDS(fields, links, bytes, slow_factor, usual_latency_ns, usual_gbps);
}

std::size_t RanksOf(const Run& run) {
  std::size_t ranks = run.links->all_at_once_gbps.size();
  for (const LinkPair& pair : run.links->pairs) {
    ranks = std::max(ranks, static_cast<std::size_t>(std::max({pair.a, pair.b, 0})) + 1);
  }
  return ranks;
}

void Finish(const hdf5::Handle& matrix, const hdf5::Handle& scale, const std::string& path,
            const char* units, bool directed, hdf5::HdfError& error) {
  AttributeSink(matrix.get(), path, error).Put("units", std::string(units), "");
  if (!error.ok()) return;
  if (H5DSset_label(matrix.get(), 0, directed ? "from" : "rank") < 0 ||
      H5DSset_label(matrix.get(), 1, directed ? "to" : "rank") < 0 ||
      H5DSattach_scale(matrix.get(), scale.get(), 0) < 0 ||
      H5DSattach_scale(matrix.get(), scale.get(), 1) < 0) {
    error.Note(path + " refused its scales");
  }
}

void WriteMatrices(hid_t file, const Run& run, hdf5::HdfError& error) {
  const std::size_t ranks = RanksOf(run);
  std::vector<std::int32_t> numbers(ranks);
  std::iota(numbers.begin(), numbers.end(), 0);
  const hdf5::Handle scale = WriteDataset(file, {"/links/rank", {ranks}}, H5T_STD_I32LE,
                                          H5T_NATIVE_INT32, numbers.data(), error);
  if (error.ok() && H5DSset_scale(scale.get(), "rank") < 0) {
    error.Note("/links/rank cannot become a scale");
  }
  std::vector<double> latency(ranks * ranks, LinkPair::kUnknown);
  std::vector<double> gbps = latency;
  for (const LinkPair& pair : run.links->pairs) {
    if (pair.a < 0 || pair.b < 0) continue;
    const std::size_t forward =
        static_cast<std::size_t>(pair.a) * ranks + static_cast<std::size_t>(pair.b);
    const std::size_t back =
        static_cast<std::size_t>(pair.b) * ranks + static_cast<std::size_t>(pair.a);
    latency[forward] = latency[back] = pair.latency_ns;
    gbps[forward] = pair.forward_gbps;
    gbps[back] = pair.back_gbps;
  }
  const auto write = [&](const char* path, const std::vector<double>& values, const char* units,
                         bool directed) {
    const hdf5::Handle matrix = WriteDataset(file, {path, {ranks, ranks}}, H5T_IEEE_F64LE,
                                             H5T_NATIVE_DOUBLE, values.data(), error);
    Finish(matrix, scale, path, units, directed, error);
  };
  write("/links/latency_ns", latency, "ns", false);
  write("/links/gbps", gbps, "GB/s", true);
}

}  // namespace

void WriteLinks(hid_t file, const Run& run, hdf5::HdfError& error) {
  if (!run.links) return;
  const hdf5::Handle group = CreateGroup(file, "/links", error);
  AttributeSink attributes(group.get(), "/links", error);
  DescribeLinks(Writing{attributes}, *run.links);
  WriteTable(file, "/links/pairs", run.links->pairs, error);
  WriteMatrices(file, run, error);
  const std::vector<double>& rates = run.links->all_at_once_gbps;
  const hdf5::Handle together =
      WriteDataset(file, {"/links/all_at_once_gbps", {rates.size()}}, H5T_IEEE_F64LE,
                   H5T_NATIVE_DOUBLE, rates.data(), error);
  AttributeSink(together.get(), "/links/all_at_once_gbps", error)
      .Put("units", std::string("GB/s"), "");
}

void ReadLinks(hid_t file, Run& run, hdf5::HdfError& error) {
  if (!error.ok() || !Exists(file, "/links")) return;
  LinkMatrix links;
  const hdf5::Handle group = OpenGroup(file, "/links", error);
  AttributeSource attributes(group.get(), "/links", error);
  DescribeLinks(Reading{attributes}, links);
  links.pairs = ReadTable<LinkPair>(file, "/links/pairs", error);
  const StoredDataset together = OpenDataset(file, "/links/all_at_once_gbps", 1, error);
  if (!error.ok()) return;
  links.all_at_once_gbps.resize(together.dims[0]);
  ReadDataset(together, "/links/all_at_once_gbps", H5T_NATIVE_DOUBLE, links.all_at_once_gbps.data(),
              error);
  run.links = std::move(links);
}

}  // namespace lockstep::results::store
