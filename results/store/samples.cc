// Samples and parts as columns of iterations by ranks, with scales on both axes. A column must have
// the shape of its axes when it is read.
#include <hdf5_hl.h>

#include <numeric>

#include "results/store/attributes.h"
#include "results/store/datasets.h"
#include "results/store/parts.h"

namespace lockstep::results::store {
namespace {

// The scales of the axes iteration and rank.
struct Axes {
  hdf5::Handle round;
  hdf5::Handle rank;
};

void MakeScale(const hdf5::Handle& scale, const char* name, const std::string& path,
               hdf5::File& file) {
  if (file.ok() && H5DSset_scale(scale.get(), name) < 0) {
    file.Note("{} cannot become a scale", path);
  }
}

Axes WriteAxes(hdf5::File& file, const std::string& path, const Samples& samples) {
  Axes axes;
  axes.round = WriteDataset(file, {path + "/round", {samples.round.size()}}, H5T_STD_I32LE,
                            H5T_NATIVE_INT32, samples.round.data());
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(samples.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  axes.rank = WriteDataset(file, {path + "/rank", {ranks.size()}}, H5T_STD_I32LE, H5T_NATIVE_INT32,
                           ranks.data());
  MakeScale(axes.round, "round", path, file);
  MakeScale(axes.rank, "rank", path, file);
  return axes;
}

void FinishColumn(const hdf5::Handle& column, const std::string& path, const std::string& units,
                  const Axes& axes, hdf5::File& file) {
  AttributeSink(column.get(), path, file).Put("units", units, "");
  if (!file.ok()) return;
  if (H5DSset_label(column.get(), 0, "iteration") < 0 ||
      H5DSset_label(column.get(), 1, "rank") < 0 ||
      H5DSattach_scale(column.get(), axes.round.get(), 0) < 0 ||
      H5DSattach_scale(column.get(), axes.rank.get(), 1) < 0) {
    file.Note("{} refused its scales", path);
  }
}

Dataset ColumnOf(const std::string& path, const Samples& samples) {
  return {path, {samples.round.size(), static_cast<std::size_t>(samples.ranks)}};
}

void WriteTimes(hdf5::File& file, const std::string& path, const Samples& samples,
                const std::vector<std::int64_t>& times, const Axes& axes) {
  const hdf5::Handle written =
      WriteDataset(file, ColumnOf(path, samples), H5T_STD_I64LE, H5T_NATIVE_INT64, times.data());
  FinishColumn(written, path, "ns", axes, file);
}

void WriteParts(hdf5::File& file, const std::string& path, const CaseRecord& record,
                const Axes& axes) {
  if (record.parts.empty()) return;
  const hdf5::Handle group = CreateGroup(file, path);
  for (const Part& part : record.parts) {
    const std::string name = path + "/" + part.name;
    LOCKSTEP_CHECK(part.values.size() == record.samples.entry_ns.size(),
                   name + ": a part needs a value for each iteration and rank");
    const hdf5::Handle written = WriteDataset(file, ColumnOf(name, record.samples), H5T_IEEE_F64LE,
                                              H5T_NATIVE_DOUBLE, part.values.data());
    FinishColumn(written, name, part.units, axes, file);
  }
}

// Opens a column and checks that it has the shape of its axes.
StoredDataset OpenColumn(hdf5::File& file, const std::string& path, const Samples& samples) {
  StoredDataset stored = OpenDataset(file, path, 2);
  if (file.ok() && (stored.dims[0] != samples.round.size() ||
                    stored.dims[1] != static_cast<std::size_t>(samples.ranks))) {
    file.Note("{} has another shape than its axes", path);
  }
  return stored;
}

template <typename T>
std::vector<T> ReadColumn(hdf5::File& file, const std::string& path, hid_t memory_type,
                          const Samples& samples) {
  const StoredDataset stored = OpenColumn(file, path, samples);
  if (!file.ok()) return {};
  std::vector<T> values(stored.dims[0] * stored.dims[1]);
  ReadDataset(file, stored, path, memory_type, values.data());
  return values;
}

}  // namespace

void WriteSamples(hdf5::File& file, const std::string& path, const CaseRecord& record) {
  const Samples& samples = record.samples;
  const std::string below = path + "/samples";
  const std::size_t times = samples.round.size() * static_cast<std::size_t>(samples.ranks);
  LOCKSTEP_CHECK(samples.entry_ns.size() == times && samples.exit_ns.size() == times,
                 below + ": samples need an entry and an exit for each iteration and rank");
  const hdf5::Handle group = CreateGroup(file, below);
  const Axes axes = WriteAxes(file, below, samples);
  WriteTimes(file, below + "/entry_ns", samples, samples.entry_ns, axes);
  WriteTimes(file, below + "/exit_ns", samples, samples.exit_ns, axes);
  WriteParts(file, path + "/parts", record, axes);
}

Samples ReadSamples(hdf5::File& file, const std::string& path) {
  Samples samples;
  const std::string below = path + "/samples";
  const StoredDataset round = OpenDataset(file, below + "/round", 1);
  const StoredDataset rank = OpenDataset(file, below + "/rank", 1);
  if (!file.ok()) return samples;
  samples.ranks = static_cast<int>(rank.dims[0]);
  samples.round.resize(round.dims[0]);
  ReadDataset(file, round, below + "/round", H5T_NATIVE_INT32, samples.round.data());
  samples.entry_ns = ReadColumn<std::int64_t>(file, below + "/entry_ns", H5T_NATIVE_INT64, samples);
  samples.exit_ns = ReadColumn<std::int64_t>(file, below + "/exit_ns", H5T_NATIVE_INT64, samples);
  return samples;
}

void ReadPartValues(hdf5::File& file, const std::string& path, CaseRecord& record) {
  for (Part& part : record.parts) {
    part.values =
        ReadColumn<double>(file, path + "/parts/" + part.name, H5T_NATIVE_DOUBLE, record.samples);
  }
}

}  // namespace lockstep::results::store
