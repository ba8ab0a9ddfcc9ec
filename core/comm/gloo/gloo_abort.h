// A transport of gloo whose waits can be ended from another thread.
#pragma once

#include <gloo/transport/context.h>

#include <memory>
#include <mutex>
#include <unordered_set>

namespace lockstep::comm::gloo {

// Stands before a connected transport. gloo's own closeConnections() closes what peers wait on, but
// forgets who waits here; its buffers can be told to stop waiting, one by one, and so somebody must
// know them. Costs a lock a buffer, of which a collective has a few.
class AbortableTransport final : public ::gloo::transport::Context {
 public:
  explicit AbortableTransport(std::shared_ptr<::gloo::transport::Context> inner);

  std::unique_ptr<::gloo::transport::Pair>& getPair(int peer) override;
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory,
                                                                        size_t bytes) override;

  // Every wait ends with an exception, now and from now on. From any thread. The connections stay.
  void Abort();

 private:
  class Buffer;
  struct Waits {
    std::mutex mutex;
    bool aborted = false;
    std::unordered_set<::gloo::transport::UnboundBuffer*> buffers;
  };

  std::shared_ptr<::gloo::transport::Context> inner_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();  // buffers may outlive this
};

}  // namespace lockstep::comm::gloo
