#include "core/base/program.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <system_error>

#include "core/base/print_stderr.h"
#include "core/base/wrap.h"

namespace lockstep {
Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return OkStatus();
  return EnvironmentError("cannot write to standard output; free space there or redirect it");
}

Status Printed(const std::function<Status()>& print) {
  Status printed;
  try {
    printed = print();
  } catch (const std::system_error&) {  // of fmt::print, where its buffer was full
    if (std::ferror(stdout) == 0) throw;
  }
  LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
  return printed;
}

int Fail(const std::string& program, const Status& error) {
  PrintStderr("{}: {}\n", program, OneLine(error.message()));
  return static_cast<int>(ExitCodeOf(error.code()));
}

int RunProgram(const std::string& program, const std::function<Result<ExitCode>()>& work) {
  try {
    ExitCode code = ExitCode::kPass;
    const Status done = Printed([&] {
      LOCKSTEP_ASSIGN_OR_RETURN(code, work());
      return OkStatus();
    });
    return done.ok() ? static_cast<int>(code) : Fail(program, done);
  } catch (const std::exception& error) {
    PrintStderr("{}: internal error: {}\n", program, OneLine(error.what()));
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace lockstep
