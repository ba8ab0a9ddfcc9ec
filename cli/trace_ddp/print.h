// How `lockstep trace-ddp` shows a trace.
#pragma once

#include <string>

#include "cli/trace_ddp/run.h"

namespace lockstep::cli::trace_ddp {

// The program a trace is of, in the words of its header.
struct TraceTitle {
  std::string name;  // of the scenario
  const ddp::TrainingProgram& program;
  int ranks = 0;
};

// As recordings of PyTorch are written (core/ddp/testdata/collective_traces.txt): a header, a line
// a rank and section, then the first element of every parameter and gradient, to 6 decimals.
std::string GoldenText(const TraceTitle& title, const TracedRanks& ranks);

// A row a collective and a column a rank; rows in which ranks differ are marked with '>'.
std::string TableText(const TraceTitle& title, const TracedRanks& ranks);

// One line.
std::string JsonText(const TraceTitle& title, const TracedRanks& ranks);

// Comma-separated values: the head, and a row a call; of a rank without any, a row that says how it
// ended.
std::string CsvHead();
std::string CsvText(const TraceTitle& title, const TracedRanks& ranks);

}  // namespace lockstep::cli::trace_ddp
