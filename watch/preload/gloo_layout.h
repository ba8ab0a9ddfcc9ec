// Where gloo keeps what is written down, in bytes from the start of its objects. These places have
// been the same from 2022 to 2026, in Debian's library and in what PyPI's PyTorch brings.
// gloo_layout_test holds them against the installed headers. The library itself needs none.
#pragma once

namespace lockstep::watch::preload {

inline constexpr int kNowhere = -1;

// gloo::rendezvous::Context, behind its table of virtual functions
inline constexpr int kContextRank = 8;
inline constexpr int kContextSize = 12;
// Options point to its base: the whole, or (since the end of 2024) what is behind the table.
inline constexpr int kContextBase = 8;

inline constexpr int kContextTransport = 40;

// gloo::transport::tcp::UnboundBuffer
inline constexpr int kBufferBytes = 16;
inline constexpr int kBufferTransport = 24;

// The options of a collective begin with a pointer to their context.
struct OptionsLayout {
  int tag;
  int root;
  int elements;
  int element_size;
};

// X(function, its options, symbol, call, tag, root, elements, element size)
#define LOCKSTEP_GLOO_COLLECTIVES(X)                                                               \
  X(allreduce, AllreduceOptions, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE", GroupAllReduce,    \
    128, kNowhere, 80, 88)                                                                         \
  X(broadcast, BroadcastOptions, "_ZN4gloo9broadcastERNS_16BroadcastOptionsE", GroupBroadcast, 52, \
    48, 32, 40)                                                                                    \
  X(barrier, BarrierOptions, "_ZN4gloo7barrierERNS_14BarrierOptionsE", GroupBarrier, 24, kNowhere, \
    kNowhere, kNowhere)                                                                            \
  X(allgather, AllgatherOptions, "_ZN4gloo9allgatherERNS_16AllgatherOptionsE", GroupAllGather, 40, \
    kNowhere, kNowhere, 32)                                                                        \
  X(allgatherv, AllgathervOptions, "_ZN4gloo10allgathervERNS_17AllgathervOptionsE",                \
    GroupAllGatherSizes, 64, kNowhere, kNowhere, 56)                                               \
  X(gather, GatherOptions, "_ZN4gloo6gatherERNS_13GatherOptionsE", GroupGather, 44, 40, kNowhere,  \
    32)                                                                                            \
  X(reduce, ReduceOptions, "_ZN4gloo6reduceERNS_13ReduceOptionsE", GroupReduce, 88, 48, 32, 40)    \
  X(scatter, ScatterOptions, "_ZN4gloo7scatterERNS_14ScatterOptionsE", GroupScatter, 60, 56,       \
    kNowhere, 48)                                                                                  \
  X(alltoall, AlltoallOptions, "_ZN4gloo8alltoallERNS_15AlltoallOptionsE", GroupAllToAll, 40,      \
    kNowhere, kNowhere, 32)                                                                        \
  X(alltoallv, AlltoallvOptions, "_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE", GroupAllToAllSizes, \
    136, kNowhere, kNowhere, 128)

}  // namespace lockstep::watch::preload
