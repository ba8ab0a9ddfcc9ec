// What will run: a spec expanded into cases, validated, seeded and hashed. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/plan/spec.h"
#include "bench/plan/steps.h"
#include "core/base/status.h"
#include "core/collective/collective.h"

namespace lockstep::bench::plan {

struct PlannedCase {
  std::string
      name;  // unique: "all_reduce/f32/sum/65536", "all_reduce/f32/sum/resnet50/cap:25/bucket:0"
  std::vector<collective::Operation> operations;  // one, or a sequence in launch order; of a step:
                                                  // those whose results are compared
  bool in_place = false;
  std::string model;
  int bucket = -1;  // index in the model's sequence; -1: the whole sequence or no model
  double bucket_cap_mb = 0;
  StepPlan step = {};
  std::vector<PartInfo> parts = {};  // what every iteration tells beside its duration
  std::vector<std::pair<std::string, std::string>> settings = {};  // a step's options, for people
  std::int64_t send_bytes = 0;    // of the buffers that cases share
  std::int64_t recv_bytes = 0;    // likewise
  std::int64_t memory_bytes = 0;  // of each rank, for this case alone, beside the buffers
  bool side_stream = false;       // it communicates on a thread beside the one that computes
  bool host_access = false;       // the host touches what steps keep, not only through ports
  bool rests = false;             // until a second pass asks for it
  // Timed ones of each visit, which has its figure from their mean: they are not alike, only whole
  // visits are. 0: as rounds choose, and a visit has its figure from their median.
  std::uint32_t visit_iterations = 0;
  Visits visits = {};
};

// Bytes of all messages of a case (nccl-tests' "size", summed over the sequence).
std::int64_t BytesOf(const PlannedCase& planned, int world_size);
std::int64_t BytesOf(const std::vector<ddp::TensorInfo>& tensors);

// Where the next operation's data may begin: whole pages, so that operations share no page.
std::int64_t AlignedBytes(std::int64_t bytes);

struct Plan : BenchSpec {
  // Cases are compared: every round visits all that still run, and they stop together.
  bool paired = false;
  std::vector<PlannedModel> models;
  int world_size = 0;
  std::vector<PlannedCase> cases;

  // Bytes that every rank allocates for its send and its receive buffer.
  std::int64_t send_buffer_bytes = 0;
  std::int64_t recv_buffer_bytes = 0;
  std::int64_t memory_bytes = 0;  // what steps take beside them: models, and memory of cases
};

bool CommunicatesOnThreads(const Plan& plan);

// The most cases a plan may have: a typing mistake such as -i 4 -e 1G is refused, not begun.
inline constexpr std::size_t kMaxCases = 20'000;
Status CheckNumberOfCases(const Plan& plan);  // of a sweep

// What the spec says of the measuring, without a case. Errors name the option, its value and the
// remedy.
Result<Plan> PlanWithoutCases(const BenchSpec& spec, int world_size, int fewest_ranks = 2);

// Sets the sizes of the buffers and the memory to what the models and cases need together.
void SizeMemory(Plan& plan);

// Keeps the cases with these indices, in order.
Plan Select(const Plan& plan, const std::vector<std::size_t>& indices);

// Round-trips: PlanFromJson(PlanToJson(plan)) is the same plan.
std::string PlanToJson(const Plan& plan);
Result<Plan> PlanFromJson(const std::string& text);

// FNV-1a of the JSON text: 16 hexadecimal digits. Runs with the same hash measured the same thing.
std::string HashOf(const Plan& plan);

}  // namespace lockstep::bench::plan
