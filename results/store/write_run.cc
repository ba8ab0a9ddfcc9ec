// A run is built as an HDF5 file in memory and written by us. So every error of the disk is ours to
// report. None can leave HDF5 with a file that it cannot close.
#include <fmt/core.h>
#include <hdf5.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/hdf5/handle.h"
#include "core/hdf5/memory_file.h"
#include "results/store/atomic_file.h"
#include "results/store/attributes.h"
#include "results/store/datasets.h"
#include "results/store/events.h"
#include "results/store/links.h"
#include "results/store/samples.h"
#include "results/store/schema.h"
#include "results/store/seal.h"
#include "results/store/store.h"
#include "results/store/table.h"
#include "results/store/watch_tables.h"

namespace lockstep::results::store {
namespace {

// Where a fact of the environment stands: "host/0/cpu_model" -> groups host, 0 and attribute
// cpu_model.
struct FactPath {
  std::vector<std::string> groups;
  std::string name;
};

// Empty components and ".", which HDF5 passes over, are dropped; a fact without a name is "value".
FactPath SplitFact(std::string_view fact) {
  FactPath path;
  const std::size_t slash = fact.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? fact : fact.substr(slash + 1);
  path.name = name.empty() ? "value" : name;
  std::string_view rest = slash == std::string_view::npos ? "" : fact.substr(0, slash);
  while (!rest.empty()) {
    const std::string_view group = rest.substr(0, rest.find('/'));
    if (!group.empty() && group != ".") path.groups.emplace_back(group);
    rest.remove_prefix(group.size() == rest.size() ? rest.size() : group.size() + 1);
  }
  return path;
}

SummaryRow SummaryRowOf(const CaseRecord& record) {
  SummaryRow row;
  row.name = record.name;
  row.backend = record.backend;
  row.device = record.device;
  row.model = record.model;
  row.ranks = record.ranks;
  row.repetition = record.repetition;
  row.bucket = record.bucket;
  row.bucket_cap_mb = record.bucket_cap_mb;
  row.operations = static_cast<std::int64_t>(record.operations.size());
  row.bytes = record.bytes;
  row.in_place = record.in_place;
  row.verdict = record.judgement.verdict;
  row.summary = record.summary;
  if (!record.operations.empty()) {
    const collective::Operation& first = record.operations.front();
    row.operation = collective::NameOf(first.collective);
    row.type = collective::NameOf(first.type);
    row.reduction =
        collective::InfoOf(first.collective).reduces ? collective::NameOf(first.reduction) : "";
  }
  return row;
}

std::vector<SocketRow> SocketRowsOf(const std::vector<EvidenceRecord>& evidence) {
  std::vector<SocketRow> rows;
  for (const EvidenceRecord& record : evidence) {
    for (const verdict::TcpSocket& socket : record.known.sockets) {
      rows.push_back({record.lifetime, record.known.rank, socket.local, socket.remote,
                      socket.written, socket.received, socket.unread, socket.retransmits,
                      socket.closed});
    }
  }
  return rows;
}

void WriteEnvironment(hid_t file, const Run& run, hdf5::HdfError& error) {
  CreateGroup(file, "/environment", error);
  std::set<std::string> made;
  for (const auto& [fact, value] : run.environment) {
    const FactPath parts = SplitFact(fact);
    std::string path = "/environment";
    for (const std::string& group : parts.groups) {
      path += "/" + group;
      if (made.insert(path).second) CreateGroup(file, path, error);
    }
    const hdf5::Handle group = OpenGroup(file, path, error);
    AttributeSink(group.get(), path, error).Put(parts.name.c_str(), value, "");
  }
}

// Named values as the attributes of a group.
void WriteNamed(hid_t file, const std::string& path, const auto& values, hdf5::HdfError& error) {
  const hdf5::Handle group = CreateGroup(file, path, error);
  AttributeSink attributes(group.get(), path, error);
  for (const auto& [name, value] : values) attributes.Put(name.c_str(), value, "");
}

void WritePlan(hid_t file, const Run& run, hdf5::HdfError& error) {
  const hdf5::Handle group = CreateGroup(file, "/plan", error);
  AttributeSink attributes(group.get(), "/plan", error);
  DescribePlan(Writing{attributes}, run);
  // A dataset, as it can be longer than the 64 KiB that some tools read of an attribute.
  const Value text = run.plan_text;
  const hdf5::Handle type = FileType(text, std::max<std::size_t>(1, run.plan_text.size()));
  WriteDataset(file, {"/plan/text", {}}, type.get(), type.get(), run.plan_text.c_str(), error);
}

void WriteCases(hid_t file, const Run& run, hdf5::HdfError& error) {
  CreateGroup(file, "/cases", error);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseRecord& record = run.cases[i];
    const std::string path = fmt::format("/cases/{}", i);
    const hdf5::Handle group = CreateGroup(file, path, error);
    AttributeSink attributes(group.get(), path, error);
    DescribeCase(Writing{attributes}, record);
    if (!record.settings.empty()) WriteNamed(file, path + "/settings", record.settings, error);
    WriteSamples(file, path, record, error);
  }
}

void WriteHistory(hid_t file, const Run& run, hdf5::HdfError& error) {
  const hdf5::Handle group = CreateGroup(file, "/history", error);
  AttributeSink clock(group.get(), "/history", error);
  DescribeClock(Writing{clock}, run);
  for (std::size_t i = 0; i < run.history.size(); ++i) {
    const std::string path = fmt::format("/history/{}", i);
    const hdf5::Handle events = WriteEvents(file, path, run.history[i].events, error);
    AttributeSink attributes(events.get(), path, error);
    DescribeHistory(Writing{attributes}, run.history[i]);
    attributes.Put("ticks.units", std::string("tick"), "");
  }
}

// The mirror of ReadOfCases: `field` is a list, or what a case has once at most.
template <typename Field>
void WriteOfCases(hid_t file, const std::string& path, const Run& run, hdf5::HdfError& error,
                  Field CaseRecord::*field) {
  std::vector<OfCase<typename Field::value_type>> rows;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const Field& values = run.cases[i].*field;
    const auto add = [&](const auto& row) { rows.push_back({static_cast<std::int32_t>(i), row}); };
    if constexpr (std::ranges::range<Field>) {
      std::ranges::for_each(values, add);
    } else if (values) {
      add(*values);
    }
  }
  WriteTable(file, path, rows, error);
}

void WriteTables(hid_t file, const Run& run, hdf5::HdfError& error) {
  std::vector<OfCase<SummaryRow>> summary;
  std::vector<OfCase<verdict::RankOutcome>> outcomes;
  std::vector<OfCase<verdict::Finding>> findings;
  const auto judge = [&](std::int32_t index, const verdict::Judgement& judgement) {
    for (const verdict::RankOutcome& outcome : judgement.outcomes)
      outcomes.push_back({index, outcome});
    for (const verdict::Finding& finding : judgement.findings) findings.push_back({index, finding});
  };
  judge(kLaunch, run.judgement);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    summary.push_back({index, SummaryRowOf(run.cases[i])});
    judge(index, run.cases[i].judgement);
  }
  WriteTable(file, "/summary", summary, error);
  WriteOfCases(file, "/operations", run, error, &CaseRecord::operations);
  WriteOfCases(file, "/parts", run, error, &CaseRecord::parts);
  WriteTable(file, "/effects", run.effects, error);
  WriteOfCases(file, "/wrong", run, error, &CaseRecord::wrong);
  const hdf5::Handle verdicts = CreateGroup(file, "/verdicts", error);
  AttributeSink attributes(verdicts.get(), "/verdicts", error);
  Writing{attributes}("launch", run.judgement.verdict);
  WriteTable(file, "/verdicts/outcomes", outcomes, error);
  WriteTable(file, "/verdicts/findings", findings, error);
  WriteOfCases(file, "/verdicts/trials", run, error, &CaseRecord::trial);
  WriteOfCases(file, "/recovery", run, error, &CaseRecord::recoveries);
  WriteOfCases(file, "/arrivals", run, error, &CaseRecord::arrivals);
  WriteTable(file, "/clocks", run.clocks, error);
  WriteTable(file, "/clock_anchors", run.clock_anchors, error);
  if (!run.evidence.empty()) {
    WriteTable(file, "/verdicts/evidence", run.evidence, error);
    WriteTable(file, "/verdicts/sockets", SocketRowsOf(run.evidence), error);
  }
  // Of machines and libraries that have them.
  if (!run.gpu_samples.empty()) WriteTable(file, "/gpu_samples", run.gpu_samples, error);
  if (!run.logs.empty()) WriteTable(file, "/logs", run.logs, error);
}

void WriteAll(hid_t file, const Run& run, hdf5::HdfError& error) {
  const hdf5::Handle root = OpenGroup(file, "/", error);
  AttributeSink attributes(root.get(), "/", error);
  attributes.Put("format", std::string("Lockstep run"), "");
  attributes.Put("schema_version", run.schema_version, "");
  Writing writing(attributes);
  DescribeRoot(writing, run);
  WriteEnvironment(file, run, error);
  WriteNamed(file, "/floors", run.floors, error);
  WritePlan(file, run, error);
  WriteTables(file, run, error);
  WriteCases(file, run, error);
  WriteLinks(file, run, error);
  WriteWatched(file, run, error);
  WriteHistory(file, run, error);
}

// What is large, and stays where it is while a run is written.
std::vector<std::span<const std::byte>> SamplesIn(const Run& run) {
  std::vector<std::span<const std::byte>> samples;
  const auto lend = [&samples](const auto& values) {
    samples.push_back(std::as_bytes(std::span(values)));
  };
  for (const CaseRecord& record : run.cases) {
    lend(record.samples.round);
    lend(record.samples.entry_ns);
    lend(record.samples.exit_ns);
    for (const Part& part : record.parts) lend(part.values);
  }
  return samples;
}

hdf5::Handle CreateInMemory(hdf5::MemoryFile& memory) {
  const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!memory.UseIn(access.get())) return hdf5::Handle();
  H5Pset_meta_block_size(access.get(), std::size_t{1} << 16);
  const hdf5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.get(), kSealBytes);
  return hdf5::Handle(H5Fcreate("run.h5", H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
}

}  // namespace

Status WriteRun(const Run& run, const std::string& path, WriteRules rules) {
  LOCKSTEP_CHECK(run.schema_version == kSchemaVersion, "a run is written in the current schema");
  const hdf5::Silence silence;
  hdf5::HdfError error;
  hdf5::MemoryFile memory(SamplesIn(run));
  const hdf5::Handle file = CreateInMemory(memory);
  if (!file.ok()) error.Note("HDF5 could not make a file in memory");
  WriteAll(file.get(), run, error);
  if (error.ok() && H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0) error.Note("HDF5 flushed none");
  if (!error.ok()) {
    return EnvironmentError(
        "{}: cannot be built in memory ({}); free memory, or measure fewer iterations", path,
        error.text());
  }
  std::vector<std::span<const std::byte>> pieces = memory.Pieces(kSealBytes);
  const auto seal = SealOf(pieces);
  pieces.insert(pieces.begin(), std::as_bytes(std::span(seal)));
  return WriteAtomically(path, pieces, rules);
}

}  // namespace lockstep::results::store
