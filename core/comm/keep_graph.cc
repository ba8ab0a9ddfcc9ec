#include "core/comm/keep_graph.h"

#include <utility>

#include "core/comm/capturing_stream.h"
#include "core/comm/keeping_stream.h"
#include "core/comm/work_graph.h"

namespace lockstep::comm {

Result<std::unique_ptr<device::StreamGraph>> KeepGraph(
    device::Stream& stream, const std::function<Status(device::Stream&)>& program) {
  if (auto* const native = dynamic_cast<device::NativeStream*>(&stream)) {
    return native->Capture([&](void* handle) -> Status {
      CapturingStream capturing(*native, handle);
      LOCKSTEP_RETURN_IF_ERROR(program(capturing));
      return capturing.status();
    });
  }
  auto graph = std::make_unique<WorkGraph>();
  KeepingStream keeping(*graph, 0);
  LOCKSTEP_RETURN_IF_ERROR(program(keeping));
  LOCKSTEP_RETURN_IF_ERROR(keeping.status());
  return std::unique_ptr<device::StreamGraph>(std::move(graph));
}

}  // namespace lockstep::comm
