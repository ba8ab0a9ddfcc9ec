// A full mesh of TCP connections among ranks, made through a Meeting.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <memory>
#include <string>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/comm/gloo/gloo_communicator.h"

namespace lockstep::comm::gloo {

// The socket and its thread; communicators of one process share it.
Result<std::shared_ptr<::gloo::transport::Device>> OpenGlooDevice(const GlooOptions& options);

Result<std::shared_ptr<::gloo::Context>> ConnectMesh(
    int rank, int size, Meeting& meeting, const std::string& prefix,
    std::shared_ptr<::gloo::transport::Device> device, const GlooOptions& options,
    Deadline deadline);

// Of a context of ConnectMesh: fails what this rank waits for, and closes its connections, which
// fails what its peers wait for from it. From any thread.
void AbortMesh(::gloo::Context& context);

}  // namespace lockstep::comm::gloo
