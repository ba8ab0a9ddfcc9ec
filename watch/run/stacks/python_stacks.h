// Where a Python program is: py-spy, where it is installed, looks at a process from outside.
#pragma once

#include <sys/types.h>

#include <string>

namespace lockstep::watch::run::stacks {

struct PythonStack {
  std::string line;       // of the user's own code, "train.py:24"; empty: not known
  bool in_torch = false;  // the innermost frame is one of PyTorch that may wait for other ranks
};

// Of what `py-spy dump --full-filenames` printed: the main thread.
PythonStack ReadPythonStack(const std::string& dump);

// … all threads, the main one first: "; thread MainThread: barrier at distributed.py:31 < …".
std::string ReadPythonThreads(const std::string& dump);

bool IsPython(pid_t pid);  // by the name of its program

// Says once, in one line on stderr, why there are no lines: no py-spy, or no permission.
PythonStack LookAtPython(pid_t pid);
std::string PythonThreads(pid_t pid);

}  // namespace lockstep::watch::run::stacks
