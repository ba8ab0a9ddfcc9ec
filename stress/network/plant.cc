// A bad network for as long as this runs: for tests, and for trying things by hand.
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <memory>
#include <string>

#include "core/base/argument_parser.h"
#include "core/base/units.h"
#include "stress/network/wire.h"

namespace lockstep::stress::network {
namespace {

int Fail(const Status& status) {
  fmt::print(stderr, "plant: {}\n", status.message());
  return static_cast<int>(ExitCodeOf(status.code()));
}

Status ReadTimes(const std::string& delay, const std::string& jitter, const std::string& rate,
                 NetworkRule& rule) {
  LOCKSTEP_ASSIGN_OR_RETURN(rule.delay_s, ParseSeconds("--delay", delay));
  LOCKSTEP_ASSIGN_OR_RETURN(rule.jitter_s, ParseSeconds("--jitter", jitter));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t bytes, ParseBytes("--rate", rate));
  rule.rate_bytes_per_s = static_cast<double>(bytes);
  return OkStatus();
}

int Main(int argc, char** argv) {
  NetworkRule rule;
  std::string delay = "0s", jitter = "0s", rate = "0";
  bool any_interface = false;
  ArgumentParser parser{
      "Lets packets that leave this host for others meet a bad wire, until it is ended.", "plant"};
  parser.Add("--to", rule.to, "IPv4 addresses of other hosts").Required();
  parser.Add("--delay", delay, "Of every packet, as in 10ms");
  parser.Add("--jitter", jitter, "More, uniform from 0");
  parser.Add("--loss", rule.loss, "Part of the packets, as in 0.01").BetweenReals(0., 1.);
  parser.Add("--rate", rate, "Bytes a second, as in 1MiB");
  parser.Add("--seed", rule.seed, "Of what is random");
  parser.Flag("--down", rule.down, "Nothing passes");
  parser.Flag("--allow-network-faults", any_interface,
              "Also by interfaces that are not of scripts/test_hosts");
  const Result<std::optional<std::string>> text = parser.Parse(argc, argv);
  if (!text.ok()) return Fail(text.status());
  if (*text) {
    fmt::print("{}", **text);
    return 0;
  }
  const Status read = ReadTimes(delay, jitter, rate, rule);
  if (!read.ok()) return Fail(read);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const Result<std::unique_ptr<Wire>> wire = Wire::Start();
  if (!wire.ok()) return Fail(wire.status());
  const Result<std::string> done = wire.value()->Apply(rule, any_interface);
  if (!done.ok()) return Fail(done.status());
  fmt::print("{}\n", *done);
  std::fflush(stdout);
  int number = 0;
  sigwait(&ends, &number);
  return 0;
}

}  // namespace
}  // namespace lockstep::stress::network

int main(int argc, char** argv) { return lockstep::stress::network::Main(argc, argv); }
