// What a program puts on one stream, kept as a graph.
#pragma once

#include <functional>
#include <memory>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep::comm {

// `program` puts its work on the stream that it is given, in place of `stream`, and nothing of it
// runs. Errors: the program's; what a graph cannot hold.
Result<std::unique_ptr<device::StreamGraph>> KeepGraph(
    device::Stream& stream, const std::function<Status(device::Stream&)>& program);

}  // namespace lockstep::comm
