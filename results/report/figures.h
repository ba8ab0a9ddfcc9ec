// Single figures as text, the same in every report; "-" for what is not a number.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// The unit of a column of times.
struct TimeUnit {
  std::string name;  // "us"
  double ns = 1e3;
};
// By the least median of a case: s from 1 s on, ms from 0.1 ms on, else us.
TimeUnit TimeUnitOf(const store::Run& run);
// Digits as FormatFigure gives them. "0.270", "5.22", "36100"; "-" for none.
std::string TimeText(double ns, const TimeUnit& unit);
std::string MedianText(const store::Summary& summary, const TimeUnit& unit);
// "0.008", "1.23", "12.3", "123"; "-" for none.
std::string BandwidthText(double gbps, double half_width = kNoHalfWidth);
std::string AlgorithmBandwidthText(const store::Summary& summary);
std::string BusBandwidthText(const store::Summary& summary);
std::string PercentText(double percent);  // "87", "4.2", "14000"
std::string LimitText(const store::Summary& summary);
// The median: "12.3" of a time in `unit`, "0.87" for a ratio, "1200 1/s" for other units.
std::string PartText(const store::Part& part, const TimeUnit& unit);
// Half the 95 % confidence interval of the rounds, its longer side, in percent of the median; of
// older files, which hold no other, that with the machine's drift.
std::string PrecisionText(const store::Summary& summary);
// … of the percentage of the limit.
std::string LimitPrecisionText(const store::Summary& summary);
// "64", or "64-298" where it varied between the rounds.
std::string LineText(const store::Summary& summary);
// Wrong elements; "-" when nothing was compared.
std::string WrongText(const store::Summary& summary);
// "f32", "f32 f16" when the operations differ, "-" without data.
std::string TypeText(const store::CaseRecord& record);
// Of a fact of the environment or a setting of a case; "" when there is none of that name.
std::string ValueOf(const std::vector<std::pair<std::string, std::string>>& values,
                    std::string_view name);
// "rank 1", "ranks 0, 3", "no rank".
std::string RanksText(const std::vector<int>& ranks);

}  // namespace lockstep::results::report
