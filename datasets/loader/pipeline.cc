// A ring of slots between a reader thread, decoding threads and the consumer. Batches are handed
// out in order, whoever decoded them. Waits of the threads end when the pipeline is destroyed; the
// consumer's end at its deadline.
#include "datasets/loader/pipeline.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/base/clock.h"

namespace lockstep::datasets::loader {
namespace {

double SecondsSince(std::int64_t start_ns) {
  return static_cast<double>(MonotonicNs() - start_ns) * 1e-9;
}

std::int64_t BatchesOf(const sampler::SampleIndices& indices, const LoaderOptions& options) {
  const std::int64_t whole = indices.size() / options.batch;
  const bool rest = indices.size() % options.batch != 0 && !options.drop_last_batch;
  return whole + (rest ? 1 : 0);
}

}  // namespace

Loader::Pipeline::Pipeline(const shards::ShardFile& shard, const sampler::SampleIndices& indices,
                           const LoaderOptions& options)
    : shard_(shard), indices_(indices), options_(options), batches_(BatchesOf(indices, options)) {
  if (options.workers == 0) return;
  slots_.resize(static_cast<std::size_t>(options.workers) *
                static_cast<std::size_t>(options.prefetch));
  try {
    threads_.emplace_back([this] { ReadAll(); });
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { DecodeAll(); });
  } catch (const std::system_error&) {
    Stop();  // those that did start
    throw;
  }
}

Loader::Pipeline::~Pipeline() { Stop(); }

void Loader::Pipeline::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status Loader::Pipeline::ReadBatch(std::int64_t number, LoadedBatch& batch) const {
  const std::int64_t start_ns = MonotonicNs();
  const std::int64_t first = number * options_.batch;
  const std::int64_t count = std::min(options_.batch, indices_.size() - first);
  batch.number = number;
  batch.bytes = 0;
  batch.samples.resize(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    LoadedSample& sample = batch.samples[static_cast<std::size_t>(k)];
    sample.index = indices_[first + k];
    LOCKSTEP_RETURN_IF_ERROR(shard_.Read(sample.index, sample.bytes));
    batch.bytes += static_cast<std::int64_t>(sample.bytes.size());
  }
  batch.read_seconds = SecondsSince(start_ns);
  return OkStatus();
}

Status Loader::Pipeline::DecodeBatch(LoadedBatch& batch) const {
  const std::int64_t start_ns = MonotonicNs();
  for (LoadedSample& sample : batch.samples) {
    LOCKSTEP_RETURN_IF_ERROR(shard_.Verify(sample.index, sample.bytes));
    sample.decoded = Decode(sample.bytes, options_.decode_passes * options_.slow_down);
  }
  batch.decode_seconds = SecondsSince(start_ns);
  return OkStatus();
}

// All waits of these two end with the loader: ~Pipeline stops them.
void Loader::Pipeline::ReadAll() {
  for (std::int64_t number = 0; number < batches_; ++number) {
    Slot& slot = SlotOf(number);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || slot.stage == Stage::kEmpty; });
      if (stopping_) return;
    }
    Status status = ReadBatch(number, slot.batch);  // the slot is ours until it is kRead
    {
      const std::lock_guard lock(mutex_);
      slot.status = std::move(status);
      slot.stage = Stage::kRead;
    }
    changed_.notify_all();
  }
}

void Loader::Pipeline::DecodeAll() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return stopping_ || next_decode_ == batches_ || SlotOf(next_decode_).stage == Stage::kRead;
    });
    if (stopping_ || next_decode_ == batches_) return;
    Slot& slot = SlotOf(next_decode_++);
    slot.stage = Stage::kDecoding;
    lock.unlock();
    if (slot.status.ok()) slot.status = DecodeBatch(slot.batch);
    lock.lock();
    slot.stage = Stage::kReady;
    changed_.notify_all();
  }
}

Result<bool> Loader::Pipeline::Next(LoadedBatch& batch) {
  if (next_ == batches_) return false;
  const std::int64_t start_ns = MonotonicNs();
  if (options_.workers == 0) {
    LOCKSTEP_RETURN_IF_ERROR(ReadBatch(next_, batch));
    LOCKSTEP_RETURN_IF_ERROR(DecodeBatch(batch));
  } else {
    Slot& slot = SlotOf(next_);
    std::unique_lock lock(mutex_);
    const auto wait = std::chrono::duration<double>(options_.deadline_seconds);
    if (!changed_.wait_for(lock, wait, [&] { return slot.stage == Stage::kReady; })) {
      return DeadlineExceeded(
          "{}: batch {} was not loaded within {} s; check the disk, use more workers or a longer "
          "deadline",
          shard_.path(), next_, options_.deadline_seconds);
    }
    if (!slot.status.ok()) return slot.status;
    std::swap(batch, slot.batch);  // the memory of the consumer's last batch is used again
    slot.stage = Stage::kEmpty;
    lock.unlock();
    changed_.notify_all();
  }
  batch.load_seconds = SecondsSince(start_ns);
  ++next_;
  return true;
}

}  // namespace lockstep::datasets::loader
