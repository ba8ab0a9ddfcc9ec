// One epoch's batches on their way: a reader thread, decoding workers, a bounded ring between
// them and the consumer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/status.h"
#include "datasets/loader/loader.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::datasets::loader {

struct Loader::File {
  shards::ShardFile shard;
};

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

}  // namespace lockstep::datasets::loader
