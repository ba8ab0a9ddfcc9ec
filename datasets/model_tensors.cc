#include "datasets/model_tensors.h"

#include <vector>

namespace lockstep::datasets {
namespace {

std::vector<ddp::TensorInfo> Describe(const std::vector<ModelTensor>& tensors) {
  std::vector<ddp::TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const ModelTensor& tensor : tensors) {
    infos.push_back({tensor.name, tensor.shape, tensor.type, tensor.numel});
  }
  return infos;
}

}  // namespace

ddp::ModelTensors TensorsOf(const Manifest& manifest) {
  return {Describe(manifest.params), manifest.ready_order, Describe(manifest.buffers)};
}

}  // namespace lockstep::datasets
