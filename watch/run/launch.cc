// The launcher's variables say how many watchers there are.
#include "watch/run/launch.h"

#include "core/control/rendezvous/master.h"

namespace lockstep::watch::run {

Result<Launch> FindLaunch() {
  Launch launch;
  LOCKSTEP_ASSIGN_OR_RETURN(launch.context, control::DetectLaunch());
  if (launch.context.size == 1) return launch;
  // What is watched may be a program of ours, whose agents meet at a name of their own.
  launch.context.launcher = "watch-" + launch.context.launcher;
  launch.way = Launch::Way::kOneHost;
  if (launch.context.single_host()) return launch;
  launch.way = Launch::Way::kOverMpi;
  if (control::VariableText("MASTER_ADDR").empty()) return launch;
  launch.way = Launch::Way::kMasterAddress;
  LOCKSTEP_ASSIGN_OR_RETURN(launch.endpoint,
                            control::rendezvous::EndpointAtMaster(control::rendezvous::kWatchers));
  return launch;
}

}  // namespace lockstep::watch::run
