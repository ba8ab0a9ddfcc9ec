#include "core/comm/keeping_stream.h"

namespace lockstep {
namespace {

class KeptWork final : public StreamGraph {
 public:
  explicit KeptWork(std::vector<Stream::Work> works) : works_(std::move(works)) {}
  Status LaunchOn(void* handle) override {
    auto& stream = *static_cast<Stream*>(handle);
    for (const Stream::Work& work : works_) stream.Enqueue(work);
    return stream.status();
  }

 private:
  std::vector<Stream::Work> works_;
};

}  // namespace

std::unique_ptr<StreamGraph> KeepingStream::Take() {
  return std::make_unique<KeptWork>(std::exchange(works_, {}));
}

void KeepingStream::Refuse() {
  if (status_.ok()) status_ = Unsupported("a graph of the host's work holds nothing but work");
}

}  // namespace lockstep
