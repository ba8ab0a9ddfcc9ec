// A manifest as the tensors that core/ddp computes with.
#pragma once

#include "core/ddp/manifest_model.h"
#include "datasets/manifest.h"

namespace lockstep::datasets {

ddp::ModelTensors TensorsOf(const Manifest& manifest);

}  // namespace lockstep::datasets
