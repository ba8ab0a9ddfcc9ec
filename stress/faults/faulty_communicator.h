// Decorators that inject faults into collectives. Program -> FaultyCalls -> RecordedCommunicator ->
// FaultyLibrary -> backend: what the program calls wrongly is journaled as it was called, and what
// the library does wrongly happens below the journal, which cannot know of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/forwarding_communicator.h"
#include "core/device/device.h"
#include "stress/faults/fault_gate.h"

namespace lockstep::stress::faults {

// Both outlive neither the gate nor, for FaultyCalls made with references, the inner communicator
// and the device, in whose memory is what a wrong call works on.
class FaultyCalls final : public comm::ForwardingCommunicator {
 public:
  FaultyCalls(comm::Communicator& inner, FaultGate& gate, device::Device& device);
  FaultyCalls(std::unique_ptr<comm::Communicator> inner, FaultyCalls& parent);
  ~FaultyCalls() override;

  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override;
  Result<std::unique_ptr<comm::Communicator>> Split(int color, int key, Deadline deadline) override;

 private:
  struct Shared;  // with the children: collectives are counted over all communicators
  struct Held;    // an operation that waits for the next one (wrong_order)
  // Applies what changes the call. True: it is dealt with and must not be called any more.
  Result<bool> Inject(const FaultGate::Taken& taken, collective::Operation& operation,
                      collective::Buffers& buffers, device::Stream& stream);
  Status CallHeld();
  Result<void*> Scratch(std::int64_t bytes);

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Held> held_;
  std::vector<std::unique_ptr<device::Buffer>> scratch_;  // lives as long as what uses it
};

class FaultyLibrary final : public comm::ForwardingCommunicator {
 public:
  FaultyLibrary(std::unique_ptr<comm::Communicator> inner, FaultGate& gate)
      : comm::ForwardingCommunicator(std::move(inner)), gate_(gate) {}

  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override;
  Result<std::unique_ptr<comm::Communicator>> Split(int color, int key, Deadline deadline) override;

 private:
  class FaultyStream;
  class FaultyNativeStream;
  Status LeaveGroupOpen(std::vector<FaultGate::Taken>& faults);
  FaultGate& gate_;
};

}  // namespace lockstep::stress::faults
