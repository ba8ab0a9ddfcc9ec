// A model as data-parallel training sees it: the tensors that are communicated, no weights.
// The file format is described in datasets/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/data_type.h"
#include "core/ddp/buckets.h"

namespace lockstep::datasets {

// A parameter or a buffer. `numel` is the product of `shape`; a scalar has the shape [] and
// numel 1.
struct ModelTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  collective::DataType type = collective::DataType::kF32;
  std::int64_t numel = 0;
  bool sparse = false;  // parameters: its gradient is sparse
};

struct Manifest {
  std::string name;
  std::vector<ModelTensor> params;   // in registration order, at least one
  std::vector<int> ready_order;      // indices of params, each once, as their gradients get ready
  std::vector<ModelTensor> buffers;  // in registration order
};

// Reads `text`; `origin` names it in errors, which are kInvalidInput and say the line or the field,
// what is wrong there and what is right.
Result<Manifest> ParseManifest(std::string_view text, std::string_view origin);

// Loads a model by name ("resnet50", searched as FindManifest does) or by path (with a '/' or
// ending in ".json"). Errors: those of FindManifest and ParseManifest; kEnvironment for a file that
// cannot be read.
Result<Manifest> LoadManifest(std::string_view name_or_path);

// The gradients of a model in registration order, for core/ddp. With `float_type`, which must be
// one that gradients are made of (IsComputeType), all those have it, as after torch's
// model.to(dtype).
std::vector<ddp::Gradient> GradientsOf(
    const Manifest& manifest, std::optional<collective::DataType> float_type = std::nullopt);

}  // namespace lockstep::datasets
