#include <cuda_runtime.h>

#include <algorithm>
#include <functional>

#include "core/base/check.h"
#include "core/device/cuda/cuda_call.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/launch.h"
#include "core/device/native_stream.h"

namespace lockstep {
namespace {

constexpr std::int64_t kCalibrationBytes = 256 << 20;
constexpr int kCalibrationPasses = 4;

// Enqueues by the stream's handle. An error makes the stream sick by work that gives it.
void Launch(Stream& stream, const char* what,
            const std::function<cudaError_t(cudaStream_t)>& launch) {
  auto* const native = dynamic_cast<NativeStream*>(&stream);
  LOCKSTEP_CHECK(native != nullptr, "a stream of a CUDA device");
  if (!stream.ok()) return;
  const Status status = native->LaunchOn(
      [&](void* handle) { return CudaStatus(what, launch(static_cast<cudaStream_t>(handle))); });
  if (!status.ok()) stream.Enqueue([status] { return status; });
}

// Bytes that LaunchRead reads in a nanosecond, measured on memory of its own.
Result<double> MeasureReadRate() {
  void* memory = nullptr;
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMalloc, &memory, std::size_t{kCalibrationBytes});
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  static_cast<void>(LaunchRead(stream, memory, kCalibrationBytes, kCalibrationBytes));
  cudaEventRecord(begin, stream);
  const std::int64_t bytes = kCalibrationBytes * kCalibrationPasses;
  const cudaError_t launched = LaunchRead(stream, memory, kCalibrationBytes, bytes);
  cudaEventRecord(end, stream);
  const cudaError_t done = cudaEventSynchronize(end);
  float ms = 0;
  const cudaError_t timed = cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  cudaFree(memory);
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", launched));
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", done));
  LOCKSTEP_RETURN_IF_ERROR(CudaStatus("calibration", timed));
  return static_cast<double>(bytes) / (std::max(static_cast<double>(ms), 1e-3) * 1e6);
}

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(double read_bytes_per_ns) : read_bytes_per_ns_(read_bytes_per_ns) {}

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
    if (to_type == from_type) return Copy(stream, to, from, count * SizeOf(to_type));
    if (count == 0) return;
    Launch(stream, "convert", [&](cudaStream_t handle) {
      return LaunchConvert(handle, to_type, to, from_type, from, count);
    });
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

 private:
  static void Elementwise(Stream& stream, CudaArithmetic arithmetic, DataType type, void* to,
                          const void* from, std::int64_t count, double operand) {
    if (count == 0) return;
    Launch(stream, "arithmetic", [&](cudaStream_t handle) {
      return LaunchElementwise(handle, arithmetic, type, to, from, count, operand);
    });
  }

  double read_bytes_per_ns_;
};

}  // namespace

Result<std::unique_ptr<Kernels>> OpenCudaKernels() {
  LOCKSTEP_ASSIGN_OR_RETURN(const double rate, MeasureReadRate());
  return std::unique_ptr<Kernels>(std::make_unique<CudaKernels>(rate));
}

void EnqueueMatrixProduct(Stream& stream, DataType type, void* out, const void* a, const void* b,
                          int n) {
  Launch(stream, "matrix product",
         [&](cudaStream_t handle) { return LaunchMatrixProduct(handle, type, out, a, b, n); });
}

}  // namespace lockstep
