// Point-to-point: MPI_Send in all modes, MPI_Isend, MPI_Send_init, MPI_Recv, MPI_Probe. A status is
// always asked for, because a wildcard receive says only there which message it took.
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {

#define LOCKSTEP_SEND(NAME, FLAGS)                                                        \
  LOCKSTEP_SIZED(                                                                         \
      NAME, (const void* data, Count count, Handle type, int peer, int tag, Handle comm), \
      (data, count, type, peer, tag, comm), call.Message(count, type, peer, tag, comm, FLAGS), )
LOCKSTEP_SEND(Send, 0)
LOCKSTEP_SEND(Ssend, events::kSynchronous)
LOCKSTEP_SEND(Bsend, events::kBuffered)
LOCKSTEP_SEND(Rsend, 0)

#define LOCKSTEP_POST_SEND(NAME, FLAGS)                                                       \
  LOCKSTEP_SIZED(NAME,                                                                        \
                 (const void* data, Count count, Handle type, int peer, int tag, Handle comm, \
                  Handles request),                                                           \
                 (data, count, type, peer, tag, comm, request),                               \
                 call.Message(count, type, peer, tag, comm, FLAGS);                           \
                 call.Post(), call.Posted(*request, result))
LOCKSTEP_POST_SEND(Isend, 0)
LOCKSTEP_POST_SEND(Issend, events::kSynchronous)
LOCKSTEP_POST_SEND(Ibsend, events::kBuffered)
LOCKSTEP_POST_SEND(Irsend, 0)
LOCKSTEP_POST_SEND(Send_init, events::kPersistent)
LOCKSTEP_POST_SEND(Ssend_init, events::kPersistent | events::kSynchronous)
LOCKSTEP_POST_SEND(Bsend_init, events::kPersistent | events::kBuffered)
LOCKSTEP_POST_SEND(Rsend_init, events::kPersistent)

LOCKSTEP_SIZED(Recv,
               (void* data, Count count, Handle type, int source, int tag, Handle comm,
                Statuses status),
               (data, count, type, source, tag, comm, status), OwnStatus own;
               if (status.Ignored()) status = {&own}; call.Receive(count, type, source, tag, comm),
                                                      if (TookMessage(result)) call.Done(0, status))

LOCKSTEP_SIZED(Irecv,
               (void* data, Count count, Handle type, int source, int tag, Handle comm,
                Handles request),
               (data, count, type, source, tag, comm, request),
               call.Receive(count, type, source, tag, comm);
               call.Post(), call.Posted(*request, result))

LOCKSTEP_SIZED(Recv_init,
               (void* data, Count count, Handle type, int source, int tag, Handle comm,
                Handles request),
               (data, count, type, source, tag, comm, request),
               call.Receive(count, type, source, tag, comm);
               call.Post(events::kPersistent), call.Posted(*request, result))

LOCKSTEP_WATCHED(Probe, (int source, int tag, Handle comm, Statuses status),
                 (source, tag, comm, status), call.Receive(0, abi.byte, source, tag, comm), )

// It takes its message out of the queue; what receives it later is local.
LOCKSTEP_WATCHED(Mprobe, (int source, int tag, Handle comm, void* message, Statuses status),
                 (source, tag, comm, message, status), OwnStatus own;
                 if (status.Ignored()) status = {&own};
                 call.Receive(events::kUnknownCount, abi.byte, source, tag, comm),
                 if (result == kMpiSuccess) call.Done(0, status))

LOCKSTEP_SIZED(Mrecv, (void* data, Count count, Handle type, void* message, Statuses status),
               (data, count, type, message, status), call.Data(count, type), )

LOCKSTEP_SIZED(Imrecv, (void* data, Count count, Handle type, void* message, Handles request),
               (data, count, type, message, request), call.Data(count, type);
               call.Post(), call.Posted(*request, result))

LOCKSTEP_SIZED(
    Sendrecv,
    (const void* send, Count send_count, Handle send_type, int peer, int send_tag, void* data,
     Count count, Handle type, int source, int tag, Handle comm, Statuses status),
    (send, send_count, send_type, peer, send_tag, data, count, type, source, tag, comm, status),
    OwnStatus own;
    if (status.Ignored()) status = {&own};
    call.SendPart(send_count, send_type, peer, send_tag, comm);
    call.Receive(count, type, source, tag, comm), if (TookMessage(result)) call.Done(0, status))

LOCKSTEP_SIZED(Sendrecv_replace,
               (void* data, Count count, Handle type, int peer, int send_tag, int source, int tag,
                Handle comm, Statuses status),
               (data, count, type, peer, send_tag, source, tag, comm, status), OwnStatus own;
               if (status.Ignored()) status = {&own};
               call.SendPart(count, type, peer, send_tag, comm);
               call.Receive(count, type, source, tag, comm),
               if (TookMessage(result)) call.Done(0, status))

// One request of the program stands for two of the judge's.
LOCKSTEP_SIZED_NEW(
    Isendrecv,
    (const void* send, Count send_count, Handle send_type, int peer, int send_tag, void* data,
     Count count, Handle type, int source, int tag, Handle comm, Handles request),
    (send, send_count, send_type, peer, send_tag, data, count, type, source, tag, comm, request),
    const std::uint32_t sends = NewRequest();
    call.SendPart(send_count, send_type, peer, send_tag, comm, sends);
    call.Receive(count, type, source, tag, comm); call.Post(), call.Posted(*request, result, sends))

LOCKSTEP_SIZED_NEW(Isendrecv_replace,
                   (void* data, Count count, Handle type, int peer, int send_tag, int source,
                    int tag, Handle comm, Handles request),
                   (data, count, type, peer, send_tag, source, tag, comm, request),
                   const std::uint32_t sends = NewRequest();
                   call.SendPart(count, type, peer, send_tag, comm, sends);
                   call.Receive(count, type, source, tag, comm);
                   call.Post(), call.Posted(*request, result, sends))

LOCKSTEP_WATCHED(Start, (Handles request), (request), RequestFacts facts;
                 call.Requests(1, request, &facts), )

LOCKSTEP_WATCHED(
    Startall, (int count, Handles requests), (count, requests),
    for (int each = 0; each < count; ++each) {
      RequestFacts facts;
      call.Requests(1, requests + each, &facts);
    }, )

LOCKSTEP_WATCHED(Request_free, (Handles request), (request), RequestFacts facts;
                 const Handle kept = *request;
                 call.Requests(1, request, &facts),
                 if (result == kMpiSuccess && facts.number != 0) ForgetRequest(kept, facts.number))

LOCKSTEP_WATCHED(Cancel, (Handles request), (request), RequestFacts facts;
                 call.Requests(1, request, &facts), )

}  // namespace lockstep::watch::preload
