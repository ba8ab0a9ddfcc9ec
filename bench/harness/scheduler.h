// The coordinator's side of a measurement: starts workers, orders rounds, and when a rank dies,
// stops or falls silent, has it judged, ends the lifetime and goes on with the other cases.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/harness/round_silence.h"
#include "bench/measure/countdown.h"
#include "bench/measure/measurement.h"
#include "bench/measure/rounds.h"
#include "bench/measure/sample_book.h"
#include "bench/measure/stalls.h"
#include "bench/plan/plan.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/standstill_watch.h"
#include "core/verdict/judge.h"
#include "results/store/save_pace.h"
#include "session/progress_line.h"

namespace lockstep::bench::harness {

class Scheduler {
 public:
  Scheduler(coordinator::Coordinator& coordinator, const coordinator::CoordinatorOptions& options,
            const plan::Plan& plan, measure::SampleBook& book, session::ProgressLine& progress);

  // Runs the plan `repetitions` times, each within the time budget, until every case has stopped.
  // The error is one of the environment or of input that no judgement explains (the backend is not
  // there, no memory); what happened to ranks is data in the measurement.
  Result<measure::Measurement> Run(int repetitions);

  // Asked when a repetition was measured without an interruption: cases that rested so far and are
  // to be measured now, within a time budget of their own.
  using SecondPass = std::function<std::vector<std::size_t>(int repetition)>;
  void SetSecondPass(SecondPass second_pass) { second_pass_ = std::move(second_pass); }

  // Called before anything is saved: when the ranks are ready to measure, or must end before that.
  void SetBegun(std::function<void()> begun) { begun_ = std::move(begun); }

  // Called when the book holds every sample that was taken so far, before anything is judged or
  // ended: there may be a second left until all of us are killed.
  using Save = std::function<void(const measure::Measurement& so_far)>;
  // Tells how the machine is, before each order of rounds.
  void SetReference(std::function<floors::Crossing()> reference) {
    reference_ = std::move(reference);
  }
  void SetSave(Save save) { save_ = std::move(save); }

 private:
  enum class Step { kDone, kInterrupted, kTerminated };

  Status RunRepetition();
  Step StartLifetime();
  Step RunRounds();
  Step Finish();
  // Waits until every rank has sent a message of this type.
  Step AwaitAll(measure::MessageType type, double seconds);
  // Handles one event; nothing when it changes nothing.
  std::optional<Step> Handle(const coordinator::Event& event);
  bool KeepError(const coordinator::Event& event);  // whether the message is one
  static std::optional<Step> InterruptedIf(bool so);
  void Interrupt();
  void OnTerminated();
  void LookAtMachine();
  void TellProgress();
  // A rank was stopped or continued: whoever waits for the run should know at once.
  void TellOfStop(const coordinator::Event& event);
  // `even_none`: also before there are any, so that the file says what the run was to be.
  void SaveSamples(bool even_none = false);
  void SaveIfWarned();
  bool ToldToEndInGrace();
  bool IsFirstLoss() const { return measurement_.interruptions.size() == 1 && book_.empty(); }
  void KeepHistory();
  // Tells a successor of a repetition that is over: where it ends, and what its data were like.
  void NoteEnd();
  // Keeps what this lifetime left, and ends what still runs of it.
  void EndLifetime();

  coordinator::Coordinator& coordinator_;
  const bool one_lifetime_;  // the workers use up the launch's MPI identity
  const plan::Plan& plan_;
  measure::SampleBook& book_;
  session::ProgressLine& progress_;
  measure::Rounds rounds_;
  coordinator::StandstillWatch watch_;
  RoundSilence silence_;
  measure::StallWatch stalls_;
  SecondPass second_pass_;
  std::function<void()> begun_;
  std::function<floors::Crossing()> reference_;
  Save save_;
  std::optional<Deadline> warned_until_;  // until then the launcher may kill us without a word
  results::store::SavePace save_pace_{
      0.01};  // also without a warning: on a busy machine it comes too late
  measure::Measurement measurement_;
  measure::Countdown countdown_;       // of the repetition
  std::optional<std::size_t> newest_;  // the case that was visited last
  int repetition_ = 0;
  std::int64_t began_ns_ = 0;  // the repetition
  bool alive_ = false;         // a lifetime runs
  bool measured_ = false;      // this lifetime has completed a round or lost a case
  int fruitless_ = 0;          // lifetimes one after the other that completed no round
  // What workers of this lifetime reported, by rank, or why there are none.
  std::map<int, Status> errors_;
};

}  // namespace lockstep::bench::harness
