// Reads a run from a file that may be older or damaged. The seal is verified first. Tables that a
// schema did not have yet stay empty; everything else that is missing is named.
#include <fmt/core.h>
#include <hdf5.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/hdf5/handle.h"
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

// Deeper nesting, or more cases or journals, than any writer makes.
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxChildren = 10'000'000;

std::vector<std::string> AttributeNames(hid_t object) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names);
  return names;
}

std::vector<std::string> ChildNames(hid_t group) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
    auto* children = static_cast<std::vector<std::string>*>(out);
    if (info->type == H5L_TYPE_HARD) children->emplace_back(name);
    return 0;
  };
  hsize_t position = 0;
  H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, take, &names);
  return names;
}

std::size_t CountChildren(hdf5::File& file, const std::string& path) {
  const hdf5::Handle group = OpenGroup(file, path);
  H5G_info_t info{};
  if (!file.ok()) return 0;
  if (H5Gget_info(group.get(), &info) < 0 || info.nlinks > kMaxChildren) {
    file.Note("{} cannot be listed", path);
    return 0;
  }
  return info.nlinks;
}

// `prefix` is the path below /environment, with a slash behind it unless empty.
void ReadFacts(hdf5::File& file, const std::string& prefix, int depth, Run& run) {
  const std::string path = "/environment/" + prefix;
  const hdf5::Handle group = OpenGroup(file, path);
  if (!file.ok()) return;
  if (depth > kMaxDepth) return file.Note("{} is nested too deep", path);
  AttributeSource attributes(group.get(), path, file);
  for (const std::string& name : AttributeNames(group.get())) {
    const Value value = attributes.Get(name.c_str(), std::string());
    run.environment.emplace_back(prefix + name, std::get<std::string>(value));
  }
  for (const std::string& name : ChildNames(group.get())) {
    ReadFacts(file, prefix + name + "/", depth + 1, run);
  }
}

// All attributes of a group.
template <typename T>
void ReadNamed(hdf5::File& file, const std::string& path,
               std::vector<std::pair<std::string, T>>& values) {
  const hdf5::Handle group = OpenGroup(file, path);
  if (!file.ok()) return;
  AttributeSource attributes(group.get(), path, file);
  for (const std::string& name : AttributeNames(group.get())) {
    values.emplace_back(name, std::get<T>(attributes.Get(name.c_str(), T())));
  }
}

void ReadPlan(hdf5::File& file, Run& run) {
  const hdf5::Handle group = OpenGroup(file, "/plan");
  AttributeSource attributes(group.get(), "/plan", file);
  DescribePlan(Reading{attributes}, run);
  const StoredDataset text = OpenDataset(file, "/plan/text", 0);
  if (!file.ok()) return;
  if (H5Tget_class(text.type.get()) != H5T_STRING || H5Tis_variable_str(text.type.get()) > 0) {
    return file.Note("/plan/text is no text of fixed length");
  }
  run.plan_text.resize(H5Tget_size(text.type.get()));
  ReadDataset(file, text, "/plan/text", text.type.get(), run.plan_text.data());
  run.plan_text.resize(run.plan_text.find_last_not_of('\0') + 1);
}

void ReadCases(hdf5::File& file, Run& run) {
  run.cases.resize(CountChildren(file, "/cases"));
  for (std::size_t i = 0; i < run.cases.size() && file.ok(); ++i) {
    const std::string path = fmt::format("/cases/{}", i);
    const hdf5::Handle group = OpenGroup(file, path);
    AttributeSource attributes(group.get(), path, file);
    DescribeCase(Reading{attributes}, run.cases[i]);
    const std::string settings = path + "/settings";
    if (file.ok() && Exists(file, settings)) ReadNamed(file, settings, run.cases[i].settings);
    run.cases[i].samples = ReadSamples(file, path);
  }
}

void ReadHistory(hdf5::File& file, Run& run) {
  run.history.resize(CountChildren(file, "/history"));
  const hdf5::Handle group = OpenGroup(file, "/history");
  AttributeSource clock(group.get(), "/history", file);
  DescribeClock(Reading{clock}, run);
  for (std::size_t i = 0; i < run.history.size() && file.ok(); ++i) {
    const std::string path = fmt::format("/history/{}", i);
    run.history[i].events = ReadEvents(file, path);
    if (!file.ok()) return;
    const hdf5::Handle events(H5Dopen2(file.id, path.c_str(), H5P_DEFAULT), H5Dclose);
    AttributeSource attributes(events.get(), path, file);
    DescribeHistory(Reading{attributes}, run.history[i]);
  }
}

// Calls take(case, record) for the rows of a table that belong to a case of the run, and
// take(nullptr, record) for those of the launch.
template <typename Record, typename Take>
void Distribute(hdf5::File& file, const std::string& path, Run& run, Take take) {
  for (const auto& row : ReadTable<OfCase<Record>>(file, path)) {
    if (row.case_index < kLaunch || row.case_index >= std::ssize(run.cases)) {
      return file.Note("{} names case {}, of {}", path, row.case_index, run.cases.size());
    }
    take(row.case_index == kLaunch ? nullptr : &run.cases[row.case_index], row.record);
  }
}

// The rows of cases, each into the list that its case has of them.
template <typename Record>
void ReadOfCases(hdf5::File& file, const std::string& path, Run& run,
                 std::vector<Record> CaseRecord::*list) {
  Distribute<Record>(file, path, run, [list](CaseRecord* of, const Record& record) {
    if (of != nullptr) (of->*list).push_back(record);
  });
}
// The same for what a case has once at most.
template <typename Record>
void ReadOfCases(hdf5::File& file, const std::string& path, Run& run,
                 std::optional<Record> CaseRecord::*place) {
  Distribute<Record>(file, path, run, [place](CaseRecord* of, const Record& record) {
    if (of != nullptr) of->*place = record;
  });
}

// The tables that schema 2 brought.
void ReadParts(hdf5::File& file, Run& run) {
  ReadOfCases(file, "/parts", run, &CaseRecord::parts);
  for (std::size_t i = 0; i < run.cases.size() && file.ok(); ++i) {
    ReadPartValues(file, fmt::format("/cases/{}", i), run.cases[i]);
  }
  run.effects = ReadTable<OptionEffect>(file, "/effects");
  const std::int64_t cases = std::ssize(run.cases);
  for (const OptionEffect& effect : run.effects) {
    if (effect.case_index >= 0 && effect.case_index < cases && effect.baseline >= 0 &&
        effect.baseline < cases) {
      continue;
    }
    return file.Note("/effects names cases {} and {}, of {}", effect.case_index, effect.baseline,
                     cases);
  }
}

// Tables that files of schema 4 had not at first.
void ReadClocks(hdf5::File& file, Run& run) {
  if (!file.ok() || !Exists(file, "/clocks")) return;
  ReadOfCases(file, "/arrivals", run, &CaseRecord::arrivals);
  run.clocks = ReadTable<HostClock>(file, "/clocks");
  run.clock_anchors = ReadTable<ClockAnchorPoint>(file, "/clock_anchors");
  for (const ClockAnchorPoint& anchor : run.clock_anchors) {
    if (anchor.host >= 0 && anchor.host < std::ssize(run.clocks)) continue;
    return file.Note("/clock_anchors names host {}, of {}", anchor.host, run.clocks.size());
  }
}

// Tables that files of schema 4 had not at first.
void ReadEvidence(hdf5::File& file, Run& run) {
  if (!file.ok() || !Exists(file, "/verdicts/evidence")) return;
  run.evidence = ReadTable<EvidenceRecord>(file, "/verdicts/evidence");
  std::map<std::pair<int, int>, verdict::RankEvidence*> ranks;
  for (EvidenceRecord& record : run.evidence) {
    if (record.case_index < kLaunch || record.case_index >= std::ssize(run.cases)) {
      return file.Note("/verdicts/evidence names case {}, of {}", record.case_index,
                       run.cases.size());
    }
    ranks[{record.lifetime, record.known.rank}] = &record.known;
  }
  for (const SocketRow& row : ReadTable<SocketRow>(file, "/verdicts/sockets")) {
    const auto rank = ranks.find({row.lifetime, row.rank});
    if (rank == ranks.end()) {
      return file.Note(
          "/verdicts/sockets names rank {} of lifetime {}, which /verdicts/evidence lacks",
          row.rank, row.lifetime);
    }
    rank->second->sockets.push_back({.local = row.local,
                                     .remote = row.remote,
                                     .written = row.written,
                                     .received = row.received,
                                     .unread = static_cast<std::uint32_t>(row.unread),
                                     .retransmits = static_cast<std::uint32_t>(row.retransmits),
                                     .closed = row.closed});
  }
}

void ReadTables(hdf5::File& file, Run& run) {
  const auto judgement = [&](CaseRecord* record) -> verdict::Judgement& {
    return record == nullptr ? run.judgement : record->judgement;
  };
  Distribute<SummaryRow>(file, "/summary", run, [](CaseRecord* of, const auto& row) {
    if (of != nullptr) of->summary = row.summary;
  });
  ReadOfCases(file, "/operations", run, &CaseRecord::operations);
  ReadOfCases(file, "/wrong", run, &CaseRecord::wrong);
  Distribute<verdict::RankOutcome>(
      file, "/verdicts/outcomes", run,
      [&](CaseRecord* of, const auto& outcome) { judgement(of).outcomes.push_back(outcome); });
  Distribute<verdict::Finding>(file, "/verdicts/findings", run,
                               [&](CaseRecord* of, verdict::Finding finding) {
                                 if (finding.headline.empty())
                                   finding.headline = verdict::Headline::Of(finding.message);
                                 judgement(of).findings.push_back(std::move(finding));
                               });
  const hdf5::Handle verdicts = OpenGroup(file, "/verdicts");
  AttributeSource attributes(verdicts.get(), "/verdicts", file);
  Reading{attributes}("launch", run.judgement.verdict);
}

void ReadAll(hdf5::File& file, Run& run) {
  const hdf5::Handle root = OpenGroup(file, "/");
  AttributeSource attributes(root.get(), "/", file);
  Reading reading(attributes);
  reading("schema_version", run.schema_version);
  DescribeRoot(reading, run);
  ReadFacts(file, "", 0, run);
  std::sort(run.environment.begin(), run.environment.end());
  ReadNamed(file, "/floors", run.floors);
  ReadPlan(file, run);
  ReadCases(file, run);
  ReadTables(file, run);
  if (run.schema_version >= 2) ReadParts(file, run);
  if (run.schema_version >= 3) {
    ReadOfCases(file, "/verdicts/trials", run, &CaseRecord::trial);
  }
  if (run.schema_version >= 4) {
    ReadOfCases(file, "/recovery", run, &CaseRecord::recoveries);
  }
  ReadLinks(file, run);
  ReadWatched(file, run);
  ReadClocks(file, run);
  ReadEvidence(file, run);
  if (Exists(file, "/gpu_samples")) {
    run.gpu_samples = ReadTable<journal::PlacedGpuSample>(file, "/gpu_samples");
  }
  if (Exists(file, "/logs")) run.logs = ReadTable<journal::WorkerLog>(file, "/logs");
  ReadHistory(file, run);
}

// Without a lock: a run file never changes after it got its name, and some network file systems
// have none.
hdf5::Handle OpenReadOnly(const std::string& path) {
  const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), /*use_file_locking=*/false, /*ignore_when_disabled=*/true);
#endif
  return hdf5::Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
}

}  // namespace

Result<Run> ReadRun(const std::string& path) {
  LOCKSTEP_RETURN_IF_ERROR(VerifySeal(path));
  const hdf5::Silence silence;
  Run run;
  const hdf5::Handle open = OpenReadOnly(path);
  hdf5::File file(open.get());
  if (!open.ok()) file.Note("HDF5 cannot open it");
  ReadAll(file, run);
  if (file.ok()) return run;
  return InvalidInput("{}: no complete Lockstep run ({}); use an unmodified copy of it", path,
                      file.text());
}

}  // namespace lockstep::results::store
