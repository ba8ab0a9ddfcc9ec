// Passes on the TCP connections that one worker makes, and lets links be as bad as it is told.
//
// A thread in the worker's agent. Every connection is held until the owner said whose worker it
// leads to; then its bytes pass in both directions, subject to the rules for that peer.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/base/fd.h"
#include "core/base/status.h"
#include "stress/links/flow_ledger.h"
#include "stress/links/link_rule.h"

namespace lockstep::stress::links {

class Switchboard;

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
  static Result<std::unique_ptr<Relay>> Start();
  ~Relay();  // ends the thread and every connection

  int port() const { return port_; }                 // on 127.0.0.1
  const std::string& name() const { return name_; }  // its address as in TcpSocket
  pid_t thread() const;                              // that passes the bytes on
  // None of these waits.
  void Answer(int connection, int peer);  // peer -1: nobody's
  void Apply(const LinkRule& rule);
  void Heal(int rule);
  // Ends all connections and rules: another worker comes.
  void Clear();
  int fd() const { return reports_fd_.get(); }  // readable when there are reports
  std::vector<RelayReport> TakeReports();
  // Since Clear(), also of connections that ended.
  std::vector<RelayedNames> Names() const;
  // The newest connection from this end of the worker's: a port can be used again.
  std::optional<RelayedNames> Find(const std::string& worker) const;

 private:
  using Command = std::function<void(Switchboard&)>;

  Relay(Fd listening, int port, std::string name, Fd wake, Fd reports);
  void Post(Command command, bool end = false);
  void Run();
  void Count(int connection, const FlowLedger& out, const FlowLedger& in);

  Fd listening_;
  int port_;
  std::string name_;
  Fd wake_;
  Fd reports_fd_;
  mutable std::mutex mutex_;
  bool ending_ = false;
  std::vector<Command> commands_;
  std::vector<RelayReport> reports_;
  std::vector<RelayedNames> names_;
  // Where in them.
  std::unordered_map<int, std::size_t> by_connection_;
  std::unordered_map<std::string, std::size_t> by_worker_;
  std::atomic<pid_t> tid_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep::stress::links
