// `lockstep buckets`: how DistributedDataParallel groups a model's gradients.
#include "core/ddp/buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/subcommand.h"
#include "core/base/csv.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/base/version.h"
#include "core/collective/data_type.h"
#include "datasets/manifest.h"

namespace lockstep::cli {
namespace {

// As typed; empty: not given.
struct BucketsArguments {
  std::string models;
  std::string caps_mb;
  std::string first_mb;
  std::string type;
  std::string torch = "2.6";
  std::string format = "text";
  bool initial = false;
  bool find_unused = false;
  bool static_graph = false;
  bool small_bucket_last = false;
};

// One model under one set of DDP arguments, and what follows from them.
struct Case {
  datasets::Manifest manifest;
  ddp::BucketOptions options;
  bool initial = false;  // the buckets of the first iteration were asked for
  std::vector<std::int64_t> limits;
  ddp::BucketLayout layout;
};

// The items of a comma-separated list; none of them may be empty.
Result<std::vector<std::string>> Split(std::string_view option, std::string_view text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) {
      return InvalidInput("{}: '{}' has an empty item; write a,b without spare commas", option,
                          text);
    }
    items.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

Result<std::vector<ddp::BucketOptions>> ReadOptions(const BucketsArguments& arguments) {
  ddp::BucketOptions options = {.find_unused_parameters = arguments.find_unused,
                                .static_graph = arguments.static_graph,
                                .small_bucket_last = arguments.small_bucket_last};
  LOCKSTEP_ASSIGN_OR_RETURN(options.rules, ddp::ParseTorchRules("--torch", arguments.torch));
  if (!arguments.first_mb.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.first_cap_bytes,
                              ddp::ParseBucketMb("--first-bucket-mb", arguments.first_mb));
  }
  if (arguments.caps_mb.empty()) return std::vector<ddp::BucketOptions>{options};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto caps, Split("--bucket-cap-mb", arguments.caps_mb));
  std::vector<ddp::BucketOptions> all;
  for (const std::string& cap : caps) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.cap_bytes, ddp::ParseBucketMb("--bucket-cap-mb", cap));
    all.push_back(options);
  }
  return all;
}

Result<std::optional<collective::DataType>> ReadType(const BucketsArguments& arguments) {
  if (arguments.type.empty()) return std::optional<collective::DataType>();
  LOCKSTEP_ASSIGN_OR_RETURN(const collective::DataType type,
                            collective::ParseDataType("--dtype", arguments.type));
  if (!collective::IsComputeType(type)) {
    return InvalidInput("--dtype: '{}' cannot hold gradients; choose f16, bf16, f32 or f64",
                        arguments.type);
  }
  return std::optional<collective::DataType>(type);
}

Case Assign(const datasets::Manifest& manifest, const ddp::BucketOptions& options, bool initial,
            std::optional<collective::DataType> type) {
  const std::vector<ddp::Gradient> gradients = datasets::GradientsOf(manifest, type);
  const bool from_initial = initial || !ddp::RebuildsBuckets(options);
  return {.manifest = manifest,
          .options = options,
          .initial = initial,
          .limits = from_initial ? ddp::InitialLimits(options) : ddp::RebuiltLimits(options),
          .layout = initial ? ddp::InitialBuckets(gradients, options)
                            : ddp::SteadyBuckets(gradients, manifest.ready_order, options)};
}

// "initial" or "rebuilt": how the buckets came about.
std::string_view KindOf(const Case& c) {
  return c.initial || !ddp::RebuildsBuckets(c.options) ? "initial" : "rebuilt";
}

std::string IterationsOf(const Case& c) {
  if (!ddp::RebuildsBuckets(c.options)) return "kept for every iteration";
  const int last_initial = c.options.static_graph ? 2 : 1;
  if (!c.initial) return fmt::format("from iteration {}", last_initial + 1);
  return last_initial == 1 ? "iteration 1" : "iterations 1 and 2";
}

std::string FormatLimits(const std::vector<std::int64_t>& limits) {
  if (limits.front() == std::numeric_limits<std::int64_t>::max()) return "no limit";
  std::string text = FormatBytes(limits.front());
  if (limits.back() != limits.front()) text += ", then " + FormatBytes(limits.back());
  return "limit " + text;
}

void PrintText(const Case& c) {
  std::int64_t bytes = 0;
  for (const ddp::Bucket& bucket : c.layout) bytes += bucket.bytes();
  fmt::print("[{}]\n", fmt::join(c.layout | std::views::transform(&ddp::Bucket::elements), ", "));
  fmt::print("{}: {} buckets ({}), {}, PyTorch {}; {} parameters, {}\n", c.manifest.name, KindOf(c),
             IterationsOf(c), FormatLimits(c.limits), ddp::NameOf(c.options.rules),
             c.manifest.params.size(), FormatBytes(bytes));
  const bool first_follows_cap = c.options.cap_bytes && !c.options.first_cap_bytes &&
                                 c.options.rules == ddp::TorchRules::k2_6 && c.limits.size() > 1;
  if (first_follows_cap) {
    fmt::print(
        "note: an explicit cap is also the first bucket's since PyTorch 2.6; --first-bucket-mb=1 "
        "or --torch=1.13 give it 1 MiB\n");
  }
  fmt::print("{:>6} {:>5} {:>12} {:>13} {:>10} {:>6}  {}\n", "bucket", "type", "elements", "bytes",
             "size", "params", "first .. last");
  for (std::size_t i = 0; i < c.layout.size(); ++i) {
    const ddp::Bucket& bucket = c.layout[i];
    fmt::print("{:>6} {:>5} {:>12} {:>13} {:>10} {:>6}  {} .. {}{}\n", i,
               collective::NameOf(bucket.type), bucket.elements, bucket.bytes(),
               FormatBytes(bucket.bytes()), bucket.params.size(),
               c.manifest.params[bucket.params.front()].name,
               c.manifest.params[bucket.params.back()].name, bucket.sparse ? " (sparse)" : "");
  }
}

void PrintJson(const Case& c) {
  using Json = nlohmann::ordered_json;
  Json json = {{"lockstep", ThisVersionText()},
               {"model", c.manifest.name},
               {"kind", KindOf(c)},
               {"iterations", IterationsOf(c)},
               {"torch", ddp::NameOf(c.options.rules)}};
  const bool unlimited = c.limits.front() == std::numeric_limits<std::int64_t>::max();
  json["limits_bytes"] = unlimited ? Json() : Json(c.limits);
  json["find_unused_parameters"] = c.options.find_unused_parameters;
  json["static_graph"] = c.options.static_graph;
  Json elements = Json::array();
  Json buckets = Json::array();
  for (const ddp::Bucket& bucket : c.layout) {
    elements.push_back(bucket.elements);
    buckets.push_back({{"dtype", collective::NameOf(bucket.type)},
                       {"elements", bucket.elements},
                       {"bytes", bucket.bytes()},
                       {"sparse", bucket.sparse},
                       {"params", bucket.params}});
  }
  json["elements"] = std::move(elements);
  json["buckets"] = std::move(buckets);
  fmt::print("{}\n", json.dump());
}

// A row a bucket.
void PrintCsv(const Case& c) {
  const auto text = [](bool is_so) { return std::string(is_so ? "true" : "false"); };
  for (std::size_t i = 0; i < c.layout.size(); ++i) {
    const ddp::Bucket& bucket = c.layout[i];
    const std::int64_t limit = c.limits[std::min(i, c.limits.size() - 1)];
    const bool unlimited = limit == std::numeric_limits<std::int64_t>::max();
    fmt::print("{}", CsvLine({c.manifest.name, std::string(KindOf(c)), IterationsOf(c),
                              std::string(ddp::NameOf(c.options.rules)),
                              text(c.options.find_unused_parameters), text(c.options.static_graph),
                              fmt::format("{}", i), unlimited ? "" : fmt::format("{}", limit),
                              std::string(collective::NameOf(bucket.type)),
                              fmt::format("{}", bucket.elements), fmt::format("{}", bucket.bytes()),
                              fmt::format("{}", bucket.params.size()),
                              c.manifest.params[bucket.params.front()].name,
                              c.manifest.params[bucket.params.back()].name, text(bucket.sparse)}));
  }
}

void Print(const std::vector<Case>& cases, const std::string& format) {
  if (format == "csv") {
    fmt::print("{}", CsvLine({"model", "kind", "iterations", "torch", "find_unused_parameters",
                              "static_graph", "bucket", "limit_bytes", "dtype", "elements", "bytes",
                              "params", "first_param", "last_param", "sparse"}));
  }
  for (const Case& c : cases) {
    if (format == "csv") {
      PrintCsv(c);
    } else if (format == "jsonl") {
      PrintJson(c);
    } else {
      fmt::print("{}", &c == cases.data() ? "" : "\n");
      PrintText(c);
    }
  }
}

Result<ExitCode> PrintBuckets(const BucketsArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, Split("--model", arguments.models));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto options, ReadOptions(arguments));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto type, ReadType(arguments));
  std::vector<Case> cases;  // complete before anything is printed
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest, datasets::LoadManifest(name));
    for (const ddp::BucketOptions& each : options) {
      cases.push_back(Assign(manifest, each, arguments.initial, type));
    }
  }
  Print(cases, arguments.format);
  return ExitCode::kPass;
}

}  // namespace

Work AddBuckets(ArgumentParser& parser) {
  auto arguments = std::make_shared<BucketsArguments>();
  parser.Add("--model=NAME", arguments->models, "Models, by name or file (several: a,b,c)")
      .Required();
  parser.Add("--bucket-cap-mb=MIB", arguments->caps_mb,
             "DDP's bucket_cap_mb (several: 1,5,25; default: as if not passed to DDP, which is 25 "
             "with a first bucket of 1)");
  parser.Add(
      "--first-bucket-mb=MIB", arguments->first_mb,
      "Limit of the first bucket (default: 1; with --bucket-cap-mb and PyTorch 2.6 that cap)");
  parser.Flag("--initial", arguments->initial,
              "The buckets of the first iteration (before DDP rebuilds them)");
  parser.Flag("--find-unused", arguments->find_unused, "DDP's find_unused_parameters");
  parser.Flag("--static-graph", arguments->static_graph, "DDP's static_graph");
  parser.Flag("--small-bucket-last", arguments->small_bucket_last,
              "DDP_SET_LAST_BUCKET_CAP=1, for rebuilt buckets");
  parser.Add("--dtype=WORD", arguments->type,
             "Type of the model's floating-point parameters (f16, bf16, f32 or f64; default: as "
             "the manifest says)");
  parser.Add("--torch=VERSION", arguments->torch, "PyTorch whose rules count (1.9, 1.13 or 2.6)")
      .ShowDefault();
  parser
      .Add("--format=WORD", arguments->format,
           "Form of what is printed (text; jsonl: a line for each model and cap; csv: a row for "
           "each bucket)")
      .OneOf({"text", "jsonl", "csv"})
      .WordRenamed("json", "jsonl")
      .ShowDefault();
  return [arguments] { return PrintBuckets(*arguments); };
}

}  // namespace lockstep::cli
