// NCCL's interface of external networks, version 6, declared anew so that nothing of NCCL is needed
// to build. NCCL 2.13 to 2.30 load it. Source: NVIDIA/nccl, ext-net/README.md, "API (v6)".
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::stress::nccl_net {

using Code = int;  // ncclResult_t
inline constexpr Code kSuccess = 0;
inline constexpr Code kSystemError = 2;
inline constexpr Code kInternalError = 3;

inline constexpr int kHostPointers = 1;           // NCCL_PTR_HOST
inline constexpr std::size_t kHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct Properties {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointers;
  int speed_mbps;
  int port;
  float latency_us;
  int communicators_max;
  int grouped_receives_max;
};

// connect, accept, isend and irecv do not block: where they would, they succeed with a null result
// and are called again.
struct Net {
  const char* name;
  Code (*init)(Logger logger);
  Code (*devices)(int* count);
  Code (*get_properties)(int device, Properties* properties);
  Code (*listen)(int device, void* handle, void** listener);
  Code (*connect)(int device, void* handle, void** sender);
  Code (*accept)(void* listener, void** receiver);
  Code (*register_memory)(void* end, void* data, int bytes, int type, void** memory);
  Code (*register_dma_buf)(void* end, void* data, std::size_t bytes, int type, std::uint64_t offset,
                           int fd, void** memory);
  Code (*deregister_memory)(void* end, void* memory);
  Code (*isend)(void* sender, void* data, int bytes, int tag, void* memory, void** request);
  Code (*irecv)(void* receiver, int count, void** data, int* bytes, int* tags, void** memory,
                void** request);
  Code (*iflush)(void* receiver, int count, void** data, int* bytes, void** memory, void** request);
  Code (*test)(void* request, int* done, int* bytes);
  Code (*close_sender)(void* sender);
  Code (*close_receiver)(void* receiver);
  Code (*close_listener)(void* listener);
};

}  // namespace lockstep::stress::nccl_net
