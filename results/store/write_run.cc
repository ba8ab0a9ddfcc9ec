// A run is built as an HDF5 file in memory and written by us. So every error of the disk is ours to
// report. None can leave HDF5 with a file that it cannot close.
#include <fmt/core.h>
#include <hdf5.h>

#include <algorithm>
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

void WriteEnvironment(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  CreateGroup(file, "/environment", trouble);
  std::set<std::string> made;
  for (const auto& [fact, value] : run.environment) {
    const FactPath parts = SplitFact(fact);
    std::string path = "/environment";
    for (const std::string& group : parts.groups) {
      path += "/" + group;
      if (made.insert(path).second) CreateGroup(file, path, trouble);
    }
    const hdf5::Handle group = OpenGroup(file, path, trouble);
    AttributeSink(group.get(), path, trouble).Put(parts.name.c_str(), value, "");
  }
}

void WriteFloors(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  const hdf5::Handle group = CreateGroup(file, "/floors", trouble);
  AttributeSink attributes(group.get(), "/floors", trouble);
  for (const auto& [name, value] : run.floors) attributes.Put(name.c_str(), value, "");
}

void WritePlan(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  const hdf5::Handle group = CreateGroup(file, "/plan", trouble);
  AttributeSink attributes(group.get(), "/plan", trouble);
  Writing writing(attributes);
  DescribePlan(writing, run);
  // A dataset, as it can be longer than the 64 KiB that some tools read of an attribute.
  const Value text = run.plan_text;
  const hdf5::Handle type = FileType(text, std::max<std::size_t>(1, run.plan_text.size()));
  WriteDataset(file, {"/plan/text", {}}, type.get(), type.get(), run.plan_text.c_str(), trouble);
}

void WriteSettings(hid_t file, const std::string& path, const CaseRecord& record,
                   hdf5::Trouble& trouble) {
  if (record.settings.empty()) return;
  const hdf5::Handle group = CreateGroup(file, path, trouble);
  AttributeSink attributes(group.get(), path, trouble);
  for (const auto& [name, value] : record.settings) attributes.Put(name.c_str(), value, "");
}

void WriteCases(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  CreateGroup(file, "/cases", trouble);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseRecord& record = run.cases[i];
    const std::string path = fmt::format("/cases/{}", i);
    const hdf5::Handle group = CreateGroup(file, path, trouble);
    AttributeSink attributes(group.get(), path, trouble);
    Writing writing(attributes);
    DescribeCase(writing, record);
    WriteSettings(file, path + "/settings", record, trouble);
    WriteSamples(file, path, record, trouble);
  }
}

void WriteHistory(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  const hdf5::Handle group = CreateGroup(file, "/history", trouble);
  AttributeSink clock(group.get(), "/history", trouble);
  Writing writing_clock(clock);
  DescribeClock(writing_clock, run);
  for (std::size_t i = 0; i < run.history.size(); ++i) {
    const std::string path = fmt::format("/history/{}", i);
    const hdf5::Handle events = WriteEvents(file, path, run.history[i].events, trouble);
    AttributeSink attributes(events.get(), path, trouble);
    Writing writing(attributes);
    DescribeHistory(writing, run.history[i]);
    attributes.Put("ticks.units", std::string("tick"), "");
  }
}

void WriteTables(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  std::vector<OfCase<SummaryRow>> summary;
  std::vector<OfCase<collective::Operation>> operations;
  std::vector<OfCase<Part>> parts;
  std::vector<OfCase<WrongResult>> wrong;
  std::vector<OfCase<verdict::RankOutcome>> outcomes;
  std::vector<OfCase<verdict::Finding>> findings;
  std::vector<OfCase<Trial>> trials;
  std::vector<OfCase<RecoveryRecord>> recoveries;
  std::vector<OfCase<Arrivals>> arrivals;
  const auto judge = [&](std::int32_t index, const verdict::Judgement& judgement) {
    for (const verdict::RankOutcome& outcome : judgement.outcomes)
      outcomes.push_back({index, outcome});
    for (const verdict::Finding& finding : judgement.findings) findings.push_back({index, finding});
  };
  judge(kLaunch, run.judgement);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseRecord& record = run.cases[i];
    const auto index = static_cast<std::int32_t>(i);
    summary.push_back({index, SummaryRowOf(record)});
    for (const collective::Operation& operation : record.operations)
      operations.push_back({index, operation});
    for (const Part& part : record.parts) parts.push_back({index, part});
    for (const WrongResult& result : record.wrong) wrong.push_back({index, result});
    judge(index, record.judgement);
    if (record.trial) trials.push_back({index, *record.trial});
    if (record.arrivals) arrivals.push_back({index, *record.arrivals});
    for (const RecoveryRecord& made : record.recoveries) recoveries.push_back({index, made});
  }
  WriteTable(file, "/summary", summary, trouble);
  WriteTable(file, "/operations", operations, trouble);
  WriteTable(file, "/parts", parts, trouble);
  WriteTable(file, "/effects", run.effects, trouble);
  WriteTable(file, "/wrong", wrong, trouble);
  const hdf5::Handle verdicts = CreateGroup(file, "/verdicts", trouble);
  AttributeSink attributes(verdicts.get(), "/verdicts", trouble);
  Writing{attributes}("launch", run.judgement.verdict);
  WriteTable(file, "/verdicts/outcomes", outcomes, trouble);
  WriteTable(file, "/verdicts/findings", findings, trouble);
  WriteTable(file, "/verdicts/trials", trials, trouble);
  WriteTable(file, "/recovery", recoveries, trouble);
  WriteTable(file, "/arrivals", arrivals, trouble);
  WriteTable(file, "/clocks", run.clocks, trouble);
  WriteTable(file, "/clock_anchors", run.clock_anchors, trouble);
  if (!run.evidence.empty()) {
    WriteTable(file, "/verdicts/evidence", run.evidence, trouble);
    WriteTable(file, "/verdicts/sockets", SocketRowsOf(run.evidence), trouble);
  }
  // Of machines and libraries that have them.
  if (!run.gpu_samples.empty()) WriteTable(file, "/gpu_samples", run.gpu_samples, trouble);
  if (!run.logs.empty()) WriteTable(file, "/logs", run.logs, trouble);
}

void WriteAll(hid_t file, const Run& run, hdf5::Trouble& trouble) {
  const hdf5::Handle root = OpenGroup(file, "/", trouble);
  AttributeSink attributes(root.get(), "/", trouble);
  attributes.Put("format", std::string("Lockstep run"), "");
  attributes.Put("schema_version", run.schema_version, "");
  Writing writing(attributes);
  DescribeRoot(writing, run);
  WriteEnvironment(file, run, trouble);
  WriteFloors(file, run, trouble);
  WritePlan(file, run, trouble);
  WriteTables(file, run, trouble);
  WriteCases(file, run, trouble);
  WriteLinks(file, run, trouble);
  WriteWatched(file, run, trouble);
  WriteHistory(file, run, trouble);
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
  hdf5::Trouble trouble;
  hdf5::MemoryFile memory(SamplesIn(run));
  const hdf5::Handle file = CreateInMemory(memory);
  if (!file.ok()) trouble.Note("HDF5 could not make a file in memory");
  WriteAll(file.get(), run, trouble);
  if (trouble.ok() && H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0) trouble.Note("HDF5 flushed none");
  if (!trouble.ok()) {
    return EnvironmentError(
        fmt::format("{}: cannot be built in memory ({}); free memory, or measure fewer iterations",
                    path, trouble.text()));
  }
  std::vector<std::span<const std::byte>> pieces = memory.Pieces(kSealBytes);
  const auto seal = SealOf(pieces);
  pieces.insert(pieces.begin(), std::as_bytes(std::span(seal)));
  return WriteAtomically(path, pieces, rules);
}

}  // namespace lockstep::results::store
