// Loads a rank's samples as PyTorch's DataLoader does: workers prefetch whole batches, which come
// in the sampler's order however many workers there are. Every sample is verified.
//
//   auto loader = Loader::Open("data.h5", {.sampler = {.world = 2, .rank = r}, .workers = 2});
//   loader->StartEpoch(0);
//   for (LoadedBatch batch; …;) { more = loader->Next(batch); if (!more.ok() || !*more) break; … }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/journal/event.h"
#include "core/journal/journal.h"
#include "datasets/sampler/sampler.h"

namespace lockstep::datasets::loader {

struct LoaderOptions {
  sampler::SamplerOptions sampler =
      {};                            // `samples` is taken from the file, `epoch` from StartEpoch
  std::vector<double> weights = {};  // one a sample: WeightedRandomSampler, as many draws as
                                     // DistributedSampler gives the rank. Empty: none
  std::int64_t batch = 32;           // samples
  bool drop_last_batch = false;      // an incomplete batch at the end is left out
  int workers = 2;                   // threads that decode; 0: all in Next
  int prefetch = 2;                  // batches ahead for each worker
  double decode_passes = 1;          // work of decoding: passes over the bytes of a sample
  double slow_down = 1;              // … times this: skew put into one rank on purpose
  double deadline_seconds = 30;      // silence of a worker or the disk after which Next gives up
  journal::JournalWriter* journal =
      nullptr;  // of the thread that calls Next: enters kLoad, and then …
  journal::Phase phase_after = journal::Phase::kCompute;  // … this
};

struct LoadedSample {
  std::int64_t index = 0;
  std::vector<std::byte> bytes;
  std::uint64_t decoded = 0;  // what decoding came to; follows from the bytes and the passes
};

struct LoadedBatch {
  std::int64_t number = 0;  // of the epoch, from 0
  std::vector<LoadedSample> samples;
  std::int64_t bytes = 0;
  double read_seconds = 0;    // work of the reader for this batch
  double decode_seconds = 0;  // work of the worker: decoding and verifying
  double load_seconds = 0;    // how long Next kept its caller waiting
};

class Loader {
 public:
  static Result<std::unique_ptr<Loader>> Open(const std::string& path,
                                              const LoaderOptions& options);
  ~Loader();  // ends its threads; what they were reading is waited for
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Draws the epoch's indices (PyTorch's set_epoch) and begins to prefetch; an epoch that was not
  // finished is dropped. Leaving out set_epoch is passing the same number again.
  Status StartEpoch(std::int64_t epoch);

  std::int64_t samples() const;  // of the whole dataset
  std::int64_t batches() const;  // of the rank in this epoch
  const sampler::SampleIndices& indices() const;

  // The next batch, in order; false: the epoch is over. After an error (a corrupt sample, a
  // deadline) the epoch cannot go on.
  Result<bool> Next(LoadedBatch& batch);

 private:
  class Pipeline;
  Loader(std::string path, const LoaderOptions& options);
  Result<sampler::SampleIndices> DrawIndices(std::int64_t epoch) const;

  struct File;
  std::string path_;
  LoaderOptions options_;
  sampler::SampleIndices indices_;
  std::unique_ptr<File> file_;
  std::unique_ptr<Pipeline> pipeline_;
};

// The work that stands for decoding, at a few bytes a nanosecond; `passes` may have a fraction.
std::uint64_t Decode(std::span<const std::byte> bytes, double passes);

}  // namespace lockstep::datasets::loader
