// Errors of the environment and of input are values. What the system under test does is data
// (core/verdict), and our own mistakes are CHECKs (core/base/check.h); neither is a Status.
#pragma once

#ifndef __CUDACC__  // nvcc cannot read it
#include <fmt/core.h>
#endif

#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

// Every exit code a Lockstep binary can return. Documented for users in README.md.
enum class ExitCode : int {
  kPass = 0,
  kFailed = 1,        // the system under test failed: wrong data, hang, crash
  kUsage = 2,         // bad input
  kInconclusive = 3,  // nothing was proved either way
  kEnvironment = 4,   // this machine lacks something that was asked for
  kRegression = 5,    // slower than the baseline
  kInternal = 10,     // our own fault
};

enum class StatusCode {
  kOk,
  kInvalidInput,      // the user can mend it by asking for something else
  kUnsupported,       // the backend or device cannot do that by its nature
  kEnvironment,       // the machine lacks it: memory, a library, a permission, space
  kDeadlineExceeded,  // silence; nothing else is known
  kSystemFailed,      // the system under test reported an error
  kTerminated,        // told to end by a signal
};

// The exit code with which a binary ends because of an error of this kind.
ExitCode ExitCodeOf(StatusCode code);

// A one-line message names the input, the reason and the remedy: it is printed as it is.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }

// Makes errors of a kind, of a message, or of a format and what goes into it.
template <StatusCode kCode>
struct ErrorMaker {
  Status operator()(std::string message) const { return Status(kCode, std::move(message)); }
#ifndef __CUDACC__
  template <typename First, typename... More>
  Status operator()(fmt::format_string<First, More...> format, First&& first,
                    More&&... more) const {
    return Status(kCode,
                  fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
  }
#endif
};
inline constexpr ErrorMaker<StatusCode::kInvalidInput> InvalidInput{};
inline constexpr ErrorMaker<StatusCode::kUnsupported> Unsupported{};
inline constexpr ErrorMaker<StatusCode::kEnvironment> EnvironmentError{};
inline constexpr ErrorMaker<StatusCode::kDeadlineExceeded> DeadlineExceeded{};
inline constexpr ErrorMaker<StatusCode::kSystemFailed> SystemFailed{};
inline constexpr ErrorMaker<StatusCode::kTerminated> Terminated{};

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Of a T, or of what becomes one: a pointer to a derived class, or nullptr.
  template <typename U = T>
  requires(std::convertible_to<U, T> && !std::convertible_to<U, Status>) Result(U&& value)
      : value_(std::forward<U>(value)) {}               // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit on purpose
    LOCKSTEP_CHECK(!status_.ok(), "a Result without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    LOCKSTEP_CHECK(ok(), status_.message());
    return *value_;
  }
  const T& value() const& {
    LOCKSTEP_CHECK(ok(), status_.message());
    return *value_;
  }
  T&& value() && {
    LOCKSTEP_CHECK(ok(), status_.message());
    return *std::move(value_);
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace lockstep

// Returns from the enclosing function with the error, if there is one.
#define LOCKSTEP_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                      \
    if (auto lockstep_status = (expression); !lockstep_status.ok()) return lockstep_status; \
  } while (false)

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)
// LOCKSTEP_ASSIGN_OR_RETURN(auto x, F()): x is F()'s value, or the function returns its error.
#define LOCKSTEP_ASSIGN_OR_RETURN(declaration, expression)         \
  auto LOCKSTEP_CONCAT(lockstep_result_, __LINE__) = (expression); \
  if (!LOCKSTEP_CONCAT(lockstep_result_, __LINE__).ok())           \
    return LOCKSTEP_CONCAT(lockstep_result_, __LINE__).status();   \
  declaration = std::move(LOCKSTEP_CONCAT(lockstep_result_, __LINE__)).value()
