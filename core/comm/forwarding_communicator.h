// A communicator that passes everything on to another one: for those that change a part of it.
#pragma once

#include <memory>
#include <utility>

#include "core/comm/communicator.h"

namespace lockstep::comm {

// Children of a split are those of the inner one, undecorated.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}  // which outlives it
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  Status Supports(const Operation& operation) const override { return inner_.Supports(operation); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    return inner_.Enqueue(operation, buffers, stream);
  }
  Status Await(Stream& stream, Deadline deadline) override {
    return inner_.Await(stream, deadline);
  }
  Status StartGroup() override { return inner_.StartGroup(); }
  Status EndGroup() override { return inner_.EndGroup(); }
  Status Abort() override { return inner_.Abort(); }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    return inner_.Split(color, key, deadline);
  }

 protected:
  Communicator& inner() { return inner_; }

 private:
  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
};

}  // namespace lockstep::comm
