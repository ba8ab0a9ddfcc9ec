// The port's arithmetic as launches of this room's kernels. Work of a given time reads memory or
// multiplies matrices, at rates that are measured when the kernels are opened. An error of a launch
// is put on the stream as failing work, so the stream reports it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/device/cuda/cuda_call.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/launch.h"
#include "core/device/native_stream.h"

namespace lockstep::device::cuda {
namespace {

constexpr std::int64_t kCalibrationBytes = 256 << 20;
constexpr int kCalibrationPasses = 4;

// Enqueues by the stream's handle. An error fails the stream: work that returns it is enqueued.
void Launch(Stream& stream, const char* what,
            const std::function<cudaError_t(cudaStream_t)>& launch) {
  auto* const native = dynamic_cast<NativeStream*>(&stream);
  LOCKSTEP_CHECK(native != nullptr, "a stream of a CUDA device");
  if (!stream.ok()) return;
  const Status status = native->LaunchOn(
      [&](void* handle) { return CudaStatus(what, launch(static_cast<cudaStream_t>(handle))); });
  if (!status.ok()) stream.Enqueue([status] { return status; });
}

// Nanoseconds that `launch` takes on the device; it is called once before, to warm up.
Result<double> TimeNs(const std::function<cudaError_t(cudaStream_t)>& launch) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  static_cast<void>(launch(stream));
  cudaEventRecord(begin, stream);
  const cudaError_t launched = launch(stream);
  cudaEventRecord(end, stream);
  const cudaError_t done = cudaEventSynchronize(end);
  float ms = 0;
  const cudaError_t timed = cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", launched));
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", done));
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", timed));
  return std::max(static_cast<double>(ms), 1e-3) * 1e6;
}

// Bytes that LaunchRead reads in a nanosecond, measured on memory of its own.
Result<double> MeasureReadRate() {
  void* memory = nullptr;
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMalloc, &memory, std::size_t{kCalibrationBytes});
  constexpr std::int64_t kBytes = kCalibrationBytes * kCalibrationPasses;
  const Result<double> ns = TimeNs([memory](cudaStream_t stream) {
    return LaunchRead(stream, memory, kCalibrationBytes, kBytes);
  });
  cudaFree(memory);
  LOCKSTEP_RETURN_IF_ERROR(ns.status());
  return static_cast<double>(kBytes) / *ns;
}

// Three matrices that stay in the device's cache, to be multiplied for a time: large enough to fill
// a device, and in steps of some microseconds. Every type takes the same bytes for its own.
class Matrices {
 public:
  static Result<std::unique_ptr<Matrices>> Make() {
    std::unique_ptr<Matrices> made(new Matrices);
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMalloc, &made->memory_, 3 * kMatrixBytes);
    // Finite numbers in every type, and not zeros, which take less power.
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMemset, made->memory_, 0x3c, 3 * kMatrixBytes);
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize);
    for (const DataType type : {DataType::kF16, DataType::kBf16, DataType::kF32, DataType::kF64}) {
      LOCKSTEP_ASSIGN_OR_RETURN(const double ns, TimeNs([&](cudaStream_t stream) {
                                  return made->Launch(stream, type, kCalibrationSteps);
                                }));
      made->step_ns_[type] = ns / kCalibrationSteps;
    }
    return made;
  }
  ~Matrices() { cudaFree(memory_); }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  cudaError_t MultiplyFor(cudaStream_t stream, double ns, DataType type) const {
    const auto step_ns = step_ns_.find(type);
    if (step_ns == step_ns_.end()) return cudaErrorInvalidValue;  // not a floating-point type
    const std::int64_t steps = std::llround(ns / step_ns->second);
    return steps < 1 ? cudaSuccess : Launch(stream, type, steps);
  }

 private:
  static constexpr std::int64_t kRows = 512;
  static constexpr std::size_t kMatrixBytes = sizeof(double) * kRows * kRows;
  static constexpr std::int64_t kCalibrationSteps = 1024;
  Matrices() = default;
  cudaError_t Launch(cudaStream_t stream, DataType type, std::int64_t steps) const {
    auto* const bytes = static_cast<std::byte*>(memory_);
    return LaunchMatrixProduct(stream, type, bytes, bytes + kMatrixBytes, bytes + 2 * kMatrixBytes,
                               kRows, steps);
  }

  void* memory_ = nullptr;
  std::map<DataType, double> step_ns_;
};

class CudaKernels final : public Kernels {
 public:
  CudaKernels(double read_bytes_per_ns, std::unique_ptr<Matrices> matrices)
      : read_bytes_per_ns_(read_bytes_per_ns), matrices_(std::move(matrices)) {}

  void Copy(Stream& stream, void* to, const void* from, std::int64_t bytes) override {
    if (to == from || bytes == 0) return;
    Launch(stream, "cudaMemcpyAsync", [&](cudaStream_t handle) {
      return cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, handle);
    });
  }
  void Zero(Stream& stream, void* to, std::int64_t bytes) override {
    if (bytes == 0) return;
    Launch(stream, "cudaMemsetAsync", [&](cudaStream_t handle) {
      return cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), handle);
    });
  }
  void Scale(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
             double factor) override {
    Elementwise(stream, CudaArithmetic::kScale, type, to, from, count, factor);
  }
  void Divide(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
              double divisor) override {
    Elementwise(stream, CudaArithmetic::kDivide, type, to, from, count, divisor);
  }
  void Add(Stream& stream, DataType type, void* to, const void* from, std::int64_t count) override {
    Elementwise(stream, CudaArithmetic::kAdd, type, to, from, count, 0);
  }
  void Convert(Stream& stream, DataType to_type, void* to, DataType from_type, const void* from,
               std::int64_t count) override {
    if (to_type == from_type) return Copy(stream, to, from, count * collective::SizeOf(to_type));
    if (count == 0) return;
    Launch(stream, "convert", [&](cudaStream_t handle) {
      return LaunchConvert(handle, to_type, to, from_type, from, count);
    });
  }
  void WriteTile(Stream& stream, DataType type, void* to, std::int64_t count,
                 const TileSource& source, bool add) override {
    if (count == 0) return;
    Launch(stream, "write tile", [&](cudaStream_t handle) {
      return LaunchWriteTile(handle, type, to, count, source, add);
    });
  }
  void Increment(Stream& stream, std::int64_t* number) override {
    Launch(stream, "increment",
           [&](cudaStream_t handle) { return LaunchIncrement(handle, number); });
  }
  void Read(Stream& stream, const void* from, std::int64_t bytes) override {
    Launch(stream, "read",
           [&](cudaStream_t handle) { return LaunchRead(handle, from, bytes, bytes); });
  }
  void Compute(Stream& stream, double ns, const void* memory, std::int64_t bytes) override {
    LOCKSTEP_CHECK(bytes > 0, "computing needs memory to read");
    const auto total = static_cast<std::int64_t>(ns * read_bytes_per_ns_);
    Launch(stream, "compute",
           [&](cudaStream_t handle) { return LaunchRead(handle, memory, bytes, total); });
  }
  void MatrixProduct(Stream& stream, DataType type, void* out, const void* a, const void* b,
                     std::int64_t rows) override {
    if (rows == 0) return;
    Launch(stream, "matrix product", [&](cudaStream_t handle) {
      return LaunchMatrixProduct(handle, type, out, a, b, rows, MatrixProductSteps(rows));
    });
  }
  void ComputeProducts(Stream& stream, double ns, DataType type) override {
    Launch(stream, "matrix products",
           [&](cudaStream_t handle) { return matrices_->MultiplyFor(handle, ns, type); });
  }

 private:
  static void Elementwise(Stream& stream, CudaArithmetic arithmetic, DataType type, void* to,
                          const void* from, std::int64_t count, double operand) {
    if (count == 0) return;
    Launch(stream, "arithmetic", [&](cudaStream_t handle) {
      return LaunchElementwise(handle, arithmetic, type, to, from, count, operand);
    });
  }

  double read_bytes_per_ns_;
  std::unique_ptr<Matrices> matrices_;
};

}  // namespace

Result<std::unique_ptr<Kernels>> OpenCudaKernels() {
  LOCKSTEP_ASSIGN_OR_RETURN(const double rate, MeasureReadRate());
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Matrices> matrices, Matrices::Make());
  return std::unique_ptr<Kernels>(std::make_unique<CudaKernels>(rate, std::move(matrices)));
}

}  // namespace lockstep::device::cuda
