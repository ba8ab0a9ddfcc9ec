// Connects all ranks with each other, with a Meeting in the place of gloo's store. Names of hosts
// are resolved before gloo does it, because gloo (2022) reads an uninitialized answer for an
// unknown one. A barrier ends the connecting, so that no rank leaves while others still connect.
#include "core/comm/gloo/gloo_connection.h"

#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lockstep::comm::gloo {
namespace {

// Carries our Status through gloo, which reports by exceptions.
class MeetingFailed : public std::exception {
 public:
  explicit MeetingFailed(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message().c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

class MeetingStore final : public ::gloo::rendezvous::Store {
 public:
  MeetingStore(Meeting& meeting, std::string prefix, Deadline deadline)
      : meeting_(meeting), prefix_(std::move(prefix)), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const Status status = meeting_.Put(Key(key), std::string(data.begin(), data.end()));
    if (!status.ok()) throw MeetingFailed(status);
  }

  std::vector<char> get(const std::string& key) override {
    const auto value = meeting_.Get(Key(key), deadline_);
    if (!value.ok()) throw MeetingFailed(value.status());
    return {value->begin(), value->end()};
  }

  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);  // the connection's deadline is the time limit
  }

 private:
  std::string Key(const std::string& key) const { return prefix_ + "/gloo/" + key; }

  Meeting& meeting_;
  std::string prefix_;
  Deadline deadline_;
};

using ::gloo::transport::UnboundBuffer;

// What an abort has to know of a transport's buffers, which may outlive it.
struct Waits {
  std::mutex mutex;
  bool aborted = false;
  std::unordered_set<UnboundBuffer*> buffers;
};

// A wait that begins after the abort throws at once.
class AbortableBuffer final : public UnboundBuffer {
 public:
  AbortableBuffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<Waits> waits)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), waits_(std::move(waits)) {
    std::lock_guard lock(waits_->mutex);
    waits_->buffers.insert(inner_.get());
  }
  ~AbortableBuffer() override {
    std::lock_guard lock(waits_->mutex);
    waits_->buffers.erase(inner_.get());
  }

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    ThrowIfAborted();
    const bool completed = inner_->waitRecv(rank, timeout);
    ThrowIfAborted();
    return completed;
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    ThrowIfAborted();
    const bool completed = inner_->waitSend(rank, timeout);
    ThrowIfAborted();
    return completed;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int rank, uint64_t slot, size_t offset, size_t nbytes) override {
    inner_->send(rank, slot, offset, nbytes);
  }
  void recv(int rank, uint64_t slot, size_t offset, size_t nbytes) override {
    inner_->recv(rank, slot, offset, nbytes);
  }
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t nbytes) override {
    inner_->recv(std::move(ranks), slot, offset, nbytes);
  }

 private:
  void ThrowIfAborted() {
    std::lock_guard lock(waits_->mutex);
    if (waits_->aborted) throw std::runtime_error("aborted by this rank");
  }

  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<Waits> waits_;
};

// Stands before a connected transport. gloo's own closeConnections() closes what peers wait on, but
// forgets who waits here; its buffers can be told to stop waiting, one by one, and so somebody must
// know them. Costs a lock a buffer, of which a collective has a few.
class AbortableTransport final : public ::gloo::transport::Context {
 public:
  explicit AbortableTransport(std::shared_ptr<::gloo::transport::Context> inner)
      : ::gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)) {
    setTimeout(inner_->getTimeout());
  }

  std::unique_ptr<::gloo::transport::Pair>& getPair(int peer) override {
    return inner_->getPair(peer);
  }
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override {
    return inner_->createPair(peer);
  }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* memory, size_t bytes) override {
    return std::make_unique<AbortableBuffer>(inner_->createUnboundBuffer(memory, bytes), waits_);
  }

  // Every wait ends with an exception, now and from now on. From any thread. The connections stay.
  void Abort() {
    std::lock_guard lock(waits_->mutex);
    waits_->aborted = true;
    for (UnboundBuffer* buffer : waits_->buffers) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

 private:
  std::shared_ptr<::gloo::transport::Context> inner_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

class MeshContext final : public ::gloo::rendezvous::Context {
 public:
  using ::gloo::rendezvous::Context::Context;

  void MakeAbortable() {
    abortable_ = std::make_shared<AbortableTransport>(transportContext_);
    transportContext_ = abortable_;
  }
  void Abort() {
    abortable_->Abort();
    closeConnections();
  }

 private:
  std::shared_ptr<AbortableTransport> abortable_;
};

// Asked before gloo asks: of a name that is not known it goes on with an answer that was never
// written (transport/tcp/device.cc, 2022), and crashes or not.
Status CheckHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return EnvironmentError(
        "gloo: can't listen on {}: {}; name an address of this host with LOCKSTEP_GLOO_HOST, or an "
        "interface with GLOO_SOCKET_IFNAME",
        host, gai_strerror(error));
  }
  freeaddrinfo(found);
  return OkStatus();
}

// gloo's writes raise it where a peer has closed its connection. That is to be an error, as under
// Python, which ignores the signal. Who handles it keeps that.
void IgnoreClosedPipes() {
  struct sigaction now = {};
  sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Result<std::shared_ptr<::gloo::transport::Device>> OpenGlooDevice(const GlooOptions& options) {
  IgnoreClosedPipes();
  ::gloo::transport::tcp::attr attributes;
  // As in PyTorch the interface, and else the host, can be chosen from outside; what was chosen
  // goes before what the launch found out.
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  const char* const host = std::getenv("LOCKSTEP_GLOO_HOST");
  if (interface != nullptr) {
    attributes.iface = interface;
  } else if (host != nullptr) {
    attributes.hostname = host;
  } else {
    attributes.hostname = options.host.empty() ? "127.0.0.1" : options.host;
  }
  if (attributes.iface.empty()) LOCKSTEP_RETURN_IF_ERROR(CheckHost(attributes.hostname));
  try {
    return ::gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::system_error& error) {
    return EnvironmentError("gloo: no thread: {}; raise ulimit -u and ulimit -v", error.what());
  } catch (const std::exception& error) {
    return EnvironmentError(
        "gloo: can't listen on {}: {}; name an interface of this host with GLOO_SOCKET_IFNAME, or "
        "an address of it with LOCKSTEP_GLOO_HOST",
        attributes.iface.empty() ? attributes.hostname : attributes.iface, error.what());
  }
}

Result<std::shared_ptr<::gloo::Context>> ConnectMesh(
    int rank, int size, Meeting& meeting, const std::string& prefix,
    std::shared_ptr<::gloo::transport::Device> device, const GlooOptions& options,
    Deadline deadline) {
  MeetingStore store(meeting, prefix, deadline);
  try {
    auto context = std::make_shared<MeshContext>(rank, size);
    context->setTimeout(std::chrono::milliseconds(std::max(1, deadline.RemainingMs())));
    context->connectFullMesh(store, device);
    context->MakeAbortable();
    // Nobody goes on, and perhaps leaves, while others still connect.
    ::gloo::BarrierOptions barrier(context);
    ::gloo::barrier(barrier);
    context->setTimeout(
        std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3)));
    return context;
  } catch (const MeetingFailed& failed) {
    return failed.status();
  } catch (const std::exception& error) {
    return SystemFailed("gloo: rank {} of {} can't connect: {}", rank, size, error.what());
  }
}

void AbortMesh(::gloo::Context& context) { static_cast<MeshContext&>(context).Abort(); }

}  // namespace lockstep::comm::gloo
