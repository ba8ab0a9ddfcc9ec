// Literal judgements of dumps and literal testimonies, and the one judgement that both make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ras/witness.h"

namespace lockstep::ras {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using verdict::Cause;
using verdict::Finding;
using verdict::Judgement;
using verdict::Verdict;

Finding Named(Cause cause, std::vector<int> ranks, bool proved, const std::string& message) {
  Finding finding;
  finding.cause = cause;
  finding.culprits = std::move(ranks);
  finding.proved = proved;
  finding.message = message;
  finding.headline = verdict::Headline(message);
  return finding;
}

Testimony Suspects(int rank) {
  return {Verdict::kUnknown,
          {Named(Cause::kRankBusy, {rank}, false, "a rank launched 411, 2 ranks 412")},
          ""};
}

// "rank_busy, suspected: what", in the order of the judgement.
std::vector<std::string> Said(const Judgement& judgement) {
  std::vector<std::string> said;
  for (const Finding& finding : judgement.findings) {
    said.push_back(std::string(finding.cause.name()) +
                   (finding.proved ? ", proved: " : ", suspected: ") + finding.headline.text());
  }
  return said;
}

class JoinTest : public testing::Test {
 protected:
  void Hear(const Testimony& testimony, bool ranks_are_alike = true) {
    Join(testimony, ranks_are_alike, judgement_, notes_);
  }
  Judgement judgement_{Verdict::kFail, {}, {}};
  std::vector<std::string> notes_;
};

TEST_F(JoinTest, AProofStandsAndRasAgreesOrSuspectsBesides) {
  judgement_.findings = {Named(Cause::kCollectiveMismatch, {1}, true, "rank 1 calls barrier")};
  Hear(Suspects(1));
  Hear(Suspects(2));
  EXPECT_EQ(judgement_.verdict, Verdict::kFail);
  EXPECT_THAT(Said(judgement_), ElementsAre("collective_mismatch, proved: rank 1 calls barrier"));
  EXPECT_THAT(notes_, ElementsAre("NCCL's RAS suspects the same: a rank launched 411, 2 ranks 412",
                                  "NCCL's RAS suspects besides: a rank launched 411, 2 ranks 412"));
}

TEST_F(JoinTest, RasMakesNoSuspicionAProof) {
  judgement_.findings = {Named(Cause::kRankBusy, {2}, false, "rank 2 did not come")};
  Hear(Suspects(2));
  EXPECT_THAT(Said(judgement_), ElementsAre("rank_busy, suspected: rank 2 did not come"));
}

TEST_F(JoinTest, AJobThatGoesOnRefutesNoDump) {
  judgement_.findings = {Named(Cause::kRankBusy, {2}, false, "rank 2 did not come")};
  Hear({Verdict::kPass, {}, "NCCL goes on"});
  EXPECT_EQ(judgement_.verdict, Verdict::kFail);
  EXPECT_THAT(notes_, ElementsAre("NCCL's RAS: NCCL goes on"));
}

TEST_F(JoinTest, WhereTheDumpsBlameNobodyRasIsFirst) {
  judgement_.verdict = Verdict::kUnknown;
  judgement_.findings = {Named(Cause::kUnknown, {2}, false, "rank 2 has no dump")};
  Hear(Suspects(2));
  EXPECT_EQ(judgement_.verdict, Verdict::kUnknown) << "never by RAS alone";
  EXPECT_THAT(Said(judgement_),
              ElementsAre("rank_busy, suspected: a rank launched 411, 2 ranks 412",
                          "unknown, suspected: rank 2 has no dump"));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(JoinTest, AllIsWellOnlyIfRasSuspectsNobody) {
  judgement_.verdict = Verdict::kPass;
  Hear({Verdict::kUnknown, {}, "all ranks launched the same"});
  EXPECT_EQ(judgement_.verdict, Verdict::kPass);
  EXPECT_THAT(notes_, ElementsAre("NCCL's RAS: all ranks launched the same"));
  Hear(Suspects(1));
  EXPECT_EQ(judgement_.verdict, Verdict::kUnknown);
}

TEST_F(JoinTest, RanksOfOtherNumbersAreNotCompared) {
  judgement_.findings = {Named(Cause::kRankBusy, {1}, false, "rank 1 did not come")};
  Hear(Suspects(1), /*ranks_are_alike=*/false);
  EXPECT_THAT(notes_, ElementsAre("NCCL's RAS suspects besides: a rank launched 411, 2 ranks 412"));
  judgement_ = {Verdict::kUnknown, {}, {}};
  Hear(Suspects(1), /*ranks_are_alike=*/false);
  EXPECT_THAT(judgement_.findings.front().culprits, IsEmpty());
  EXPECT_THAT(Said(judgement_),
              ElementsAre("rank_busy, suspected: NCCL's RAS, which numbers ranks by communicator: "
                          "a rank launched 411, 2 ranks 412"));
}

}  // namespace
}  // namespace lockstep::ras
