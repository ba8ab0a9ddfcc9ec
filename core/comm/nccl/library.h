// An NCCL library that was opened at run time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/nccl/abi.h"

namespace lockstep::comm::nccl {

inline constexpr int kOldestVersion = VersionCode(2, 14, 3);  // ncclCommInitRankConfig
inline constexpr int kNewestTested = VersionCode(2, 31, 2);

// A call that not every version has, by NCCL's name.
enum class Feature { kSplit, kRegister, kShrink, kRevoke };

// Stays loaded for the rest of the process: NCCL leaves threads behind.
class Library {
 public:
  // `path`: a file, or empty for the libnccl.so.2 that the dynamic linker finds. RTLD_LOCAL, so
  // that several versions do not see each other. kEnvironment when it is not there, too old, or
  // lacks a call that its version has.
  static Result<std::shared_ptr<const Library>> Open(const std::string& path);

  const Api& api() const { return api_; }
  const std::string& path() const { return path_; }  // the file that was loaded
  int version() const { return version_; }
  std::string VersionText() const;  // "2.28.9"
  bool stand_in() const { return stand_in_; }

  // OK, kUnsupported for a version that does not have it, kEnvironment for one that should.
  Status Has(Feature feature) const;
  // kUnsupported for floats of 8 bits before 2.24.3 and on GPUs of a lower compute capability (90:
  // 9.0; 0: unknown, so the library will tell) than such a call needs. Source: NCCL
  // src/enqueue.cc, where it says "FP8 reduction support begins with sm90 capable devices".
  Status Takes(const collective::Operation& operation, int compute_capability) const;
  // What communicators are made with: never blocking, and only fields that this version knows.
  Config NewConfig() const;
  // "ncclAllReduce: unhandled system error (2)".
  std::string Describe(std::string_view call, Code code) const;

 private:
  Status Load(void* handle);

  std::string path_;
  int version_ = 0;
  bool stand_in_ = false;
  Api api_;
};

std::string VersionText(int code);

// An operation as NCCL's call of it (calls.cc).
TypeCode TypeCodeOf(collective::DataType type);
ReductionCode ReductionCodeOf(collective::Reduction reduction);

// "ncclAllReduce". A barrier is an all-reduce of one f32, as PyTorch's is.
const char* CallName(const collective::Operation& operation);
Code MakeCall(const Api& api, const collective::Operation& operation,
              const collective::Buffers& buffers, Comm comm, Stream stream);

}  // namespace lockstep::comm::nccl
