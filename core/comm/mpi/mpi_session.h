// The life of MPI in this process, and what its names are for our types and reductions.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <memory>
#include <string_view>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/mpi/mpi_communicator.h"

namespace lockstep::comm::mpi {

// kSystemFailed with MPI's own text.
Status MpiError(int code, std::string_view call);

inline Status FromMpi(int code, std::string_view call) {
  if (code == MPI_SUCCESS) [[likely]]
    return OkStatus();
  return MpiError(code, call);
}

// Initializes MPI if nobody did; its destructor finalizes when everything went well.
class MpiSession {
 public:
  using TypeTable = std::array<MPI_Datatype, collective::kDataTypeCount>;

  static Result<std::shared_ptr<MpiSession>> Open(const MpiOptions& options);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  const MpiOptions& options() const { return options_; }
  MPI_Datatype TypeOf(DataType type) const { return types_[static_cast<std::size_t>(type)]; }
  MPI_Op OpOf(DataType type, Reduction reduction) const {
    return ops_[static_cast<std::size_t>(type)][static_cast<std::size_t>(reduction)];
  }

  bool healthy() const { return healthy_.load(std::memory_order_relaxed); }
  void MarkSick() { healthy_.store(false, std::memory_order_relaxed); }

  // Which thread is inside MPI, where that is restricted to one at a time.
  std::atomic_flag& in_use() { return in_use_; }

 private:
  explicit MpiSession(const MpiOptions& options) : options_(options) {}
  Status CreateOps();

  MpiOptions options_;
  TypeTable types_{};
  std::array<std::array<MPI_Op, 4>, collective::kDataTypeCount> ops_{};
  std::atomic<bool> healthy_{true};
  std::atomic_flag in_use_;
};

}  // namespace lockstep::comm::mpi
