// From a measurement to the run that is stored and shown. Pure but for reading the machine's facts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/measure/measurement.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "results/store/run.h"

namespace lockstep::bench::measure {

// A run that begins now: identity and plan, nothing measured.
results::store::Run NewRun(const std::string& name, const plan::Plan& plan);

// What the plan says of a case; nothing measured.
results::store::CaseRecord RecordOf(const plan::Plan& plan, std::size_t index, int repetition);

// One record a case and repetition, with verdicts: fail for wrong data or an interruption it was
// in, unknown when it was not measured, else pass. `floors`: as Summarize takes them.
std::vector<results::store::CaseRecord> CaseRecords(const plan::Plan& plan, const SampleBook& book,
                                                    const std::vector<floors::HostFloors>& floors,
                                                    const Measurement& measurement);

// The same, where the figures are not of all ranks.
using Summarizer = std::function<results::store::Summary(
    const CaseBook& rows, std::size_t case_index, const std::string& stopped_by)>;
std::vector<results::store::CaseRecord> CaseRecordsBy(const Summarizer& summarize,
                                                      const plan::Plan& plan,
                                                      const SampleBook& book,
                                                      const Measurement& measurement);

// The launch's judgement: the worst outcome of each rank, all findings, the worst verdict.
verdict::Judgement LaunchJudgement(const std::vector<results::store::CaseRecord>& cases,
                                   const Measurement& measurement, int ranks);

// "no wrong element" where any was compared: without checks (-c 0), or data (a barrier), none was.
std::string_view ElementsText(const results::store::Run& run);

// What a person reads first, after the verdict: what is wrong, with whom, what to do; or that all
// is well, and how precisely it is known.
std::string SummaryLine(const results::store::Run& run, const plan::Plan& plan);

}  // namespace lockstep::bench::measure
