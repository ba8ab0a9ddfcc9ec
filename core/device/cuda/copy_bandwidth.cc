// What this room's kernels reach of the device's own copy: a program to be run where there is a
// GPU.
//
//   copy_bandwidth [MEDIAN_NS BYTES]
//
// Prints a line each: bytes read and written in a second, their share of what cudaMemcpy from
// device to device reaches, and whether a copying kernel reaches 90 % of it. With two numbers also
// what a single-rank all-reduce of BYTES that took MEDIAN_NS (bench_allreduce measures it) makes of
// it. Exit codes: 0 all pass, 1 one is slower, 2 usage, 4 no CUDA device.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>

#include "core/base/program.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/native_stream.h"
#include "fmt/format.h"

namespace lockstep::device::cuda {
namespace {

constexpr std::int64_t kBytes = 1 << 30;
constexpr int kPasses = 10;
constexpr int kRounds = 5;
constexpr double kEnough = 0.9;

struct Bench {
  Device& device;
  Kernels& kernels;
  Stream& stream;
  void* to;
  void* from;
};

Status RecordOn(Stream& stream, cudaEvent_t event) {
  return dynamic_cast<NativeStream&>(stream).LaunchOn([event](void* handle) {
    const cudaError_t error = cudaEventRecord(event, static_cast<cudaStream_t>(handle));
    return error == cudaSuccess ? OkStatus() : SystemFailed(cudaGetErrorString(error));
  });
}

// GB/s of the best round: a clock that was raised late, or somebody else, is in the others.
Result<double> Rate(const Bench& bench, std::int64_t moved_bytes,
                    const std::function<void()>& enqueue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  double best_gbps = 0;
  Status status;
  for (int round = 0; round <= kRounds && status.ok(); ++round) {  // the first one warms up
    status = RecordOn(bench.stream, begin);
    for (int pass = 0; pass < kPasses; ++pass) enqueue();
    if (status.ok()) status = RecordOn(bench.stream, end);
    if (status.ok()) status = bench.stream.Synchronize(Deadline::AfterSeconds(60));
    float ms = 0;
    if (!status.ok() || cudaEventElapsedTime(&ms, begin, end) != cudaSuccess || round == 0)
      continue;
    best_gbps = std::max(best_gbps, static_cast<double>(moved_bytes) * kPasses / (ms * 1e6));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  LOCKSTEP_RETURN_IF_ERROR(status);
  return best_gbps;
}

// Prints a line. False: it is to copy, and is too slow.
bool Report(const char* name, double gbps, double reference_gbps, bool copies) {
  const double share = gbps / reference_gbps;
  const bool passes = share >= kEnough;
  fmt::print("{:<34} {:>9} GB/s {:>6.1f} %  {}\n", name, FormatFigure(gbps), 100 * share,
             !copies  ? "observed"
             : passes ? "pass"
                      : "FAIL: less than 90 %");
  return passes || !copies;
}

Result<bool> Measure(const Bench& bench, double all_reduce_gbps) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const double reference, Rate(bench, 2 * kBytes, [&] {
        static_cast<void>(dynamic_cast<NativeStream&>(bench.stream).LaunchOn([&](void* handle) {
          static_cast<void>(cudaMemcpyAsync(bench.to, bench.from, kBytes, cudaMemcpyDeviceToDevice,
                                            static_cast<cudaStream_t>(handle)));
          return OkStatus();
        }));
      }));
  if (!(reference > 0)) return SystemFailed("cuda: cudaMemcpy could not be timed");
  fmt::print("{:<34} {:>9} GB/s  read and written\n", "cudaMemcpy, device to device",
             FormatFigure(reference));
  bool passes = true;
  const auto measure = [&](const char* name, std::int64_t moved, bool copies,
                           const std::function<void()>& enqueue) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const double gbps, Rate(bench, moved, enqueue));
    passes = Report(name, gbps, reference, copies) && passes;
    return OkStatus();
  };
  const std::int64_t floats = kBytes / 4;
  LOCKSTEP_RETURN_IF_ERROR(measure("Kernels::Copy", 2 * kBytes, true, [&] {
    bench.kernels.Copy(bench.stream, bench.to, bench.from, kBytes);
  }));
  LOCKSTEP_RETURN_IF_ERROR(measure("Kernels::Scale f32 (a kernel)", 2 * kBytes, true, [&] {
    bench.kernels.Scale(bench.stream, DataType::kF32, bench.to, bench.from, floats, 0.5);
  }));
  LOCKSTEP_RETURN_IF_ERROR(measure("Kernels::Scale bf16", 2 * kBytes, false, [&] {
    bench.kernels.Scale(bench.stream, DataType::kBf16, bench.to, bench.from, kBytes / 2, 0.5);
  }));
  LOCKSTEP_RETURN_IF_ERROR(measure("Kernels::Add f32", 3 * kBytes, false, [&] {
    bench.kernels.Add(bench.stream, DataType::kF32, bench.to, bench.from, floats);
  }));
  LOCKSTEP_RETURN_IF_ERROR(measure("Kernels::Read", kBytes, false,
                                   [&] { bench.kernels.Read(bench.stream, bench.from, kBytes); }));
  if (all_reduce_gbps > 0) {
    passes = Report("all-reduce of one rank", all_reduce_gbps, reference, true) && passes;
  }
  return passes;
}

Result<bool> Run(double all_reduce_gbps) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto device, OpenCudaDevice(0, CudaMemory::kDevice));
  LOCKSTEP_ASSIGN_OR_RETURN(auto kernels, OpenCudaKernels());
  LOCKSTEP_ASSIGN_OR_RETURN(auto to, device->Allocate(kBytes));
  LOCKSTEP_ASSIGN_OR_RETURN(auto from, device->Allocate(kBytes));
  const std::unique_ptr<Stream> stream = device->NewStream();
  return Measure({*device, *kernels, *stream, to->data(), from->data()}, all_reduce_gbps);
}

Result<ExitCode> Main(int argc, char** argv) {
  const double ns = argc == 3 ? std::strtod(argv[1], nullptr) : 0;
  const double bytes = argc == 3 ? std::strtod(argv[2], nullptr) : 0;
  if (argc != 1 && !(argc == 3 && ns > 0 && bytes > 0)) {
    return InvalidInput(
        "give nothing, or an all-reduce's MEDIAN_NS and BYTES, both positive numbers");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool passes, Run(ns > 0 ? 2 * bytes / ns : 0));
  return passes ? ExitCode::kPass : ExitCode::kFailed;
}

}  // namespace
}  // namespace lockstep::device::cuda

int main(int argc, char** argv) {
  return lockstep::RunProgram("copy_bandwidth",
                              [=] { return lockstep::device::cuda::Main(argc, argv); });
}
