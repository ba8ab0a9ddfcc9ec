// The group /links: pairs as a table, and matrices for those who plot. Only the table is read back.
#include <hdf5_hl.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/named_members.h"
#include "results/store/attributes.h"
#include "results/store/datasets.h"
#include "results/store/parts.h"
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
            const char* units, bool directed, hdf5::File& file) {
  AttributeSink(matrix.get(), path, file).Put("units", std::string(units), "");
  if (!file.ok()) return;
  if (H5DSset_label(matrix.get(), 0, directed ? "from" : "rank") < 0 ||
      H5DSset_label(matrix.get(), 1, directed ? "to" : "rank") < 0 ||
      H5DSattach_scale(matrix.get(), scale.get(), 0) < 0 ||
      H5DSattach_scale(matrix.get(), scale.get(), 1) < 0) {
    file.Note(path + " refused its scales");
  }
}

void WriteMatrices(hdf5::File& file, const Run& run) {
  const std::size_t ranks = RanksOf(run);
  std::vector<std::int32_t> numbers(ranks);
  std::iota(numbers.begin(), numbers.end(), 0);
  const hdf5::Handle scale =
      WriteDataset(file, {"/links/rank", {ranks}}, H5T_STD_I32LE, H5T_NATIVE_INT32, numbers.data());
  if (file.ok() && H5DSset_scale(scale.get(), "rank") < 0) {
    file.Note("/links/rank cannot become a scale");
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
                                             H5T_NATIVE_DOUBLE, values.data());
    Finish(matrix, scale, path, units, directed, file);
  };
  write("/links/latency_ns", latency, "ns", false);
  write("/links/gbps", gbps, "GB/s", true);
}

}  // namespace

void WriteLinks(hdf5::File& file, const Run& run) {
  if (!run.links) return;
  const hdf5::Handle group = CreateGroup(file, "/links");
  AttributeSink attributes(group.get(), "/links", file);
  DescribeLinks(Writing{attributes}, *run.links);
  WriteTable(file, "/links/pairs", run.links->pairs);
  WriteMatrices(file, run);
  const std::vector<double>& rates = run.links->all_at_once_gbps;
  const hdf5::Handle together = WriteDataset(file, {"/links/all_at_once_gbps", {rates.size()}},
                                             H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, rates.data());
  AttributeSink(together.get(), "/links/all_at_once_gbps", file)
      .Put("units", std::string("GB/s"), "");
}

void ReadLinks(hdf5::File& file, Run& run) {
  if (!file.ok() || !Exists(file, "/links")) return;
  LinkMatrix links;
  const hdf5::Handle group = OpenGroup(file, "/links");
  AttributeSource attributes(group.get(), "/links", file);
  DescribeLinks(Reading{attributes}, links);
  links.pairs = ReadTable<LinkPair>(file, "/links/pairs");
  const StoredDataset together = OpenDataset(file, "/links/all_at_once_gbps", 1);
  if (!file.ok()) return;
  links.all_at_once_gbps.resize(together.dims[0]);
  ReadDataset(file, together, "/links/all_at_once_gbps", H5T_NATIVE_DOUBLE,
              links.all_at_once_gbps.data());
  run.links = std::move(links);
}

}  // namespace lockstep::results::store
