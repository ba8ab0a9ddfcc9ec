// Turns operations into gloo's C++ options, whose element type matters only by its size. Operations
// between two ranks match in order, by slots of a kind that gloo does not use. Its exceptions end
// here as a Status. Connections stay open until the last child communicator is gone.
#include "core/comm/gloo/gloo_communicator.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/comm/gloo/gloo_connection.h"
#include "fmt/format.h"

namespace lockstep::comm::gloo {
namespace {

// gloo's collectives use slots whose highest byte is their kind, from 1 up; sends and receives of
// ours have a kind of their own. Between two ranks they match in order.
constexpr std::uint64_t kPointToPointSlot = std::uint64_t{0x40} << 56;

Status Supports(const Operation& operation) {
  if (operation.collective == Collective::kReduceScatter) {
    return Unsupported("gloo: there is no reduce_scatter; use all_reduce, or another backend");
  }
  if (operation.blocking == Blocking::kNonblocking) {
    return Unsupported(
        "gloo: there are no non-blocking calls; use blocking operations (on a FIFO stream they "
        "run beside the caller), or another backend");
  }
  return OkStatus();
}

// gloo's options want a C++ type, of which they take the size only: calls `function` with a pointer
// to an unsigned integer of that size.
template <typename Function>
void WithElement(DataType type, Function function) {
  switch (collective::SizeOf(type)) {
    case 1:
      return function(static_cast<std::uint8_t*>(nullptr));
    case 2:
      return function(static_cast<std::uint16_t*>(nullptr));
    case 4:
      return function(static_cast<std::uint32_t*>(nullptr));
    case 8:
      return function(static_cast<std::uint64_t*>(nullptr));
  }
  LOCKSTEP_CHECK(false, "an element of 1, 2, 4 or 8 bytes");
}

// What a communicator and its children share. Connections stay open until all of them are gone: a
// rank that closed its own early would fail peers that are still reading the last results.
struct Family {
  std::shared_ptr<::gloo::transport::Device> device;
  Meeting& meeting;
  GlooOptions options;
  std::vector<std::shared_ptr<::gloo::Context>> contexts;
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(std::shared_ptr<::gloo::Context> context, std::shared_ptr<Family> family,
                   std::string prefix)
      : context_(std::move(context)), family_(std::move(family)), prefix_(std::move(prefix)) {
    family_->contexts.push_back(context_);
  }

  const Capabilities& capabilities() const override { return GlooCapabilities(); }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank(), size()));
    LOCKSTEP_RETURN_IF_ERROR(Supports(operation));
    if (!stream.inline_execution()) {
      stream.Enqueue([this, operation, buffers] { return Run(operation, buffers); });
      return OkStatus();
    }
    struct {
      GlooCommunicator* self;
      const Operation& operation;
      const Buffers& buffers;
    } work = {this, operation, buffers};
    // One pointer is captured, so the work needs no allocation.
    stream.Enqueue([&work] { return work.self->Run(work.operation, work.buffers); });
    return stream.status();
  }
  Status Await(Stream& stream, Deadline deadline) override { return stream.Synchronize(deadline); }
  Status Abort() override {
    AbortMesh(*context_);
    return OkStatus();
  }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const SplitGroup group,
        AgreeOnGroup(family_->meeting, fmt::format("{}/{}", prefix_, splits_++), rank(), size(),
                     color, key, deadline));
    if (group.rank < 0) return nullptr;
    LOCKSTEP_ASSIGN_OR_RETURN(auto context,
                              ConnectMesh(group.rank, group.size, family_->meeting, group.prefix,
                                          family_->device, family_->options, deadline));
    return std::make_unique<GlooCommunicator>(std::move(context), family_, group.prefix);
  }

 private:
  Status Run(const Operation& operation, const Buffers& buffers) {
    if (operation.count == 0 && operation.collective != Collective::kBarrier) return OkStatus();
    try {
      Call(operation, buffers);
    } catch (const std::exception& error) {
      return SystemFailed("gloo: {}: {}", collective::Describe(operation), error.what());
    }
    return OkStatus();
  }
  void Call(const Operation& operation, const Buffers& buffers) {
    switch (operation.collective) {
      case Collective::kAllReduce:
        return AllReduce(operation, buffers);
      case Collective::kBroadcast:
        return Broadcast(operation, buffers);
      case Collective::kBarrier:
        return Barrier();
      case Collective::kAllGather:
        return AllGather(operation, buffers);
      case Collective::kReduce:
        return Reduce(operation, buffers);
      case Collective::kSend:
      case Collective::kRecv:
        return SendOrReceive(operation, buffers);
      case Collective::kReduceScatter:
        break;
    }
    LOCKSTEP_CHECK(false, "refused before it is enqueued");
  }

  void AllReduce(const Operation& operation, const Buffers& buffers) {
    WithElement(operation.type, [&]<typename T>(T*) {
      ::gloo::AllreduceOptions options(context_);
      const auto count = static_cast<std::size_t>(operation.count);
      if (buffers.send != buffers.recv) {
        options.setInput(static_cast<T*>(const_cast<void*>(buffers.send)), count);
      }
      options.setOutput(static_cast<T*>(buffers.recv), count);
      options.setReduceFunction(ReduceFunctionFor(operation.type, operation.reduction));
      options.setTag(next_tag_++);
      ::gloo::allreduce(options);
    });
  }

  void Broadcast(const Operation& operation, const Buffers& buffers) {
    WithElement(operation.type, [&]<typename T>(T*) {
      ::gloo::BroadcastOptions options(context_);
      const auto count = static_cast<std::size_t>(operation.count);
      void* send = const_cast<void*>(buffers.send);
      const bool is_root = rank() == operation.root;
      const bool one_buffer = !is_root || buffers.recv == nullptr || buffers.recv == send;
      if (!one_buffer) options.setInput(static_cast<T*>(send), count);
      options.setOutput(static_cast<T*>(is_root && one_buffer ? send : buffers.recv), count);
      options.setRoot(operation.root);
      options.setTag(next_tag_++);
      ::gloo::broadcast(options);
    });
  }

  void AllGather(const Operation& operation, const Buffers& buffers) {
    WithElement(operation.type, [&]<typename T>(T*) {
      ::gloo::AllgatherOptions options(context_);
      const auto count = static_cast<std::size_t>(operation.count);
      auto* recv = static_cast<T*>(buffers.recv);
      auto* send = static_cast<T*>(const_cast<void*>(buffers.send));
      if (send != recv + static_cast<std::size_t>(rank()) * count) options.setInput(send, count);
      options.setOutput(recv, count * static_cast<std::size_t>(size()));
      options.setTag(next_tag_++);
      ::gloo::allgather(options);
    });
  }

  // gloo reduces in the output buffer of every rank, which elsewhere only the root has.
  void Reduce(const Operation& operation, const Buffers& buffers) {
    WithElement(operation.type, [&]<typename T>(T*) {
      ::gloo::ReduceOptions options(context_);
      const auto count = static_cast<std::size_t>(operation.count);
      void* recv = buffers.recv;
      if (rank() != operation.root) {
        if (reduce_space_.size() < count * sizeof(T)) reduce_space_.resize(count * sizeof(T));
        recv = reduce_space_.data();
      }
      if (buffers.send != recv) {
        options.setInput(static_cast<T*>(const_cast<void*>(buffers.send)), count);
      }
      options.setOutput(static_cast<T*>(recv), count);
      options.setRoot(operation.root);
      options.setReduceFunction(ReduceFunctionFor(operation.type, operation.reduction));
      options.setTag(next_tag_++);
      ::gloo::reduce(options);
    });
  }

  void Barrier() {
    ::gloo::BarrierOptions options(context_);
    options.setTag(next_tag_++);
    ::gloo::barrier(options);
  }
  void SendOrReceive(const Operation& operation, const Buffers& buffers) {
    const auto bytes =
        static_cast<std::size_t>(operation.count * collective::SizeOf(operation.type));
    const bool sends = operation.collective == Collective::kSend;
    void* data = sends ? const_cast<void*>(buffers.send) : buffers.recv;
    const auto buffer = context_->createUnboundBuffer(data, bytes);
    if (sends) {
      buffer->send(operation.root, kPointToPointSlot);
      buffer->waitSend(context_->getTimeout());
    } else {
      buffer->recv(operation.root, kPointToPointSlot);
      buffer->waitRecv(context_->getTimeout());
    }
  }

  std::shared_ptr<::gloo::Context> context_;
  std::shared_ptr<Family> family_;
  std::string prefix_;
  std::uint32_t next_tag_ = 1;      // of collectives, the same on all ranks; 0 was connecting
  std::vector<char> reduce_space_;  // where ranks other than the root reduce; grows, stays
  int splits_ = 0;
};

}  // namespace

const Capabilities& GlooCapabilities() {
  static const Capabilities capabilities = {
      .backend = "gloo", .moves_data = true, .can_abort = true, .supports = &Supports};
  return capabilities;
}

Result<std::unique_ptr<Communicator>> ConnectGloo(int rank, int size, Meeting& meeting,
                                                  const std::string& prefix,
                                                  const GlooOptions& options, Deadline deadline) {
  if (size < 1 || rank < 0 || rank >= size) {
    return InvalidInput("gloo: rank {} of {} ranks does not exist", rank, size);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto device, OpenGlooDevice(options));
  LOCKSTEP_ASSIGN_OR_RETURN(auto context,
                            ConnectMesh(rank, size, meeting, prefix, device, options, deadline));
  auto family = std::make_shared<Family>(Family{std::move(device), meeting, options, {}});
  return std::make_unique<GlooCommunicator>(std::move(context), std::move(family), prefix);
}

namespace {

// By Reduction.
template <typename T>
constexpr ReduceFunction kOwn[] = {&::gloo::sum<T>, &::gloo::product<T>, &::gloo::min<T>,
                                   &::gloo::max<T>};

}  // namespace

ReduceFunction ReduceFunctionFor(DataType type, Reduction reduction) {
  // ::gloo::float16's assignment compares bits with the value of an integer and leaves the old
  // bits when they "are equal": 2.0 is not assigned to a place that holds the bits 0x0002. So
  // results would depend on what the output buffer held before.
  if (const NarrowReduction narrow = NarrowReductionFor(type, reduction)) return narrow;
  const auto index = static_cast<std::size_t>(reduction);
  if (type == DataType::kF32) return kOwn<float>[index];
  if (type == DataType::kF64) return kOwn<double>[index];
  if (type == DataType::kI8) return kOwn<std::int8_t>[index];
  if (type == DataType::kI32) return kOwn<std::int32_t>[index];
  if (type == DataType::kI64) return kOwn<std::int64_t>[index];
  LOCKSTEP_CHECK(type == DataType::kU8, "a DataType that is not in the table");
  return kOwn<std::uint8_t>[index];
}

namespace {

// The version of an installed package as the package manager's database has it; empty if unknown.
std::string DebianVersionOf(const std::string& package) {
  std::ifstream database("/var/lib/dpkg/status");
  bool inside = false;
  for (std::string line; std::getline(database, line);) {
    if (line.rfind("Package: ", 0) == 0) inside = line == "Package: " + package;
    if (inside && line.rfind("Version: ", 0) == 0) return line.substr(9);
  }
  return "";
}

}  // namespace

// gloo's library does not tell its version, so this is what it was compiled against and, on Debian,
// what is installed.
std::string GlooVersion() {
  std::string version =
      fmt::format("{}.{}.{} (headers)", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  const std::string package = DebianVersionOf("libgloo0");
  if (!package.empty()) version += fmt::format(", libgloo0 {}", package);
  return version;
}

}  // namespace lockstep::comm::gloo
