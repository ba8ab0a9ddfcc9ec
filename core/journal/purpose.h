// Why a collective is called: what a program of data-parallel training wants with it. Fits into
// JournalEvent::value, so that a verdict can say "bucket 3" or "join: alive".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::journal {

enum class Purpose : std::uint8_t {
  kNone = 0,          // not said
  kVerifyCount,       // constructor: number of parameters of every rank
  kVerifyShapes,      // constructor: sizes and strides of rank 0
  kStateBroadcast,    // constructor: parameters and buffers; detail: index of the broadcast
  kRebuildOrder,      // bucket layout of rank 0: parameter indices
  kRebuildSizes,      // bucket layout of rank 0: bucket sizes
  kBucket,            // gradients; detail: bucket index
  kUnusedBitmap,      // which parameters each rank used
  kBufferBroadcast,   // before a forward; detail: index of the broadcast
  kPowerSgdFactorP,   // detail: bucket index
  kPowerSgdFactorQ,   // detail: bucket index
  kJoinAlive,         // "am I still training": 1, or 0 from a rank that joined
  kJoinThrow,         // "has anyone joined"
  kJoinCommonRank,    // whose buffers count
  kJoinShouldSync,    // "do gradients travel in this iteration"
  kJoinShadowBucket,  // zeros of a rank that joined; detail: bucket index
  kJoinFinalRank,     // whose model is the final one
  kJoinFinalSync,     // the final model; detail: index of the broadcast
  kBatchNormForward,  // SyncBatchNorm's statistics; detail: layer
  kBatchNormBackward,
  kBarrier,
  kStep,            // a collective of the user's program
  kReplay,          // one that a graph holds; detail: its index there, iteration: of the graph
  kReplayedBucket,  // gradients that a graph sends; detail: bucket index, iteration: of the graph
  kCapture,         // one that becomes part of a graph and does not run; detail: its index there
};
// "bucket", "join: alive" …; a value outside the enum gives "unknown" (it comes from memory).
std::string_view NameOf(Purpose purpose);

struct Annotation {
  Purpose purpose = Purpose::kNone;
  std::int32_t detail = 0;      // 0 <= detail < 2^24, as the purpose says
  std::int32_t iteration = -1;  // of this rank's training, from 0; -1: outside

  bool operator==(const Annotation&) const = default;
};

// In a JournalEvent's `value`: 8 bits purpose, 24 detail, 32 iteration. An empty annotation is 0.
std::int64_t PackAnnotation(const Annotation& annotation);
Annotation UnpackAnnotation(std::int64_t value);

// "bucket 3 of iteration 12", "join: alive of iteration 5", "constructor: state 1"; "" for kNone.
std::string Describe(const Annotation& annotation);

}  // namespace lockstep::journal
