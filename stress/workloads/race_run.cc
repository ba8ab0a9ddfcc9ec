// A kernel and a collective on two streams, with one wait forgotten. Stamps of both tell whether
// the accesses overlapped, a comparison whether the data are wrong.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/collective/pattern.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

constexpr std::int64_t kWorkBytes = 64 * 1024;

// Two streams, as in training: kernels on the one, collectives on the other. Only the ports are
// known, so buffers are read and written by kernels. What races works on the device's memory alone:
// a copy from the host's may wait for its stream first (CUDA's does), and then nothing races.
class RaceRun {
 public:
  RaceRun(const scenario::StreamRaceProgram& program, std::uint64_t seed, const RankPorts& ports)
      : program_(program),
        seed_(seed),
        ports_(ports),
        operation_({.collective = collective::Collective::kAllReduce, .count = program.count}),
        pattern_(seed, operation_, ports.world.size()) {}

  RankReport Run() {
    report_.where = "stream_race";
    report_.status = RunAll();
    Conclude();
    return report_;
  }

 private:
  Status RunAll() {
    LOCKSTEP_RETURN_IF_ERROR(Allocate());
    for (std::int64_t round = 0; round < program_.rounds; ++round) {
      LOCKSTEP_RETURN_IF_ERROR(RunRound(round));
    }
    return OkStatus();
  }

  Status Allocate() {
    ports_.recorded.EnterPhase(journal::Phase::kAllocate);
    if (!ports_.streams_call) {
      return Unsupported(
          "stream_race needs a stream for collectives, and {} is called by one thread only here; "
          "use "
          "--backend=gloo or sim",
          ports_.world.capabilities().backend);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(input_, ports_.device.Allocate(bytes()));
    LOCKSTEP_ASSIGN_OR_RETURN(output_, ports_.device.Allocate(bytes()));
    LOCKSTEP_ASSIGN_OR_RETURN(work_, ports_.device.Allocate(kWorkBytes));
    for (std::vector<float>* values : {&values_, &next_, &poison_, &result_}) {
      values->resize(static_cast<std::size_t>(program_.count));
    }
    pattern_.Poison(poison_.data(), 0, program_.count);
    for (std::unique_ptr<device::Buffer>* buffer :
         {&device_values_, &device_next_, &device_poison_, &device_result_}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*buffer, ports_.device.Allocate(bytes()));
    }
    kernels_ = ports_.device.NewStream();
    collectives_ = ports_.device.NewStream();
    Upload(poison_, *input_);
    Upload(poison_, *device_poison_);
    return Synchronize(*kernels_);
  }

  Status RunRound(std::int64_t round) {
    report_.iteration = round;
    LOCKSTEP_RETURN_IF_ERROR(ports_.gate.Reach(faults::FaultMoment::Kind::kIteration, round));
    LOCKSTEP_RETURN_IF_ERROR(Prepare(round));
    ports_.recorded.EnterPhase(journal::Phase::kMeasure);
    ports_.recorded.AnnotateNext({journal::Purpose::kStep, 0, static_cast<std::int32_t>(round)});
    const double begun = ports_.body.SecondsSinceStart();
    LOCKSTEP_RETURN_IF_ERROR(reads_early() ? KernelThenCollective() : CollectiveThenKernel());
    LOCKSTEP_RETURN_IF_ERROR(ports_.body.Sleep(static_cast<std::int64_t>(program_.host_us * 1e3)));
    LOCKSTEP_RETURN_IF_ERROR(Synchronize(*kernels_));
    LOCKSTEP_RETURN_IF_ERROR(ports_.world.Await(*collectives_, Forever()));
    seconds_.push_back(ports_.body.SecondsSinceStart() - begun);
    return Check(round);
  }

  // What a round starts from: an output that holds nothing right, and, where the mistake comes
  // after the collective, a right input.
  Status Prepare(std::int64_t round) {
    const auto stamp = static_cast<std::uint64_t>(round);
    pattern_.FillSend(values_.data(), 0, program_.count, ports_.world.rank(), stamp);
    pattern_.FillSend(next_.data(), 0, program_.count, ports_.world.rank(), stamp + 1);
    Upload(values_, *device_values_);
    Upload(next_, *device_next_);
    Upload(poison_, *output_);
    if (!reads_early()) Upload(values_, *input_);
    LOCKSTEP_RETURN_IF_ERROR(Synchronize(*kernels_));
    Random random(Mix64(seed_) + stamp);
    work_ns_ = program_.work_us * 1e3 * (0.5 + static_cast<double>(random.Below(1000)) / 1000);
    first_ends_ = ports_.device.NewEvent();
    second_begins_ = ports_.device.NewEvent();
    ready_ = ports_.device.NewEvent();
    return OkStatus();
  }

  Status KernelThenCollective() {
    const bool too_early = program_.pattern == scenario::RacePattern::kEventBeforeWork &&
                           program_.guard == scenario::RaceGuard::kNone;
    if (too_early) kernels_->Record(*ready_);
    LOCKSTEP_RETURN_IF_ERROR(Write(*device_values_, work_ns_));
    if (too_early) collectives_->WaitFor(*ready_);
    LOCKSTEP_RETURN_IF_ERROR(Guard(*kernels_, *collectives_));
    collectives_->Record(*second_begins_);
    return Reduce(0);
  }

  Status CollectiveThenKernel() {
    LOCKSTEP_RETURN_IF_ERROR(Reduce(work_ns_));
    LOCKSTEP_RETURN_IF_ERROR(Guard(*collectives_, *kernels_));
    kernels_->Record(*second_begins_);
    if (program_.pattern == scenario::RacePattern::kMissingWaitAfter) {
      Apply(output_->data(), device_result_->data());
      return Launched(*kernels_);
    }
    // A freed block belongs to its stream's next tensor at once; poison stands for what that holds.
    const bool freed = program_.pattern == scenario::RacePattern::kFreeWhileInUse;
    return Write(freed ? *device_poison_ : *device_next_, 0);
  }

  Status Check(std::int64_t round) {
    if (first_ends_->ReachedAt() > second_begins_->ReachedAt()) ++overlapped_;
    const bool read_before = program_.pattern == scenario::RacePattern::kMissingWaitAfter;
    device::Buffer& result = read_before ? *device_result_ : *output_;
    ports_.kernels.Copy(*kernels_, result_.data(), result.data(), bytes());
    LOCKSTEP_RETURN_IF_ERROR(Synchronize(*kernels_));
    if (!ports_.world.capabilities().moves_data) return OkStatus();
    collective::CheckReport found;
    pattern_.CheckRecv(result_.data(), 0, program_.count, ports_.world.rank(),
                       static_cast<std::uint64_t>(round), found);
    report_.checked += found.checked;
    if (found.wrong == 0) return OkStatus();
    if (++corrupt_ > 1) return OkStatus();
    const collective::WrongElement& first = found.first.front();
    first_wrong_ = fmt::format(
        "first in round {}, where {} of {} elements are wrong, element {} is {} instead of {}",
        round, found.wrong, found.checked, first.element, first.got, first.expected);
    report_.figures["first_round"] = static_cast<double>(round);
    report_.figures["first_element"] = static_cast<double>(first.element);
    report_.figures["first_wrong_elements"] = static_cast<double>(found.wrong);
    return OkStatus();
  }

  void Conclude() {
    Figures& figures = report_.figures;
    figures["rounds"] = static_cast<double>(seconds_.size());
    figures["corrupt_rounds"] = static_cast<double>(corrupt_);
    figures["overlapped_rounds"] = static_cast<double>(overlapped_);
    if (!seconds_.empty()) {
      const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
      std::nth_element(seconds_.begin(), middle, seconds_.end());
      figures["round_us"] = *middle * 1e6;
    }
    if (corrupt_ == 0) return;
    report_.wrong_data = fmt::format(
        "{} with guard {}: {} of {} rounds are corrupt; {}", scenario::NameOf(program_.pattern),
        scenario::NameOf(program_.guard), corrupt_, program_.rounds, first_wrong_);
    // On this rank; a round may be corrupt by the race of another one.
    if (overlapped_ == 0) return;
    const char* const collective_first = "the collective began before the kernel was done";
    const char* const kernel_first = "the kernel began before the collective was done";
    report_.wrong_data += fmt::format("; in {} rounds {} here", overlapped_,
                                      reads_early() ? collective_first : kernel_first);
  }

  // The kernel takes its time before it writes.
  Status Write(device::Buffer& values, double work_ns) {
    if (work_ns > 0) ports_.kernels.Compute(*kernels_, work_ns, work_->data(), kWorkBytes);
    Apply(values.data(), input_->data());
    if (reads_early()) kernels_->Record(*first_ends_);
    return Launched(*kernels_);
  }

  // The custom kernel itself: an exact copy.
  void Apply(const void* from, void* to) {
    ports_.kernels.Scale(*kernels_, collective::DataType::kF32, to, from, program_.count, 1.0);
  }
  void Upload(const std::vector<float>& from, device::Buffer& to) {
    ports_.kernels.Copy(*kernels_, to.data(), from.data(), bytes());
  }

  // The delay is what is in front of it on the stream: other buckets.
  Status Reduce(double delay_ns) {
    if (delay_ns > 0) ports_.kernels.Compute(*collectives_, delay_ns, work_->data(), kWorkBytes);
    LOCKSTEP_RETURN_IF_ERROR(
        ports_.world.Enqueue(operation_, {input_->data(), output_->data()}, *collectives_));
    if (!reads_early()) collectives_->Record(*first_ends_);
    return Launched(*collectives_);
  }

  // Between what is on the first stream and what comes next on the second.
  Status Guard(device::Stream& first, device::Stream& second) {
    switch (program_.guard) {
      case scenario::RaceGuard::kNone:
      case scenario::RaceGuard::kLaunchBlocking:
        return OkStatus();
      case scenario::RaceGuard::kEvent:
        first.Record(*ready_);
        second.WaitFor(*ready_);
        return OkStatus();
      case scenario::RaceGuard::kStreamSync:
        return Synchronize(first);
      case scenario::RaceGuard::kDeviceSync:
        LOCKSTEP_RETURN_IF_ERROR(Synchronize(*kernels_));
        return Synchronize(*collectives_);
    }
    return OkStatus();
  }

  // Of a launch: with CUDA_LAUNCH_BLOCKING=1 the host waits for it.
  Status Launched(device::Stream& stream) {
    return program_.guard == scenario::RaceGuard::kLaunchBlocking ? Synchronize(stream)
                                                                  : OkStatus();
  }
  Status Synchronize(device::Stream& stream) { return stream.Synchronize(Forever()); }
  std::int64_t bytes() const { return program_.count * collective::SizeOf(operation_.type); }
  bool reads_early() const {
    return program_.pattern == scenario::RacePattern::kMissingWaitBefore ||
           program_.pattern == scenario::RacePattern::kEventBeforeWork;
  }

  const scenario::StreamRaceProgram& program_;
  const std::uint64_t seed_;
  const RankPorts ports_;
  const collective::Operation operation_;
  const collective::Pattern pattern_;
  RankReport report_;
  std::vector<float> values_, next_, poison_, result_;  // of the host, beside those of the device
  std::unique_ptr<device::Buffer> device_values_, device_next_, device_poison_, device_result_;
  double work_ns_ = 0;  // of this round
  std::vector<double> seconds_;
  std::int64_t corrupt_ = 0;
  std::int64_t overlapped_ = 0;
  std::string first_wrong_;
  std::unique_ptr<device::Buffer> input_, output_, work_;
  // What must be over, what must not have begun before, and what a guard waits for.
  std::unique_ptr<device::Event> first_ends_, second_begins_, ready_;
  std::unique_ptr<device::Stream> kernels_, collectives_;
};

}  // namespace

RankReport Run(const scenario::StreamRaceProgram& program, std::uint64_t seed,
               const RankPorts& ports) {
  const auto run = std::make_shared<RaceRun>(program, seed, ports);
  RankReport report = run->Run();
  // Streams that are still at it keep what they work on; a simulation unwinds them here.
  if (!report.status.ok() && !ports.virtual_time) report.kept = run;
  return report;
}

}  // namespace lockstep::stress::workloads
