// A bad network for as long as this runs: for tests, and for trying things by hand.
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>

#include <memory>
#include <optional>
#include <string>

#include "core/base/argument_parser.h"
#include "core/base/program.h"
#include "core/base/units.h"
#include "stress/network/wire.h"

namespace lockstep::stress::network {
namespace {

Result<ExitCode> Main(int argc, char** argv) {
  NetworkRule rule;
  std::string rate = "0";
  bool any_interface = false;
  ArgumentParser parser{
      "Lets packets that leave this host for others meet a bad wire, until it is ended.", "plant"};
  parser.Add("--to", rule.to, "IPv4 addresses of other hosts").Required();
  parser.Add("--delay=TIME", rule.delay_s, "Of every packet, as in 10ms");
  parser.Add("--jitter=TIME", rule.jitter_s, "More, uniform from 0");
  parser.Add("--loss", rule.loss, "Part of the packets, as in 0.01").BetweenReals(0., 1.);
  parser.Add("--rate", rate, "Bytes a second, as in 1MiB");
  parser.Add("--seed", rule.seed, "Of what is random");
  parser.Flag("--down", rule.down, "Nothing passes");
  parser.Flag("--allow-network-faults", any_interface,
              "Also by interfaces that are not of scripts/test_hosts");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(argc, argv));
  if (text) {
    fmt::print("{}", *text);
    return ExitCode::kPass;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t bytes, ParseBytes("--rate", rate));
  rule.rate_bytes_per_s = static_cast<double>(bytes);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Wire> wire, Wire::Start());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string done, wire->Apply(rule, any_interface));
  fmt::print("{}\n", done);
  LOCKSTEP_RETURN_IF_ERROR(FlushOutput());
  int number = 0;
  sigwait(&ends, &number);
  return ExitCode::kPass;
}

}  // namespace
}  // namespace lockstep::stress::network

int main(int argc, char** argv) {
  return lockstep::RunProgram("plant", [=] { return lockstep::stress::network::Main(argc, argv); });
}
