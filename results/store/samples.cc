#include "results/store/samples.h"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <numeric>

#include "results/store/attributes.h"
#include "results/store/datasets.h"

namespace lockstep {
namespace {

void MakeScale(const Handle& scale, const char* name, const std::string& path, Trouble& trouble) {
  if (trouble.ok() && H5DSset_scale(scale.get(), name) < 0) {
    trouble.Note(fmt::format("{} cannot become a scale", path));
  }
}

void WriteTimes(hid_t file, const std::string& path, const Samples& samples,
                const std::vector<std::int64_t>& times, const Handle& round, const Handle& rank,
                Trouble& trouble) {
  const Dataset dataset = {path, {samples.round.size(), static_cast<std::size_t>(samples.ranks)}};
  const Handle written =
      WriteDataset(file, dataset, H5T_STD_I64LE, H5T_NATIVE_INT64, times.data(), trouble);
  AttributeSink(written.get(), path, trouble).Put("units", std::string("ns"), "");
  if (!trouble.ok()) return;
  if (H5DSset_label(written.get(), 0, "iteration") < 0 ||
      H5DSset_label(written.get(), 1, "rank") < 0 ||
      H5DSattach_scale(written.get(), round.get(), 0) < 0 ||
      H5DSattach_scale(written.get(), rank.get(), 1) < 0) {
    trouble.Note(fmt::format("{} refused its scales", path));
  }
}

std::vector<std::int64_t> ReadTimes(hid_t file, const std::string& path, Samples& samples,
                                    Trouble& trouble) {
  const StoredDataset stored = OpenDataset(file, path, 2, trouble);
  if (!trouble.ok()) return {};
  if (stored.dims[0] != samples.round.size() ||
      stored.dims[1] != static_cast<std::size_t>(samples.ranks)) {
    trouble.Note(fmt::format("{} has another shape than its axes", path));
    return {};
  }
  std::vector<std::int64_t> times(stored.dims[0] * stored.dims[1]);
  ReadDataset(stored, path, H5T_NATIVE_INT64, times.data(), trouble);
  return times;
}

}  // namespace

void WriteSamples(hid_t file, const std::string& path, const Samples& samples, Trouble& trouble) {
  const std::size_t times = samples.round.size() * static_cast<std::size_t>(samples.ranks);
  LOCKSTEP_CHECK(samples.entry_ns.size() == times && samples.exit_ns.size() == times,
                 path + ": samples need an entry and an exit for each iteration and rank");
  const Handle group = CreateGroup(file, path, trouble);
  const Handle round =
      WriteDataset(file, {path + "/round", {samples.round.size()}}, H5T_STD_I32LE,
                   H5T_NATIVE_INT32, samples.round.data(), trouble);
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(samples.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  const Handle rank = WriteDataset(file, {path + "/rank", {ranks.size()}}, H5T_STD_I32LE,
                                   H5T_NATIVE_INT32, ranks.data(), trouble);
  MakeScale(round, "round", path, trouble);
  MakeScale(rank, "rank", path, trouble);
  WriteTimes(file, path + "/entry_ns", samples, samples.entry_ns, round, rank, trouble);
  WriteTimes(file, path + "/exit_ns", samples, samples.exit_ns, round, rank, trouble);
}

Samples ReadSamples(hid_t file, const std::string& path, Trouble& trouble) {
  Samples samples;
  const StoredDataset round = OpenDataset(file, path + "/round", 1, trouble);
  const StoredDataset rank = OpenDataset(file, path + "/rank", 1, trouble);
  if (!trouble.ok()) return samples;
  samples.ranks = static_cast<int>(rank.dims[0]);
  samples.round.resize(round.dims[0]);
  ReadDataset(round, path + "/round", H5T_NATIVE_INT32, samples.round.data(), trouble);
  samples.entry_ns = ReadTimes(file, path + "/entry_ns", samples, trouble);
  samples.exit_ns = ReadTimes(file, path + "/exit_ns", samples, trouble);
  return samples;
}

}  // namespace lockstep
