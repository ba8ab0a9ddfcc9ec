// What is read of the text that py-spy prints.
#include "watch/run/stacks/python_stacks.h"

#include <gtest/gtest.h>

namespace lockstep::watch::run::stacks {
namespace {

constexpr const char* kInBarrier =
    "Process 7: python3 train.py barrier\n"
    "Python v3.11.2 (/usr/bin/python3.11)\n"
    "\n"
    "Thread 7 (idle): \"MainThread\"\n"
    "    barrier (/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:2790)\n"
    "    train (/home/me (old)/train.py:31)\n"
    "    <module> (/home/me (old)/train.py:40)\n"
    "Thread 9 (active): \"Thread-1\"\n"
    "    run (/home/me/other.py:3)\n";

TEST(PythonStack, TheUsersLineIsTheInnermostThatIsNoLibrarys) {
  const PythonStack stack = ReadPythonStack(kInBarrier);
  EXPECT_EQ(stack.line, "train.py:31");
  EXPECT_TRUE(stack.in_torch);
}

TEST(PythonStack, WhoWaitsElsewhereIsNotInTorch) {
  const PythonStack stack = ReadPythonStack(
      "Thread 7 (idle): \"MainThread\"\n"
      "    wait (/usr/lib/python3.11/threading.py:320)\n"
      "    all_reduce (/usr/lib/python3/dist-packages/torch/distributed/c10d.py:1)\n"
      "    <module> (train.py:5)\n");
  EXPECT_FALSE(stack.in_torch);
  EXPECT_EQ(stack.line, "train.py:5");
  EXPECT_FALSE(ReadPythonStack("Thread 7 (idle): \"MainThread\"\n"
                               "    read (/home/me/data.py:3)\n")
                   .in_torch);
}

TEST(PythonStack, OtherThreadsDoNotCount) {
  const PythonStack stack = ReadPythonStack(
      "Thread 8 (idle): \"Thread-1\"\n"
      "    load (/home/me/data.py:3)\n"
      "Thread 7 (idle): \"MainThread\"\n"
      "    <module> (<string>:1)\n");
  EXPECT_EQ(stack.line, "");
  EXPECT_FALSE(stack.in_torch);
  EXPECT_EQ(ReadPythonStack("Error: no such process\n").line, "");
}

// Only a program that has loaded Python's module of threads gives them names.
TEST(PythonStack, TheMainThreadMayHaveNoName) {
  const std::string dump =
      "Process 71: /usr/bin/python3 solver.py\n"
      "Python v3.11.2 (/usr/bin/python3.11)\n"
      "\n"
      "Thread 7 (idle)\n"
      "    load (/home/me/data.py:3)\n"
      "Thread 71 (active)\n"
      "    exchange (/home/me/solver.py:6)\n";
  EXPECT_EQ(ReadPythonStack(dump).line, "solver.py:6");
  EXPECT_EQ(ReadPythonThreads(dump),
            "; thread of Python: exchange at solver.py:6; thread of Python: load at data.py:3");
}

TEST(PythonThreads, TheMainThreadComesFirst) {
  EXPECT_EQ(ReadPythonThreads("Thread 9 (active): \"Thread-1\"\n"
                              "    run (/home/me/other.py:3)\n"
                              "Thread 8 (idle)\n"
                              "    wait (/usr/lib/python3.11/threading.py:320)\n" +
                              std::string(kInBarrier)),
            "; thread MainThread: barrier at distributed_c10d.py:2790 < train at train.py:31 < "
            "<module> at train.py:40"
            "; thread Thread-1: run at other.py:3"
            "; thread of Python: wait at threading.py:320"
            "; thread Thread-1: run at other.py:3");
  EXPECT_EQ(ReadPythonThreads("Error: no such process\n"), "");
}

}  // namespace
}  // namespace lockstep::watch::run::stacks
