// A network for NCCL that can be told to be ill: TCP on this host, with faults between NCCL and it.
// NCCL finds it as libnccl-net-lockstep.so by NCCL_NET_PLUGIN=lockstep; with NCCL_NET=Lockstep it
// uses this one or says that it is not there.
//
// A connection goes one way, and its messages stay in order: eight bytes of length, then the data.
// NCCL's proxy thread drives everything by its calls; two communicators may have a thread each.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>

#include "core/base/clock.h"
#include "stress/nccl_net/net_abi.h"
#include "stress/nccl_net/net_fault.h"

namespace lockstep::stress::nccl_net {
namespace {

constexpr int kRequestsMax = 32;  // NCCL_NET_MAX_REQUESTS
char own_name[] = "lockstep";

NetFault fault;
std::atomic<std::uint64_t> sends{0};
std::atomic<std::uint64_t> connections{0};

bool Befalls(NetFault::Kind kind, std::uint64_t number) {
  return fault.kind == kind && number >= fault.after;
}

struct Flow;

struct Request {
  Flow* flow = nullptr;
  char* data = nullptr;
  std::uint64_t length = 0;  // of the message; as it travels
  std::uint64_t room = 0;    // of a receive: the buffer's
  std::uint64_t moved = 0;   // bytes of length and data
  std::int64_t leaves_ns = 0;
  bool held = false;    // it never leaves
  bool failed = false;  // it ends with an error
  bool done = false;
};

struct Flow {
  int socket = -1;
  bool sends = false;
  bool broken = false;
  std::deque<std::unique_ptr<Request>> requests;  // oldest first

  ~Flow() { close(socket); }

  // One system call's worth; 0: it would block, or the connection is broken.
  ssize_t Move(void* data, std::size_t bytes) {
    const ssize_t moved = sends ? send(socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                                : recv(socket, data, bytes, MSG_DONTWAIT);
    if (moved > 0) return moved;
    const bool later = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    broken = broken || !later;
    return 0;
  }

  // True: the request is through.
  bool Advance(Request& request) {
    constexpr std::uint64_t kHeader = sizeof request.length;
    while (request.moved < kHeader) {
      auto* const header = reinterpret_cast<char*>(&request.length);
      const ssize_t moved = Move(header + request.moved, kHeader - request.moved);
      if (moved == 0) return false;
      request.moved += static_cast<std::uint64_t>(moved);
    }
    // A message that is longer than its buffer would lose the place of all that follow.
    broken = broken || (!sends && request.length > request.room);
    while (!broken && request.moved < kHeader + request.length) {
      const std::uint64_t offset = request.moved - kHeader;
      const ssize_t moved = Move(request.data + offset, request.length - offset);
      if (moved == 0) return false;
      request.moved += static_cast<std::uint64_t>(moved);
    }
    return !broken;
  }

  void Progress() {
    for (const auto& request : requests) {
      if (request->done) continue;
      if (request->held || request->failed || broken || MonotonicNs() < request->leaves_ns) return;
      if (!Advance(*request)) return;
      request->done = true;
    }
  }

  Request* Add(char* data, std::uint64_t bytes) {
    if (requests.size() >= kRequestsMax) return nullptr;
    auto request = std::make_unique<Request>();
    request->flow = this;
    request->data = data;
    request->length = sends ? bytes : 0;
    request->room = bytes;
    requests.push_back(std::move(request));
    return requests.back().get();
  }
};

// What NCCL carries from a listener to the ranks that connect, and gives to every call of connect.
struct Handle {
  sockaddr_in address;
  int connecting;  // the socket of a connection under way, plus 1; of the connecting side only
  int stalled;
};
static_assert(sizeof(Handle) <= kHandleBytes && std::is_trivially_copyable_v<Handle>);

struct Listener {
  int socket = -1;
  ~Listener() { close(socket); }
};

int OpenSocket() {
  const int opened = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (opened >= 0) setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return opened;
}

Code Init(Logger) {
  const char* const text = std::getenv("LOCKSTEP_NET_FAULT");
  sends.store(0);
  connections.store(0);
  fault = NetFault();
  // An order that is not understood is no healthy network: NCCL then does not use it.
  return ParseNetFault(text == nullptr ? "" : text, fault) ? kSuccess : kSystemError;
}

Code Devices(int* count) {
  *count = 1;
  return kSuccess;
}

Code GetProperties(int, Properties* properties) {
  *properties = {own_name, nullptr, 0, kHostPointers, 10'000, 0, 10.0f, 65'536, 1};
  return kSuccess;
}

Code Listen(int, void* handle, void** listener) {
  auto made = std::make_unique<Listener>();
  made->socket = OpenSocket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (made->socket < 0 || bind(made->socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(made->socket, SOMAXCONN) != 0 ||
      getsockname(made->socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return kSystemError;
  }
  const Handle own{address, 0, 0};
  std::memcpy(handle, &own, sizeof own);
  *listener = made.release();
  return kSuccess;
}

// Whether the connection of `socket` is there; an error of it in `error`.
bool Connected(int socket, int& error) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0) return true;
  size = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return false;
}

Code Connect(int, void* memory, void** sender) {
  *sender = nullptr;
  Handle handle;
  std::memcpy(&handle, memory, sizeof handle);
  if (handle.stalled != 0) return kSuccess;
  if (handle.connecting == 0) {
    handle.stalled = Befalls(NetFault::Kind::kStall, ++connections) ? 1 : 0;
    const int opened = handle.stalled != 0 ? -1 : OpenSocket();
    const auto* const to = reinterpret_cast<const sockaddr*>(&handle.address);
    const bool begun =
        opened >= 0 && (connect(opened, to, sizeof handle.address) == 0 || errno == EINPROGRESS);
    handle.connecting = opened + 1;
    std::memcpy(memory, &handle, sizeof handle);
    if (handle.stalled == 0 && !begun) return kSystemError;
    if (handle.stalled != 0) return kSuccess;
  }
  int error = 0;
  if (!Connected(handle.connecting - 1, error)) return error == 0 ? kSuccess : kSystemError;
  auto flow = std::make_unique<Flow>();
  flow->socket = handle.connecting - 1;
  flow->sends = true;
  *sender = flow.release();
  return kSuccess;
}

Code Accept(void* listener, void** receiver) {
  *receiver = nullptr;
  const int accepted = accept4(static_cast<Listener*>(listener)->socket, nullptr, nullptr,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? kSuccess : kSystemError;
  }
  auto flow = std::make_unique<Flow>();
  flow->socket = accepted;
  *receiver = flow.release();
  return kSuccess;
}

Code RegisterMemory(void*, void*, int, int type, void** memory) {
  *memory = nullptr;
  return type == kHostPointers ? kSuccess : kInternalError;
}
Code DeregisterMemory(void*, void*) { return kSuccess; }

Code Isend(void* sender, void* data, int bytes, int, void*, void** request) {
  auto& flow = *static_cast<Flow*>(sender);
  Request* const made = flow.Add(static_cast<char*>(data), static_cast<std::uint64_t>(bytes));
  *request = made;
  if (made == nullptr) return kSuccess;
  const std::uint64_t number = ++sends;
  made->held = Befalls(NetFault::Kind::kDrop, number);
  made->failed = Befalls(NetFault::Kind::kFail, number);
  if (Befalls(NetFault::Kind::kDelay, number)) {
    made->leaves_ns = MonotonicNs() + fault.ms * 1'000'000;
  }
  flow.Progress();
  return kSuccess;
}

Code Irecv(void* receiver, int count, void** data, int* bytes, int*, void**, void** request) {
  if (count != 1) return kInternalError;
  auto& flow = *static_cast<Flow*>(receiver);
  *request = flow.Add(static_cast<char*>(data[0]), static_cast<std::uint64_t>(bytes[0]));
  flow.Progress();
  return kSuccess;
}

// Received data are in the host's memory: nothing is to be flushed.
Code Iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return kSuccess;
}

Code Test(void* pointer, int* done, int* bytes) {
  auto* const request = static_cast<Request*>(pointer);
  Flow& flow = *request->flow;
  flow.Progress();
  *done = request->done ? 1 : 0;
  if (!request->done) return request->failed || flow.broken ? kSystemError : kSuccess;
  if (bytes != nullptr) *bytes = static_cast<int>(request->length);
  std::erase_if(flow.requests, [&](const auto& other) { return other.get() == request; });
  return kSuccess;
}

Code CloseFlow(void* flow) {
  delete static_cast<Flow*>(flow);
  return kSuccess;
}
Code CloseListener(void* listener) {
  delete static_cast<Listener*>(listener);
  return kSuccess;
}

}  // namespace
}  // namespace lockstep::stress::nccl_net

extern "C" {

using namespace lockstep::stress::nccl_net;  // NOLINT: one table

__attribute__((
    visibility("default"))) extern const lockstep::stress::nccl_net::Net ncclNetPlugin_v6;
const lockstep::stress::nccl_net::Net ncclNetPlugin_v6 = {
    "Lockstep", Init,           Devices,   GetProperties,    Listen,       Connect,
    Accept,     RegisterMemory, nullptr,   DeregisterMemory, Isend,        Irecv,
    Iflush,     Test,           CloseFlow, CloseFlow,        CloseListener};

}  // extern "C"
