// A manifest as the tensors that core/ddp computes with.
#ifndef LOCKSTEP_DATASETS_MODEL_TENSORS_H_
#define LOCKSTEP_DATASETS_MODEL_TENSORS_H_

#include "core/ddp/manifest_model.h"
#include "datasets/manifest.h"

namespace lockstep::datasets {

ddp::ModelTensors TensorsOf(const Manifest& manifest);

}  // namespace lockstep::datasets

#endif  // LOCKSTEP_DATASETS_MODEL_TENSORS_H_
