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

// The path of a manifest. A text with '/' or ending in ".json" is a path and is returned as it is
// (it may not exist); anything else is the name of a model, NAME.json in a directory that is
// searched:
//   $LOCKSTEP_DATASETS                            the user's own
//   <directory of the binary>/../share/lockstep/manifests, …/lockstep/datasets/manifests
//                                                           installed
//   <binary>.runfiles, $RUNFILES_DIR, $TEST_SRCDIR            built by Bazel
//   datasets/manifests beside or above the binary             a source tree
// Errors (kInvalidInput): $LOCKSTEP_DATASETS is set and is not a directory; an unknown name, for
// which the nearest and all available ones are said.
Result<std::string> FindManifest(std::string_view name_or_path);

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
