// How a program ends: an error is one line on stderr, and its kind is the exit code.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace lockstep {

// Writes out what was printed. kEnvironment: it could not be written (a full disk, a closed pipe),
// which must not look like success.
Status FlushOutput();

// Does what prints to standard output, and writes it out. Its own error counts less than output
// that is lost.
Status Printed(const std::function<Status()>& print);

// Says the error; its exit code.
int Fail(const std::string& program, const Status& error);

// A program's main function, whose work prints: its exit code. An exception of the work is a defect
// of ours.
int RunProgram(const std::string& program, const std::function<Result<ExitCode>()>& work);

}  // namespace lockstep
