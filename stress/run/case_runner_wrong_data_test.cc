// Wrong data that ranks report when they give up, and recoveries from something else.
#include "core/control/records.h"
#include "gtest/gtest.h"
#include "stress/run/testing/recovery_lists.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::run {
namespace {

// Rank 2 gives up in iteration 3, and tells of wrong data of `wrong_iteration`.
std::string Corrupt(std::int64_t wrong_iteration) {
  workloads::ProgramReport wrong{.status = SystemFailed(kClosed), .where = "script"};
  wrong.wrong_data = "element 3";
  wrong.wrong_iteration = wrong_iteration;
  wrong.completed = 3;
  return Conduct(
      kShrink, coordinator::Steps(coordinator::Ranks({Fails(0), Fails(1), verdict::At50(2)}),
                                  Raised(1, "no route", 2), Raised(0, kClosed),
                                  coordinator::When("send 2 abort 0"), Aborted(0, 0), Aborted(1, 0),
                                  coordinator::Ranks({Fails(0), Fails(1), Fails(2)}), Aborted(2, 0),
                                  coordinator::Said(2, kReportMessage, control::Encode(wrong)),
                                  Rebuilt({0, 1, 2}, 1, 0.02),
                                  Over({Done(0), Done(1), Done(2)}, {0, 1, 2})));
}

TEST(CaseRunnerWrongData, ThoseOfAnIterationThatIsNotRepeatedOutliveTheRecovery) {
  const std::string text = Corrupt(1);
  EXPECT_NE(text.find("resumed, lost , members 0,1,2, from 2"), std::string::npos) << text;
  EXPECT_NE(text.find("fail: finished,finished,corrupt"), std::string::npos) << text;
  EXPECT_NE(text.find("data_corruption of 2, proved"), std::string::npos) << text;
}

TEST(CaseRunnerWrongData, ThoseOfAnIterationThatIsRepeatedDoNot) {
  const std::string text = Corrupt(2);
  EXPECT_NE(text.find("resumed, lost , members 0,1,2, from 2"), std::string::npos) << text;
  EXPECT_NE(text.find("pass: finished,finished,finished"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::stress::run
