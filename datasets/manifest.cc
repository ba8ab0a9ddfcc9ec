// Reads a manifest from JSON and checks each field. Errors name the place as a path such as
// params[3].shape. Sizes are multiplied with overflow checks, and hostile nesting is never printed.
#include "datasets/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/base/file_text.h"

namespace lockstep::datasets {
namespace {

using Json = nlohmann::json;

constexpr std::uintmax_t kMaxFileBytes = 64 << 20;
// All tensors of a list together, so that sums of bytes cannot overflow.
constexpr std::int64_t kMaxTotalBytes = std::int64_t{1} << 60;

// Where in a manifest we are: its origin and a field such as params[3].shape.
struct Place {
  std::string_view origin;
  std::string field;

  Place operator[](std::size_t index) const {
    return {origin, fmt::format("{}[{}]", field, index)};
  }
  Place operator/(std::string_view key) const { return {origin, fmt::format("{}.{}", field, key)}; }
  Status Error(std::string_view problem) const {
    return InvalidInput("manifest '{}': {}: {}", origin, field, problem);
  }
  template <typename First, typename... More>
  Status Error(fmt::format_string<First, More...> format, First&& first, More&&... more) const {
    return Error(fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
  }
};

// A value as a message shows it: short and on one line. Lists and objects are not printed: they can
// be nested more deeply than the stack is high.
std::string Shown(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

Result<const Json*> Member(const Json& object, const char* key, const Place& place) {
  const auto found = object.find(key);
  if (found == object.end()) return place.Error("'{}' is missing; add it", key);
  return &*found;
}

Status CheckKeys(const Json& object, std::initializer_list<std::string_view> allowed,
                 const Place& place) {
  for (const auto& item : object.items()) {
    if (std::find(allowed.begin(), allowed.end(), item.key()) != allowed.end()) continue;
    return place.Error("unknown key {}; allowed are: {}", Shown(item.key()),
                       fmt::join(allowed, " "));
  }
  return OkStatus();
}

Result<std::string> ReadName(const Json& value, const Place& place) {
  const auto* text = value.get_ptr<const std::string*>();
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (text == nullptr || text->empty() || std::any_of(text->begin(), text->end(), is_control)) {
    return place.Error("{} is not a name; write a non-empty string", Shown(value));
  }
  return *text;
}

// Lockstep's and nccl-tests' names, and PyTorch's, with or without "torch.".
Result<collective::DataType> ReadType(const Json& value, const Place& place) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr) {
    return place.Error("{} is not a data type; write \"f32\"", Shown(value));
  }
  std::string_view name = *text;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float16") return collective::DataType::kF16;
  if (name == "float32") return collective::DataType::kF32;
  if (name == "float64") return collective::DataType::kF64;
  return collective::ParseDataType(fmt::format("manifest '{}': {}", place.origin, place.field),
                                   name);
}

Result<std::vector<std::int64_t>> ReadShape(const Json& value, const Place& place) {
  if (!value.is_array()) {
    return place.Error("{} is not a list of dimensions; write [] or [64, 3, 7, 7]", Shown(value));
  }
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_number_unsigned() || value[i].get<std::uint64_t>() > kMaxTotalBytes) {
      return place[i].Error("{} is not a dimension; write a whole number from 0 to 2^60",
                            Shown(value[i]));
    }
    shape.push_back(value[i].get<std::int64_t>());
  }
  return shape;
}

// The product of the dimensions, or -1 when it is too large for a model.
std::int64_t NumelOf(const std::vector<std::int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t numel = 1;
  for (const std::int64_t dimension : shape) {
    if (__builtin_mul_overflow(numel, dimension, &numel) || numel > kMaxTotalBytes) return -1;
  }
  return numel;
}

Result<ModelTensor> ReadTensor(const Json& value, bool is_param, const Place& place) {
  if (!value.is_object()) {
    return place.Error("{} is not a tensor; write {{\"name\": …, \"shape\": […]}}", Shown(value));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      is_param ? CheckKeys(value, {"name", "shape", "dtype", "numel", "sparse"}, place)
               : CheckKeys(value, {"name", "shape", "dtype", "numel"}, place));
  ModelTensor tensor;
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* name, Member(value, "name", place));
  LOCKSTEP_ASSIGN_OR_RETURN(tensor.name, ReadName(*name, place / "name"));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* shape, Member(value, "shape", place));
  LOCKSTEP_ASSIGN_OR_RETURN(tensor.shape, ReadShape(*shape, place / "shape"));
  if (const auto type = value.find("dtype"); type != value.end()) {
    LOCKSTEP_ASSIGN_OR_RETURN(tensor.type, ReadType(*type, place / "dtype"));
  }
  tensor.numel = NumelOf(tensor.shape);
  if (tensor.numel < 0) return (place / "shape").Error("more than 2^60 elements; check it");
  if (const auto numel = value.find("numel"); numel != value.end() && *numel != tensor.numel) {
    return (place / "numel")
        .Error("{} contradicts the shape, which has {}; leave it out", Shown(*numel), tensor.numel);
  }
  if (const auto sparse = value.find("sparse"); sparse != value.end()) {
    if (!sparse->is_boolean()) return (place / "sparse").Error("write true or false");
    tensor.sparse = sparse->get<bool>();
  }
  return tensor;
}

Result<std::vector<ModelTensor>> ReadTensors(const Json& list, bool are_params,
                                             const Place& place) {
  if (!list.is_array()) return place.Error("is not a list; write [ … ]");
  std::vector<ModelTensor> tensors;
  std::set<std::string_view> names;
  std::int64_t bytes = 0;
  tensors.reserve(list.size());  // `names` points into it
  for (std::size_t i = 0; i < list.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(ModelTensor tensor, ReadTensor(list[i], are_params, place[i]));
    tensors.push_back(std::move(tensor));
    const ModelTensor& added = tensors.back();
    if (!names.insert(added.name).second) {
      return place[i].Error("the name '{}' appears twice; rename one", added.name);
    }
    bytes += added.numel <= kMaxTotalBytes / 8 ? added.numel * collective::SizeOf(added.type)
                                               : kMaxTotalBytes;
    if (bytes >= kMaxTotalBytes) return place.Error("2^60 bytes or more in all; check the shapes");
  }
  return tensors;
}

Result<std::vector<int>> ReadReadyOrder(const Json& value, std::size_t params, const Place& place) {
  const std::string remedy = fmt::format(
      "write each index from 0 to {} once, or \"reversed\" for the reverse of params", params - 1);
  std::vector<int> order;
  if (value == "reversed") {
    for (std::size_t i = params; i > 0; --i) order.push_back(static_cast<int>(i - 1));
    return order;
  }
  if (!value.is_array()) {
    return place.Error("{} is not an order; {}", Shown(value), remedy);
  }
  std::vector<bool> seen(params, false);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_number_unsigned() || value[i].get<std::uint64_t>() >= params) {
      return place[i].Error("{} is not the index of a parameter; {}", Shown(value[i]), remedy);
    }
    const auto index = value[i].get<std::size_t>();
    if (seen[index]) return place[i].Error("{} appears twice; {}", index, remedy);
    seen[index] = true;
    order.push_back(static_cast<int>(index));
  }
  if (order.size() == params) return order;
  const auto missing = std::find(seen.begin(), seen.end(), false) - seen.begin();
  return place.Error("parameter {} is missing; {}", missing, remedy);
}

std::string Short(std::string reason) {
  if (reason.size() > 160) reason = reason.substr(0, 157) + "...";
  return reason;
}

Result<Json> ParseJson(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto before = text.substr(0, std::min(text.size(), error.byte));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    std::string reason = error.what();  // "[json.exception.parse_error.101] parse error at …: …"
    if (const auto end = reason.find(": "); end != std::string::npos) reason.erase(0, end + 2);
    return InvalidInput(
        "manifest '{}': line {}: not JSON: {}; datasets/README.md describes the format", origin,
        line, Short(std::move(reason)));
  } catch (const Json::out_of_range& error) {
    std::string reason = error.what();  // "[json.exception.out_of_range.406] number overflow …"
    if (const auto end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    return InvalidInput("manifest '{}': {}; write whole numbers from 0 to 2^60", origin,
                        Short(std::move(reason)));
  }
}

Result<std::string> ReadFile(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return InvalidInput(
        "manifest '{}' does not exist; give a path to a manifest or the name of a model", path);
  }
  if (!fs::is_regular_file(status)) {
    return InvalidInput("manifest '{}' is not a file; give a .json file", path);
  }
  if (fs::file_size(path, error) > kMaxFileBytes && !error) {
    return InvalidInput("manifest '{}' is larger than 64 MiB; is it a manifest?", path);
  }
  std::optional<std::string> text = ReadText(path);
  if (!text) {
    return EnvironmentError("manifest '{}' cannot be read; check its permissions", path);
  }
  return *std::move(text);
}

}  // namespace

Result<Manifest> ParseManifest(std::string_view text, std::string_view origin) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJson(text, origin));
  const Place top = {origin, "top level"};
  if (!json.is_object()) return top.Error("not an object; write { \"name\": …, \"params\": … }");
  Manifest manifest;
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* name, Member(json, "name", top));
  LOCKSTEP_ASSIGN_OR_RETURN(manifest.name, ReadName(*name, {origin, "name"}));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* params, Member(json, "params", top));
  LOCKSTEP_ASSIGN_OR_RETURN(manifest.params, ReadTensors(*params, true, {origin, "params"}));
  if (manifest.params.empty()) {
    return Place{origin, "params"}.Error("is empty; a model has at least one parameter");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* ready, Member(json, "ready_order", top));
  LOCKSTEP_ASSIGN_OR_RETURN(manifest.ready_order, ReadReadyOrder(*ready, manifest.params.size(),
                                                                 {origin, "ready_order"}));
  LOCKSTEP_ASSIGN_OR_RETURN(const Json* buffers, Member(json, "buffers", top));
  LOCKSTEP_ASSIGN_OR_RETURN(manifest.buffers, ReadTensors(*buffers, false, {origin, "buffers"}));
  return manifest;
}

Result<Manifest> LoadManifest(std::string_view name_or_path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string path, FindManifest(name_or_path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseManifest(text, path);
}

std::vector<ddp::Gradient> GradientsOf(const Manifest& manifest,
                                       std::optional<collective::DataType> float_type) {
  LOCKSTEP_CHECK(!float_type || collective::IsComputeType(*float_type),
                 "gradients are f16, bf16, f32 or f64");
  std::vector<ddp::Gradient> gradients;
  gradients.reserve(manifest.params.size());
  for (const ModelTensor& param : manifest.params) {
    const collective::DataType type =
        float_type && collective::IsComputeType(param.type) ? *float_type : param.type;
    gradients.push_back({.numel = param.numel, .type = type, .sparse = param.sparse});
  }
  return gradients;
}

}  // namespace lockstep::datasets
