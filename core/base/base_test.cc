// Tests of the small things that every room uses: status, units, clocks, deadlines, random numbers,
// nearest names. Clocks are compared with each other by order and never with a time that may pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/nearest.h"
#include "core/base/now.h"
#include "core/base/program.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/base/units.h"

namespace lockstep {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidInput("odd");
  return x / 2;
}

Status UseHalf(int x, int& out) {
  LOCKSTEP_ASSIGN_OR_RETURN(out, Half(x));
  return OkStatus();
}

TEST(StatusTest, CarriesValueOrReason) {
  int out = 0;
  EXPECT_TRUE(UseHalf(8, out).ok());
  EXPECT_EQ(out, 4);
  const Status bad = UseHalf(7, out);
  EXPECT_EQ(bad.message(), "odd");
  EXPECT_EQ(ExitCodeOf(bad.code()), ExitCode::kUsage);
}

TEST(CheckDeathTest, EndsWithTheInternalCode) {
  EXPECT_EXIT(LOCKSTEP_CHECK(1 == 2, "sums"), testing::ExitedWithCode(10), "CHECK failed: 1 == 2");
}

TEST(UnitsTest, ParsesSizes) {
  EXPECT_EQ(ParseBytes("-b", "8").value(), 8);
  EXPECT_EQ(ParseBytes("-b", "64K").value(), 65536);
  EXPECT_EQ(ParseBytes("-b", "64KiB").value(), 65536);
  EXPECT_EQ(ParseBytes("-b", "1.5g").value(), 1610612736);
  for (const char* bad : {"", "x", "8Q", "-8", "0.3", "8 K", "99999999T", "nan", "8KB8"}) {
    const auto result = ParseBytes("-b", bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_NE(result.status().message().find("-b"), std::string::npos);
  }
}

TEST(UnitsTest, ParsesDurations) {
  EXPECT_DOUBLE_EQ(ParseSeconds("-T", "20").value(), 20);
  EXPECT_DOUBLE_EQ(ParseSeconds("-T", "250ms").value(), 0.25);
  EXPECT_DOUBLE_EQ(ParseSeconds("-T", "2m").value(), 120);
  EXPECT_FALSE(ParseSeconds("-T", "soon").ok());
  EXPECT_FALSE(ParseSeconds("-T", "3000000h").ok());  // more nanoseconds than 64 bits hold
  EXPECT_FALSE(ParseSeconds("-T", "-1").ok());
}

TEST(UnitsTest, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(8), "8 B");
  EXPECT_EQ(FormatBytes(26214400), "25 MiB");
  EXPECT_EQ(FormatBytes(102228128), "97.5 MiB");
  EXPECT_EQ(FormatDuration(712.4), "712 ns");
  EXPECT_EQ(FormatDuration(4560000), "4.56 ms");
  EXPECT_EQ(FormatDuration(49000), "49 us");
  EXPECT_EQ(FormatDuration(-5040), "-5.04 us");
  EXPECT_EQ(FormatDuration(999'600), "1 ms");
  EXPECT_EQ(FormatDuration(1234e9), "1230 s");
  EXPECT_EQ(FormatDuration(std::nan("")), "-");
  EXPECT_EQ(FormatDuration(25948300, 2413192), "25.9 ms");
  EXPECT_EQ(FormatDuration(800, 16), "800 ns");
  EXPECT_EQ(FormatDuration(4002000, 41000), "4.00 ms");
}

// The rows that Python's twin is tested with, too.
TEST(UnitsTest, AFigureHasTheDigitsOfItsInterval) {
  std::ifstream file("core/base/testdata/figures.txt");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string value, half_width, text;
    words >> value >> half_width >> text;
    EXPECT_EQ(FormatFigure(std::stod(value), std::stod(half_width)), text) << line;
    ++rows;
  }
  EXPECT_GE(rows, 20);
}

TEST(UnitsTest, AFigureCanHaveALeastStep) {
  EXPECT_EQ(FormatFigure(0.826, HalfWidthOfStep(0.01)), "0.83");
  EXPECT_EQ(FormatFigure(4.24, HalfWidthOfStep(0.1)), "4.2");
  EXPECT_EQ(FormatFigure(87.4, HalfWidthOfStep(1)), "87");
}

TEST(UnitsTest, ChangesHaveASign) {
  EXPECT_EQ(FormatChange(5.14, 4), "+5");
  EXPECT_EQ(FormatChange(-20.04, 0.3), "-20.0");
  EXPECT_EQ(FormatChange(-0.04, 3), "+0");
  EXPECT_EQ(FormatChange(std::nan("")), "-");
}

TEST(UnitsTest, AnIntervalHasTheDigitsOfItsFigure) {
  EXPECT_EQ(FormatInterval(0.9681, 1.0004, " .. "), "0.968 .. 1.000");
  EXPECT_EQ(FormatInterval(3.21, 7.04), "3.2 to 7.0");
  EXPECT_EQ(FormatInterval(1.2, 1.2), "1.20 to 1.20");
  EXPECT_EQ(FormatInterval(0.133, 11.555), "0.1 to 12");
}

TEST(ClockTest, TicksFollowTheMonotonicClock) {
  const TickScale scale = CalibrateTicks(5);
  // Each stamp lies between two of the other clock, however long this thread is without a
  // processor.
  const std::int64_t before_first = MonotonicNs();
  const Ticks first = NowTicks();
  const std::int64_t after_first = MonotonicNs();
  while (MonotonicNs() < after_first + 20'000'000) {
  }
  const std::int64_t before_last = MonotonicNs();
  const Ticks last = NowTicks();
  const std::int64_t after_last = MonotonicNs();
  const double measured = scale.DurationNs(first, last);
  // The raw clock, which the ticks were measured against, is not steered: 500 ppm at most.
  const double error = scale.relative_error + 0.001;
  EXPECT_GE(measured, static_cast<double>(before_last - after_first) * (1 - error));
  EXPECT_LE(measured, static_cast<double>(after_last - before_first) * (1 + error));
}

TEST(NearestTest, FindsWhatWasMeantOrNothing) {
  const std::vector<std::string_view> names = {"inputs", "epochs", "join"};
  EXPECT_EQ(NearestName("inptus", names), "inputs");
  EXPECT_EQ(NearestHint("epoch", names), "did you mean 'epochs'? ");
  EXPECT_EQ(NearestHint("model", names), "");
  EXPECT_EQ(NearestName("join", {}), "");
}

TEST(DeadlineTest, PassesOnce) {
  const Deadline soon = Deadline::AfterNs(1);
  EXPECT_FALSE(Deadline::AfterSeconds(10).Passed());
  while (!soon.Passed()) {
  }
  EXPECT_EQ(soon.RemainingMs(), 0);
}

TEST(VirtualTimeTest, TicksAndDeadlinesOfThisThreadGoByIt) {
  const Ticks real = NowTicks();
  std::int64_t now_ns = 5;
  {
    const VirtualTime time(&now_ns);
    const Deadline deadline = Deadline::AfterNs(10);
    EXPECT_EQ(NowTicks(), 5u);
    EXPECT_EQ(deadline.RemainingNs(), 10);
    now_ns = 15;
    EXPECT_TRUE(deadline.Passed());
    EXPECT_EQ(NowNs(), 15);
    EXPECT_EQ(CalibrateTicks().ToNs(25), 10);
    SleepNs(999'999'999);
    EXPECT_EQ(NowTicks(), 15u);
  }
  EXPECT_GT(NowTicks(), real);
}

TEST(RandomTest, SameSeedSameNumbersAndFairShuffle) {
  Random a(7), b(7), c(8);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
  std::vector<int> first_place(6, 0);
  Random random(1);
  for (int trial = 0; trial < 6000; ++trial) {
    std::vector<int> items(6);
    std::iota(items.begin(), items.end(), 0);
    random.Shuffle(items);
    ++first_place[static_cast<std::size_t>(items[0])];
  }
  EXPECT_GT(*std::min_element(first_place.begin(), first_place.end()), 850);
  EXPECT_LT(*std::max_element(first_place.begin(), first_place.end()), 1150);
}

TEST(Program, ErrorsAreOneLineAndTheirKindIsTheExitCode) {
  const auto run = [](const std::function<Result<ExitCode>()>& work) {
    testing::internal::CaptureStderr();
    const int code = RunProgram("program", work);
    return std::to_string(code) + " " + testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(run([] { return ExitCode::kInconclusive; }), "3 ");
  EXPECT_EQ(run([] { return InvalidInput("'a\nb': no option\n"); }),
            "2 program: 'a\\nb': no option\n");
  EXPECT_EQ(run([]() -> Result<ExitCode> { throw std::runtime_error("no map"); }),
            "10 program: internal error: no map\n");
}

}  // namespace
}  // namespace lockstep
