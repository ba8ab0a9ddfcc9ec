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
#include "results/store/parts.h"
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
  SummaryRow row{.name = record.name,
                 .backend = record.backend,
                 .device = record.device,
                 .model = record.model,
                 .ranks = record.ranks,
                 .repetition = record.repetition,
                 .bucket = record.bucket,
                 .bucket_cap_mb = record.bucket_cap_mb,
                 .operations = static_cast<std::int64_t>(record.operations.size()),
                 .bytes = record.bytes,
                 .in_place = record.in_place,
                 .verdict = record.judgement.verdict,
                 .summary = record.summary};
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

void WriteEnvironment(hdf5::File& file, const Run& run) {
  CreateGroup(file, "/environment");
  std::set<std::string> made;
  for (const auto& [fact, value] : run.environment) {
    const FactPath parts = SplitFact(fact);
    std::string path = "/environment";
    for (const std::string& group : parts.groups) {
      path += "/" + group;
      if (made.insert(path).second) CreateGroup(file, path);
    }
    const hdf5::Handle group = OpenGroup(file, path);
    AttributeSink(group.get(), path, file).Put(parts.name.c_str(), value, "");
  }
}

// Named values as the attributes of a group.
void WriteNamed(hdf5::File& file, const std::string& path, const auto& values) {
  const hdf5::Handle group = CreateGroup(file, path);
  AttributeSink attributes(group.get(), path, file);
  for (const auto& [name, value] : values) attributes.Put(name.c_str(), value, "");
}

void WritePlan(hdf5::File& file, const Run& run) {
  const hdf5::Handle group = CreateGroup(file, "/plan");
  AttributeSink attributes(group.get(), "/plan", file);
  DescribePlan(Writing{attributes}, run);
  // A dataset, as it can be longer than the 64 KiB that some tools read of an attribute.
  const Value text = run.plan_text;
  const hdf5::Handle type = FileType(text, std::max<std::size_t>(1, run.plan_text.size()));
  WriteDataset(file, {"/plan/text", {}}, type.get(), type.get(), run.plan_text.c_str());
}

void WriteCases(hdf5::File& file, const Run& run) {
  CreateGroup(file, "/cases");
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseRecord& record = run.cases[i];
    const std::string path = fmt::format("/cases/{}", i);
    const hdf5::Handle group = CreateGroup(file, path);
    AttributeSink attributes(group.get(), path, file);
    DescribeCase(Writing{attributes}, record);
    if (!record.settings.empty()) WriteNamed(file, path + "/settings", record.settings);
    WriteSamples(file, path, record);
  }
}

void WriteHistory(hdf5::File& file, const Run& run) {
  const hdf5::Handle group = CreateGroup(file, "/history");
  AttributeSink clock(group.get(), "/history", file);
  DescribeClock(Writing{clock}, run);
  for (std::size_t i = 0; i < run.history.size(); ++i) {
    const std::string path = fmt::format("/history/{}", i);
    const hdf5::Handle events = WriteEvents(file, path, run.history[i].events);
    AttributeSink attributes(events.get(), path, file);
    DescribeHistory(Writing{attributes}, run.history[i]);
    attributes.Put("ticks.units", std::string("tick"), "");
  }
}

// The mirror of ReadOfCases: `field` is a list, or what a case has once at most.
template <typename Field>
void WriteOfCases(hdf5::File& file, const std::string& path, const Run& run,
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
  WriteTable(file, path, rows);
}

void WriteTables(hdf5::File& file, const Run& run) {
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
  WriteTable(file, "/summary", summary);
  WriteOfCases(file, "/operations", run, &CaseRecord::operations);
  WriteOfCases(file, "/parts", run, &CaseRecord::parts);
  WriteTable(file, "/effects", run.effects);
  WriteOfCases(file, "/wrong", run, &CaseRecord::wrong);
  const hdf5::Handle verdicts = CreateGroup(file, "/verdicts");
  AttributeSink attributes(verdicts.get(), "/verdicts", file);
  Writing{attributes}("launch", run.judgement.verdict);
  WriteTable(file, "/verdicts/outcomes", outcomes);
  WriteTable(file, "/verdicts/findings", findings);
  WriteOfCases(file, "/verdicts/trials", run, &CaseRecord::trial);
  WriteOfCases(file, "/recovery", run, &CaseRecord::recoveries);
  WriteOfCases(file, "/arrivals", run, &CaseRecord::arrivals);
  WriteTable(file, "/clocks", run.clocks);
  WriteTable(file, "/clock_anchors", run.clock_anchors);
  if (!run.evidence.empty()) {
    WriteTable(file, "/verdicts/evidence", run.evidence);
    WriteTable(file, "/verdicts/sockets", SocketRowsOf(run.evidence));
  }
  // Of machines and libraries that have them.
  if (!run.gpu_samples.empty()) WriteTable(file, "/gpu_samples", run.gpu_samples);
  if (!run.logs.empty()) WriteTable(file, "/logs", run.logs);
}

void WriteAll(hdf5::File& file, const Run& run) {
  const hdf5::Handle root = OpenGroup(file, "/");
  AttributeSink attributes(root.get(), "/", file);
  attributes.Put("format", std::string("Lockstep run"), "");
  attributes.Put("schema_version", run.schema_version, "");
  Writing writing(attributes);
  DescribeRoot(writing, run);
  WriteEnvironment(file, run);
  WriteNamed(file, "/floors", run.floors);
  WritePlan(file, run);
  WriteTables(file, run);
  WriteCases(file, run);
  WriteLinks(file, run);
  WriteWatched(file, run);
  WriteHistory(file, run);
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
  hdf5::MemoryFile memory(SamplesIn(run));
  const hdf5::Handle made = CreateInMemory(memory);
  hdf5::File file(made.get());
  if (!made.ok()) file.Note("HDF5 could not make a file in memory");
  WriteAll(file, run);
  if (file.ok() && H5Fflush(file.id, H5F_SCOPE_GLOBAL) < 0) file.Note("HDF5 flushed none");
  if (!file.ok()) {
    return EnvironmentError(
        "{}: cannot be built in memory ({}); free memory, or measure fewer iterations", path,
        file.text());
  }
  std::vector<std::span<const std::byte>> pieces = memory.Pieces(kSealBytes);
  const auto seal = SealOf(pieces);
  pieces.insert(pieces.begin(), std::as_bytes(std::span(seal)));
  return WriteAtomically(path, pieces, rules);
}

}  // namespace lockstep::results::store
