// Registers every buffer that gloo makes on this transport, so that another thread can end its
// waits. A wait that begins after the abort throws at once. What the buffers share is behind one
// lock of the transport.
#include "core/comm/gloo/gloo_abort.h"

#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lockstep::comm::gloo {
namespace {

using ::gloo::transport::UnboundBuffer;

}  // namespace

class AbortableTransport::Buffer final : public UnboundBuffer {
 public:
  Buffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<Waits> waits)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), waits_(std::move(waits)) {
    std::lock_guard lock(waits_->mutex);
    waits_->buffers.insert(inner_.get());
  }
  ~Buffer() override {
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

AbortableTransport::AbortableTransport(std::shared_ptr<::gloo::transport::Context> inner)
    : ::gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)) {
  setTimeout(inner_->getTimeout());
}

std::unique_ptr<::gloo::transport::Pair>& AbortableTransport::getPair(int peer) {
  return inner_->getPair(peer);
}

std::unique_ptr<::gloo::transport::Pair>& AbortableTransport::createPair(int peer) {
  return inner_->createPair(peer);
}

std::unique_ptr<UnboundBuffer> AbortableTransport::createUnboundBuffer(void* memory, size_t bytes) {
  return std::make_unique<Buffer>(inner_->createUnboundBuffer(memory, bytes), waits_);
}

void AbortableTransport::Abort() {
  std::lock_guard lock(waits_->mutex);
  waits_->aborted = true;
  for (UnboundBuffer* buffer : waits_->buffers) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

}  // namespace lockstep::comm::gloo
