// Passes on the TCP connections that one worker makes, and lets links be as bad as it is told.
//
// A thread in the worker's agent. Every connection is held until the owner said whose worker it
// leads to; then its bytes pass in both directions, subject to the rules for that peer.
#ifndef LOCKSTEP_STRESS_LINKS_RELAY_H_
#define LOCKSTEP_STRESS_LINKS_RELAY_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "stress/links/flow_ledger.h"
#include "stress/links/link_rule.h"

namespace lockstep::stress::links {

struct RelayReport {
  enum class Kind {
    kAsk,      // whose is `endpoint`? Answer() with `connection`
    kTouched,  // rule `rule` met `bytes` of traffic (each rule is told of once)
    kApplied,  // rule `rule` is in force
  };
  Kind kind = Kind::kAsk;
  int connection = 0;
  std::string endpoint = {};  // as in TcpSocket
  int rule = 0;
  std::uint64_t bytes = 0;
};

// A connection as the two workers know it; or, with `remote` alone, an address that the worker
// listened on.
struct RelayedNames {
  std::string worker = {};  // the worker's own end
  std::string local = {};   // what its peer sees as the other end
  std::string remote = {};  // what the worker asked for
  int connection = -1;
  FlowLedger out = {};  // from the worker
  FlowLedger in = {};
};

class Relay {
 public:
  virtual ~Relay() = default;  // ends the thread and every connection
  static Result<std::unique_ptr<Relay>> Start();

  virtual int port() const = 0;                 // on 127.0.0.1
  virtual const std::string& name() const = 0;  // its address as in TcpSocket
  virtual pid_t thread() const = 0;             // that passes the bytes on
  // None of these waits.
  virtual void Answer(int connection, int peer) = 0;  // peer -1: nobody's
  virtual void Apply(const LinkRule& rule) = 0;
  virtual void Heal(int rule) = 0;
  // Ends all connections and rules: another worker comes.
  virtual void Clear() = 0;
  virtual int fd() const = 0;  // readable when there are reports
  virtual std::vector<RelayReport> TakeReports() = 0;
  // Since Clear(), also of connections that ended.
  virtual std::vector<RelayedNames> Names() const = 0;
  // The newest connection from this end of the worker's: a port can be used again.
  virtual std::optional<RelayedNames> Find(const std::string& worker) const = 0;
};

}  // namespace lockstep::stress::links

#endif  // LOCKSTEP_STRESS_LINKS_RELAY_H_
