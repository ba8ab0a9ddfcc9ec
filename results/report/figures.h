// Single figures as text, the same in every report; "-" for what is not a number.
#ifndef LOCKSTEP_RESULTS_REPORT_FIGURES_H_
#define LOCKSTEP_RESULTS_REPORT_FIGURES_H_

#include <string>

#include "results/store/run.h"

namespace lockstep::results::report {

std::string DurationText(double ns);      // "12.3 us"
std::string BandwidthText(double gbps);   // "0.008", "1.23", "12.3", "123"; "-" for none
std::string PercentText(double percent);  // "87", "4.2"
// "12.3 us", "0.87" for a ratio, "1.2e+03 1/s" for other units.
std::string PartText(double value, const std::string& units);
// Half the 95 % confidence interval in percent of the median.
std::string PrecisionText(const store::Summary& summary);
// "f32", "f32 f16" when the operations differ, "-" without data.
std::string TypeText(const store::CaseRecord& record);
// One line: control characters become spaces.
std::string OneLine(std::string text);
// "rank 1", "ranks 0, 3", "no rank".
std::string RanksText(const std::vector<int>& ranks);

}  // namespace lockstep::results::report

#endif  // LOCKSTEP_RESULTS_REPORT_FIGURES_H_
