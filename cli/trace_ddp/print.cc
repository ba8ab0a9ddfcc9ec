// Four views of one trace. The text is that in which recordings of PyTorch are kept, with
// PyTorch's names. The table lines up what ranks called at the same place. The others are JSON and
// comma-separated values.
#include "cli/trace_ddp/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/csv.h"
#include "core/base/version.h"

namespace lockstep::cli::trace_ddp {
namespace {

using Json = nlohmann::ordered_json;

// PyTorch's names, in the order of Collective.
std::string_view TorchKind(collective::Collective collective) {
  constexpr std::string_view kNames[] = {"ALLREDUCE",      "BROADCAST", "BARRIER", "ALLGATHER",
                                         "REDUCE_SCATTER", "REDUCE",    "SEND",    "RECV"};
  return kNames[static_cast<std::size_t>(collective)];
}

std::string NameOfSection(const ddp::Section& section) {
  switch (section.kind) {
    case ddp::SectionKind::kConstructor:
      return "CTOR";
    case ddp::SectionKind::kIteration:
      return fmt::format("ITER{}", section.index);
    case ddp::SectionKind::kEvaluation:
      return fmt::format("EVAL{}", section.index);
    case ddp::SectionKind::kJoinExit:
      return "JOINEXIT";
    case ddp::SectionKind::kAfterLoop:
      return "AFTER";
  }
  LOCKSTEP_CHECK(false, "no such section");
}

std::string TorchCall(const TracedCall& call) {
  const collective::Operation& operation = call.operation;
  const std::string name = fmt::format("{}:{}", call.sequence, TorchKind(operation.collective));
  if (operation.collective == collective::Collective::kBarrier) return name;
  return fmt::format("{}[{}].{}", name, operation.count, collective::TorchNameOf(operation.type));
}

// As Python prints round(value, 6).
std::string PythonNumber(double value) {
  char digits[400];
  std::snprintf(digits, sizeof(digits), "%.6f", value);
  std::string text = fmt::format("{}", std::strtod(digits, nullptr));
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}

std::string FirstElements(const std::vector<FinalTensor>& tensors, bool gradients) {
  std::string text;
  for (const FinalTensor& tensor : tensors) {
    const std::vector<double>* values = &tensor.values;
    if (gradients) values = tensor.gradient ? &*tensor.gradient : nullptr;
    if (!text.empty()) text += ", ";
    text += values == nullptr || values->empty() ? "None" : PythonNumber(values->front());
  }
  return "[" + text + "]";
}

// The inputs of the ranks as the recordings say them: n of rank 0, and how many more each next
// rank has, unless that is 1; or a list.
std::string DescribeInputs(const TraceTitle& title) {
  std::vector<std::int64_t> inputs;
  for (int rank = 0; rank < title.ranks; ++rank) {
    inputs.push_back(ddp::InputsOf(title.program, rank, title.ranks));
  }
  const std::int64_t extra = inputs.size() > 1 ? inputs[1] - inputs[0] : 0;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] - inputs[i - 1] != extra) return fmt::format("n={}", fmt::join(inputs, ";"));
  }
  return fmt::format("n={}{}", inputs[0], extra == 1 ? "" : fmt::format(",extra={}", extra));
}

std::string DescribeBranches(const TraceTitle& title) {
  std::string ranks;
  for (int rank = 0; rank < title.ranks; ++rank) {
    if (title.program.branch.At(rank) != 'c') continue;
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ";", rank);
  }
  return ranks.empty() ? "" : ",usec=" + ranks;
}

std::string Header(const TraceTitle& title) {
  const ddp::TrainingProgram& program = title.program;
  std::string model = program.model;
  for (const auto& [name, abbreviated] :
       {std::pair<std::string_view, std::string_view>{"linear_1_1", "lin"},
        {"bn_4_4_2", "bn"},
        {"two_branch", "two"}}) {
    if (model == name) model = abbreviated;
  }
  std::string text =
      fmt::format("##### W={} model={},{}", title.ranks, model, DescribeInputs(title));
  if (!program.broadcast_buffers) text += ",bb=0";
  if (!program.no_sync_iterations.empty()) {
    text += fmt::format(",nosync={}", fmt::join(program.no_sync_iterations, ";"));
  }
  if (program.evaluation) text += fmt::format(",eval={}", program.evaluation->after_iteration);
  if (program.find_unused_parameters) text += ",unused=1";
  text += DescribeBranches(title);
  if (program.static_graph) text += ",static=1";
  if (program.join) text += ",join=1";
  return text + "\n";
}

// The recordings have a line for the exit of join also where there is no join.
std::vector<TracedSection> WithJoinExit(const TracedRank& trace) {
  std::vector<TracedSection> sections = trace.sections;
  const auto exits = [](const TracedSection& s) {
    return s.section.kind == ddp::SectionKind::kJoinExit;
  };
  const auto after = [](const TracedSection& s) {
    return s.section.kind == ddp::SectionKind::kAfterLoop;
  };
  if (trace.finished() && std::ranges::none_of(sections, exits)) {
    sections.insert(std::ranges::find_if(sections, after), {{ddp::SectionKind::kJoinExit, 0}});
  }
  return sections;
}

std::string DescribeEnd(const TracedRank& trace) {
  constexpr std::string_view kSays[] = {
      "finished",    "failed: ",         "would wait for ever: ", "suspected hang: ",
      "timed out: ", "lost its peers: ", "did not end: "};
  return fmt::format("{}{}", kSays[static_cast<std::size_t>(trace.end)], trace.message);
}

std::string Cell(const TracedCall& call) {
  const collective::Operation& operation = call.operation;
  const std::string shape =
      operation.collective == collective::Collective::kBarrier
          ? ""
          : fmt::format(" {}[{}]", collective::NameOf(operation.type), operation.count);
  return fmt::format("{}{}  {}", collective::NameOf(operation.collective), shape,
                     journal::Describe(call.annotation));
}

// All calls of a rank, and how wide they are.
struct Column {
  std::vector<const TracedCall*> calls = {};
  std::size_t width = 8;

  const TracedCall* At(std::size_t row) const { return row < calls.size() ? calls[row] : nullptr; }
};

Column ColumnOf(const TracedRank& trace) {
  Column column;
  for (const TracedSection& section : trace.sections) {
    for (const TracedCall& call : section.calls) {
      column.calls.push_back(&call);
      column.width = std::max(column.width, Cell(call).size());
    }
  }
  return column;
}

Json JsonOf(const TracedCall& call) {
  const collective::Operation& operation = call.operation;
  const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
  return {{"sequence", call.sequence},
          {"collective", collective::NameOf(operation.collective)},
          {"type", collective::NameOf(operation.type)},
          {"count", operation.count},
          {"reduction", info.reduces ? Json(collective::NameOf(operation.reduction)) : Json()},
          {"root", info.rooted ? Json(operation.root) : Json()},
          {"purpose", journal::NameOf(call.annotation.purpose)},
          {"detail", call.annotation.detail},
          {"iteration", call.annotation.iteration}};
}

constexpr std::size_t kCsvCells = 13;

// Of a row of comma-separated values, behind the section.
std::vector<std::string> CellsOf(const TracedCall& call) {
  const collective::Operation& operation = call.operation;
  const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
  return {fmt::format("{}", call.sequence),
          std::string(collective::NameOf(operation.collective)),
          std::string(collective::NameOf(operation.type)),
          fmt::format("{}", operation.count),
          info.reduces ? std::string(collective::NameOf(operation.reduction)) : "",
          info.rooted ? fmt::format("{}", operation.root) : "",
          std::string(journal::NameOf(call.annotation.purpose)),
          fmt::format("{}", call.annotation.detail),
          fmt::format("{}", call.annotation.iteration)};
}

Json JsonOf(const TracedRank& trace, std::size_t rank) {
  Json sections = Json::array();
  for (const TracedSection& section : trace.sections) {
    Json calls = Json::array();
    for (const TracedCall& call : section.calls) calls.push_back(JsonOf(call));
    sections.push_back({{"name", NameOfSection(section.section)}, {"collectives", calls}});
  }
  Json tensors = Json::array();
  for (const FinalTensor& tensor : trace.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"values", tensor.values},
                       {"gradient", tensor.gradient ? Json(*tensor.gradient) : Json()}});
  }
  return {{"rank", rank},
          {"outcome", NameOf(trace.end)},
          {"message", trace.message},
          {"sections", std::move(sections)},
          {"tensors", std::move(tensors)}};
}

}  // namespace

std::string GoldenText(const TraceTitle& title, const TracedRanks& ranks) {
  std::string text = Header(title);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const TracedSection& section : WithJoinExit(ranks[rank])) {
      std::vector<std::string> calls;
      for (const TracedCall& call : section.calls) calls.push_back(TorchCall(call));
      text += fmt::format("  rank{} {:<9} {}\n", rank, NameOfSection(section.section),
                          fmt::join(calls, " "));
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const TracedRank& trace = ranks[rank];
    if (trace.finished() || trace.end == TraceEnd::kFailed || trace.end == TraceEnd::kLostPeers) {
      text += fmt::format("FINAL rank {} w0 {} grad {}\n", rank,
                          FirstElements(trace.tensors, false), FirstElements(trace.tensors, true));
    }
    if (!trace.finished()) text += fmt::format("ERROR rank {} {}\n", rank, DescribeEnd(trace));
  }
  return text;
}

std::string TableText(const TraceTitle& title, const TracedRanks& ranks) {
  std::vector<Column> columns;
  std::size_t rows = 0;
  std::string text = fmt::format("{}, {} ranks\n   seq", title.name, title.ranks);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    columns.push_back(ColumnOf(ranks[rank]));
    rows = std::max(rows, columns.back().calls.size());
    text += fmt::format("  {:<{}}", fmt::format("rank {}", rank), columns.back().width);
  }
  text += "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    std::string cells;
    bool differs = false;
    const TracedCall* first = columns.front().At(row);
    for (const Column& column : columns) {
      const TracedCall* call = column.At(row);
      differs |= (call == nullptr) != (first == nullptr) ||
                 (call != nullptr && !(call->operation == first->operation));
      cells += fmt::format("  {:<{}}", call != nullptr ? Cell(*call) : "", column.width);
    }
    cells.erase(cells.find_last_not_of(' ') + 1);
    text += fmt::format("{} {:>4}{}\n", differs ? '>' : ' ', row, cells);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    text += fmt::format("rank {} {}\n", rank, DescribeEnd(ranks[rank]));
  }
  return text;
}

std::string JsonText(const TraceTitle& title, const TracedRanks& ranks) {
  Json all = Json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) all.push_back(JsonOf(ranks[rank], rank));
  const Json json = {{"schema", 1},
                     {"lockstep", ThisVersionText()},
                     {"program", title.name},
                     {"torch", ddp::NameOf(title.program.buckets.rules)},
                     {"ranks", std::move(all)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string CsvHead() {
  return CsvLine({"program", "rank", "end", "section", "sequence", "collective", "type", "count",
                  "reduction", "root", "purpose", "detail", "iteration"});
}

std::string CsvText(const TraceTitle& title, const TracedRanks& ranks) {
  std::string text;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<std::string> whose = {title.name, fmt::format("{}", rank),
                                            DescribeEnd(ranks[rank])};
    bool any = false;
    for (const TracedSection& section : ranks[rank].sections) {
      for (const TracedCall& call : section.calls) {
        std::vector<std::string> cells = whose;
        cells.push_back(NameOfSection(section.section));
        for (const std::string& cell : CellsOf(call)) cells.push_back(cell);
        text += CsvLine(cells);
        any = true;
      }
    }
    if (any) continue;
    std::vector<std::string> cells = whose;
    cells.resize(kCsvCells);
    text += CsvLine(cells);
  }
  return text;
}

}  // namespace lockstep::cli::trace_ddp
