// Checks the options, draws the epoch's indices from the sampler, and leaves the batches to a ring
// of slots between a reader thread, decoding threads and the consumer. Batches are handed out in
// order, whoever decoded them. Waits of the threads end when the pipeline is destroyed; the
// consumer's end at its deadline. Decoding is arithmetic over the bytes, so its cost is known and
// its result can be compared.
#include "datasets/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::datasets::loader {
namespace {

constexpr int kMostWorkers = 256;
constexpr int kMostPrefetch = 1024;
constexpr int kPartsOfWait = 30;

Status Validate(const LoaderOptions& options, std::int64_t samples) {
  if (options.batch < 1 || options.batch > (std::int64_t{1} << 32)) {
    return InvalidInput("batch: {} samples; give 1 to 2^32", options.batch);
  }
  if (options.workers < 0 || options.workers > kMostWorkers) {
    return InvalidInput("workers: {}; give 0 to {}", options.workers, kMostWorkers);
  }
  if (options.prefetch < 1 || options.prefetch > kMostPrefetch) {
    return InvalidInput("prefetch: {} batches a worker; give 1 to {}", options.prefetch,
                        kMostPrefetch);
  }
  const double passes = options.decode_passes * options.slow_down;
  if (!(options.decode_passes >= 0) || !(options.slow_down >= 0) || !(passes < 1e9)) {
    return InvalidInput(
        "decode: {} passes slowed down {} times; give numbers from 0 on, together below 10^9",
        options.decode_passes, options.slow_down);
  }
  if (!(options.deadline_seconds > 0) || !(options.deadline_seconds < 1e9)) {
    return InvalidInput("deadline: {} s; give more than 0, below 10^9", options.deadline_seconds);
  }
  if (!options.weights.empty() && static_cast<std::int64_t>(options.weights.size()) != samples) {
    return InvalidInput("weights: {} for {} samples; give one a sample", options.weights.size(),
                        samples);
  }
  return OkStatus();
}

std::int64_t BatchesOf(const sampler::SampleIndices& indices, const LoaderOptions& options) {
  const std::int64_t whole = indices.size() / options.batch;
  const bool rest = indices.size() % options.batch != 0 && !options.drop_last_batch;
  return whole + (rest ? 1 : 0);
}

}  // namespace

std::uint64_t Decode(std::span<const std::byte> bytes, double passes) {
  std::uint64_t state = bytes.size();
  const auto run = [&](std::size_t end) {
    for (std::size_t at = 0; at + 4 <= end; at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + at, 4);
      state = Mix64(state ^ word);
    }
  };
  const double whole = std::floor(passes);
  for (double pass = 0; pass < whole; ++pass) run(bytes.size());
  run(static_cast<std::size_t>((passes - whole) * static_cast<double>(bytes.size())));
  return state;
}

struct Loader::File {
  shards::ShardFile shard;
};

// One epoch's batches on their way: a reader thread, decoding workers, a bounded ring between them
// and the consumer.
class Loader::Pipeline {
 public:
  // `shard`, `indices` and `options` outlive it. Throws std::system_error when a thread cannot be
  // had.
  Pipeline(const shards::ShardFile& shard, const sampler::SampleIndices& indices,
           const LoaderOptions& options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  std::int64_t batches() const { return batches_; }
  Result<bool> Next(LoadedBatch& batch);

 private:
  // A slot goes round: the reader fills it, a worker decodes it, the consumer empties it.
  enum class Stage : std::uint8_t { kEmpty, kRead, kDecoding, kReady };
  struct Slot {
    Stage stage = Stage::kEmpty;
    LoadedBatch batch;
    Status status;
  };

  Slot& SlotOf(std::int64_t number) {
    return slots_[static_cast<std::size_t>(number) % slots_.size()];
  }
  Status ReadBatch(std::int64_t number, LoadedBatch& batch) const;
  Status DecodeBatch(LoadedBatch& batch) const;
  void Stop();
  void ReadAll();
  void DecodeAll();

  const shards::ShardFile& shard_;
  const sampler::SampleIndices& indices_;
  const LoaderOptions& options_;
  std::int64_t batches_;
  std::int64_t next_ = 0;         // that the consumer gets
  std::int64_t next_decode_ = 0;  // that a worker takes; guarded by mutex_, as all below
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
};

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
    // A process that was stopped waited in one part of the wait only, however long it was stopped.
    const std::chrono::duration<double> part(options_.deadline_seconds / kPartsOfWait);
    int left = kPartsOfWait;
    while (!changed_.wait_for(lock, part, [&] { return slot.stage == Stage::kReady; })) {
      if (--left > 0) continue;
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

Loader::Loader(std::string path, const LoaderOptions& options)
    : path_(std::move(path)), options_(options) {}

Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::Open(const std::string& path,
                                             const LoaderOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(shards::ShardFile shard, shards::ShardFile::Open(path));
  LOCKSTEP_RETURN_IF_ERROR(Validate(options, shard.samples()));
  std::unique_ptr<Loader> loader(new Loader(path, options));
  loader->options_.sampler.samples = shard.samples();
  LOCKSTEP_RETURN_IF_ERROR(sampler::Validate(loader->options_.sampler));
  loader->file_ = std::make_unique<File>(File{std::move(shard)});
  return loader;
}

Result<sampler::SampleIndices> Loader::DrawIndices(std::int64_t epoch) const {
  sampler::SamplerOptions sampler = options_.sampler;
  sampler.epoch = epoch;
  if (options_.weights.empty()) return sampler::DistributedIndices(sampler);
  return sampler::WeightedIndices(options_.weights, sampler::SamplesPerRank(sampler),
                                  sampler.seed + static_cast<std::uint64_t>(epoch));
}

Status Loader::StartEpoch(std::int64_t epoch) {
  pipeline_.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(indices_, DrawIndices(epoch));
  try {
    pipeline_ = std::make_unique<Pipeline>(file_->shard, indices_, options_);
  } catch (const std::system_error& error) {
    return EnvironmentError("{}: no thread for a worker ({}); use fewer workers", path_,
                            error.what());
  }
  return OkStatus();
}

std::int64_t Loader::samples() const { return file_->shard.samples(); }
std::int64_t Loader::batches() const { return pipeline_ ? pipeline_->batches() : 0; }
const sampler::SampleIndices& Loader::indices() const { return indices_; }

Result<bool> Loader::Next(LoadedBatch& batch) {
  LOCKSTEP_CHECK(pipeline_ != nullptr, "StartEpoch comes before Next");
  if (options_.journal != nullptr) options_.journal->EnterPhase(journal::Phase::kLoad);
  Result<bool> more = pipeline_->Next(batch);
  if (options_.journal != nullptr) options_.journal->EnterPhase(options_.phase_after);
  return more;
}

}  // namespace lockstep::datasets::loader
