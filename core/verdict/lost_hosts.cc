// What befell all ranks of a host alike befell the host. Each fate has its sentence and remedy
// here; what follows from a loss becomes its evidence.
#include "core/verdict/lost_hosts.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/verdict/wording.h"

namespace lockstep::verdict {
namespace {

// What befell a host.
enum class Fate { kEnded, kLauncher, kCutOff, kStopped };

struct LostHost {
  std::string name;
  std::vector<int> ranks;
  Fate fate = Fate::kEnded;
  bool told = false;     // its own agents say so
  bool reset = false;    // kEnded: a connection was reset, which something on the way may have done
  bool assumed = false;  // … not all of its agents were seen to end
  bool gone = false;     // … the launcher may have ended some of its agents
};

// It may live.
bool IsSilent(Loss loss) {
  return loss == Loss::kCutOff || loss == Loss::kDeaf || loss == Loss::kLeft ||
         loss == Loss::kReset;
}

bool IsEnd(Loss loss) { return loss == Loss::kClosed || loss == Loss::kReset; }

std::map<std::string, std::vector<int>> RanksByHost(const std::vector<RankPlace>& places) {
  std::map<std::string, std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    hosts[places[rank].host].push_back(static_cast<int>(rank));
  }
  return hosts;
}

// What all of them have in common, if they have.
std::optional<Fate> FateOf(const std::vector<int>& ranks, const std::vector<RankPlace>& places,
                           const std::vector<RankEvidence>& evidence) {
  const auto all = [&](auto&& holds) { return std::ranges::all_of(ranks, holds); };
  const auto any = [&](auto&& holds) { return std::ranges::any_of(ranks, holds); };
  const auto loss = [&](int rank) { return places[static_cast<std::size_t>(rank)].loss; };
  const auto state = [&](int rank) { return evidence[static_cast<std::size_t>(rank)].state; };
  if (any([&](int rank) { return loss(rank) == Loss::kLauncher; })) return Fate::kLauncher;
  if (any([&](int rank) { return loss(rank) == Loss::kTold; })) return std::nullopt;
  if (all([&](int rank) { return IsEnd(loss(rank)) || loss(rank) == Loss::kGone; }) &&
      any([&](int rank) { return IsEnd(loss(rank)); })) {
    return Fate::kEnded;
  }
  if (any([&](int rank) { return loss(rank) == Loss::kGone; })) return std::nullopt;
  // One that ended beside others that are silent: the host as a whole did neither.
  const bool ended = any([&](int rank) {
    return loss(rank) == Loss::kClosed && !places[static_cast<std::size_t>(rank)].assumed;
  });
  if (!ended && all([&](int rank) { return loss(rank) != Loss::kNone; })) {
    const bool deaf = all([&](int rank) { return loss(rank) == Loss::kDeaf; });
    return deaf ? Fate::kStopped : Fate::kCutOff;
  }
  // One rank alone on its host that is stopped is a stopped rank.
  const bool stopped = all([&](int rank) { return state(rank) == ProcessState::kStopped; });
  if (stopped && ranks.size() > 1) return Fate::kStopped;
  return std::nullopt;
}

std::vector<LostHost> FindLostHosts(const std::vector<RankPlace>& places,
                                    const std::vector<RankEvidence>& evidence) {
  std::vector<LostHost> lost;
  const auto hosts = RanksByHost(places);
  for (const auto& [name, ranks] : hosts) {
    if (name.empty()) continue;  // not known: ranks of several hosts, perhaps
    const std::optional<Fate> fate = FateOf(ranks, places, evidence);
    // Of one host alone only its launcher is news: that its ranks are gone is said of the ranks.
    if (!fate || (hosts.size() < 2 && *fate != Fate::kLauncher)) continue;
    const auto first = static_cast<std::size_t>(ranks.front());
    const bool told = places[first].loss == Loss::kNone || *fate == Fate::kLauncher;
    const auto any = [&](Loss loss) {
      return std::ranges::any_of(
          ranks, [&](int rank) { return places[static_cast<std::size_t>(rank)].loss == loss; });
    };
    const bool assumed = std::ranges::any_of(
        ranks, [&](int rank) { return places[static_cast<std::size_t>(rank)].assumed; });
    lost.push_back({name, ranks, *fate, told, any(Loss::kReset), assumed, any(Loss::kGone)});
  }
  // Who waits for a stopped host is not stopped itself: all hosts alike is job control.
  if (lost.size() == hosts.size()) {
    std::erase_if(lost, [](const LostHost& host) { return host.fate == Fate::kStopped; });
  }
  std::ranges::stable_sort(lost, [](const LostHost& a, const LostHost& b) {
    return std::pair(a.fate, a.ranks.front()) < std::pair(b.fate, b.ranks.front());
  });
  return lost;
}

// Those who hear of each other, when they are the smaller part: blamed in place of the others.
LostHost OurSide(const std::vector<RankPlace>& places) {
  LostHost ours;
  ours.fate = Fate::kCutOff;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (IsSilent(places[rank].loss)) continue;
    if (ours.name.find(places[rank].host) == std::string::npos) {
      ours.name += (ours.name.empty() ? "" : ", ") + places[rank].host;
    }
    ours.ranks.push_back(static_cast<int>(rank));
  }
  return ours;
}

// A TCP segment that resets a connection bears no name.
constexpr const char* kWhatResets =
    "their processes ended, or something between the hosts (a firewall, a NAT) ended connections";

bool IsDoubtful(const LostHost& host) { return host.reset || host.assumed || host.gone; }

// A connection is closed by a kernel that lives: the agents ended, not the host.
std::string DescribeEnd(const LostHost& host, const std::string& who) {
  if (host.reset) {
    return fmt::format("{}: every connection of its agents was reset, refused or closed: {}", who,
                       kWhatResets);
  }
  if (host.assumed || host.gone) {
    return fmt::format(
        "{} seems to have lost all its agents: one's connection was closed, without a word, and {}",
        who,
        host.assumed ? "of the others nothing was heard"
                     : "others ended while the launch was being ended");
  }
  return fmt::format("{} lost all its agents: every connection was closed, without a word", who);
}

Finding Describe(const LostHost& host) {
  Finding finding{.culprits = host.ranks};
  const std::string who = fmt::format("host {} ({})", host.name, FormatRanks(host.ranks));
  switch (host.fate) {
    case Fate::kEnded:
      finding.cause = Cause::kHostLost;
      finding.proved = !IsDoubtful(host);
      finding.message = DescribeEnd(host, who);
      finding.remedy = fmt::format(
          "See whether {} is up and why its processes ended: an out-of-memory kill (dmesg), the "
          "launcher's daemon that was ended there, a shutdown or a crash{}.",
          host.name, host.reset ? "; else what on the way ends connections" : "");
      break;
    case Fate::kLauncher:
      finding.cause = Cause::kLauncherLost;
      finding.proved = true;
      finding.message = fmt::format(
          "the launcher's daemon on {} ended while the ranks ran; its agents noticed that", who);
      finding.remedy = fmt::format(
          "Find what ended the launcher's daemon (orted, mpirun, slurmstepd) on {}: an "
          "out-of-memory kill, a scheduler's limit or a person.",
          host.name);
      break;
    case Fate::kCutOff:
      finding.cause = Cause::kHostCutOff;
      finding.message = fmt::format(
          "{} is cut off: nothing comes from its agents, and nothing that is sent to them is "
          "acknowledged",
          who);
      finding.remedy = fmt::format(
          "See whether {} is up, then its network: link, switch port, cable, firewall.", host.name);
      break;
    case Fate::kStopped:
      finding.cause = Cause::kHostStopped;
      finding.proved = host.told;
      finding.message =
          host.told ? fmt::format("all ranks of {} are stopped", who)
                    : fmt::format(
                          "no agent of {} answers, although its kernel takes what is sent "
                          "to them: its processes are stopped or get no processor, or it hangs",
                          who);
      finding.remedy = fmt::format(
          "Find who stopped the processes on {} (a scheduler that suspends, a freezer, job "
          "control; "
          "kill -CONT), or what it hangs in: memory, a dead disk or file server.",
          host.name);
      break;
  }
  finding.headline = Headline::Of(finding.message);
  return finding;
}

// What others say because a host or an agent is gone: errors, silence, waiting, an end (libraries
// end the processes that they still have); and what is said of it.
bool IsConsequence(const Finding& finding, const std::vector<int>& lost) {
  constexpr Cause kConsequences[] = {Cause::kRankFailed, Cause::kRankExited, Cause::kTransportStall,
                                     Cause::kSlowLink,   Cause::kRankBusy,   Cause::kInitFailure,
                                     Cause::kUnknown};
  if (std::ranges::find(kConsequences, finding.cause.known()) != std::end(kConsequences))
    return true;
  return !finding.culprits.empty() && std::ranges::all_of(finding.culprits, [&](int rank) {
    return std::ranges::find(lost, rank) != lost.end();
  });
}

Outcome OutcomeOf(const LostHost& host) {
  if (host.fate == Fate::kEnded) return IsDoubtful(host) ? Outcome::kFailed : Outcome::kKilled;
  return host.fate == Fate::kStopped ? Outcome::kStopped : Outcome::kHung;
}

// Where the culprits of a finding are, if that is one host of several.
void NamePlace(const std::vector<RankPlace>& places, Finding& finding) {
  if (finding.culprits.empty() || RanksByHost(places).size() < 2) return;
  const auto host = [&](int rank) { return places[static_cast<std::size_t>(rank)].host; };
  const std::string first = host(finding.culprits.front());
  const bool one =
      std::ranges::all_of(finding.culprits, [&](int rank) { return host(rank) == first; });
  if (!one || first.empty()) return;
  finding.message += fmt::format("; on host {}", first);
  if (finding.headline.text().find("host " + first) == std::string::npos) {
    finding.headline.Add("; on host " + first);
  }
}

// Who ended after the end of the launch had begun may have ended because of that.
Finding DescribeGone(std::vector<int> ranks) {
  Finding finding{.cause = Cause::kUnknown};
  const bool one = ranks.size() == 1;
  finding.message = fmt::format(
      "the {} of {} ended while the launch was being ended: nobody saw whether {} the reason or "
      "the consequence",
      one ? "agent" : "agents", FormatRanks(ranks), one ? "that was" : "those were");
  finding.remedy =
      "See what the launcher and the scheduler say about why they ended the launch, and run again.";
  finding.headline = Headline::Of(finding.message);
  finding.culprits = std::move(ranks);
  return finding;
}

Finding DescribeAgents(std::vector<int> ranks, Loss loss) {
  if (loss == Loss::kGone) return DescribeGone(std::move(ranks));
  Finding finding{.cause = Cause::kAgentLost, .proved = loss != Loss::kReset};
  const bool one = ranks.size() == 1;
  const std::string who = fmt::format("the {} of {}", one ? "agent" : "agents", FormatRanks(ranks));
  finding.message =
      loss == Loss::kReset
          ? fmt::format("{} {} lost: {} reset or refused: {}", who, one ? "is" : "are",
                        one ? "its connection was" : "their connections were", kWhatResets)
      : loss == Loss::kTold
          ? fmt::format("{} {} told to end by a signal, and {} with {}", who, one ? "was" : "were",
                        one ? "its worker ended" : "their workers ended", one ? "it" : "them")
          : fmt::format("{} ended: {} closed without a word; {}", who,
                        one ? "its connection was" : "their connections were",
                        one ? "its worker ended with it" : "their workers ended with them");
  finding.remedy = fmt::format(
      "Find who ended rank {}'s process on its host (an out-of-memory kill, a scheduler's limit, a "
      "person) and run again: nothing is known of the system under test.",
      ranks.front());
  finding.headline = Headline::Of(finding.message);
  finding.culprits = std::move(ranks);
  return finding;
}

// A signal to end that came to the agent, too, was not meant for its worker alone.
bool EndedAlike(const RankEvidence& rank, Loss loss) {
  const bool end = rank.signal == SIGTERM || rank.signal == SIGINT || rank.signal == SIGHUP;
  return loss == Loss::kTold && rank.state == ProcessState::kSignalled && end;
}

// Agents that ended while others of their host live. Whose worker ended first is told by that.
std::vector<Finding> FindLostAgents(const std::vector<RankPlace>& places,
                                    const std::vector<RankEvidence>& evidence) {
  std::vector<Finding> findings;
  for (const Loss loss : {Loss::kClosed, Loss::kTold, Loss::kReset, Loss::kGone}) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const ProcessState state = evidence[rank].state;
      const bool first = state == ProcessState::kLost || state == ProcessState::kRunning ||
                         EndedAlike(evidence[rank], loss);
      if (first && places[rank].loss == loss && !places[rank].assumed)
        ranks.push_back(static_cast<int>(rank));
    }
    if (!ranks.empty()) findings.push_back(DescribeAgents(std::move(ranks), loss));
  }
  return findings;
}

// Workers may have ended with it, proved or not, and others because of that.
bool MayHaveEndedWorkers(const Finding& finding) {
  return finding.proved || finding.cause == Cause::kAgentLost || finding.cause == Cause::kHostLost;
}

// What was found before follows `causes`, or becomes evidence of the first of them. A proof is no
// evidence of a suspicion.
void PutFirst(std::vector<Finding> causes, const std::vector<int>& lost, Judgement& judgement) {
  for (Finding& finding : judgement.findings) {
    const bool weaker = MayHaveEndedWorkers(causes.front()) || !finding.proved;
    const bool explained = weaker && IsConsequence(finding, lost);
    (explained ? causes.front().evidence : causes).push_back(std::move(finding));
  }
  if (!causes.front().proved) {
    std::stable_partition(causes.begin(), causes.end(), std::mem_fn(&Finding::proved));
  }
  judgement.findings = std::move(causes);
}

void NameLostAgents(const std::vector<RankPlace>& places, const std::vector<RankEvidence>& evidence,
                    Judgement& judgement) {
  std::vector<Finding> agents = FindLostAgents(places, evidence);
  if (agents.empty()) return;
  std::vector<int> lost;
  for (Finding& finding : agents) {
    lost.insert(lost.end(), finding.culprits.begin(), finding.culprits.end());
    NamePlace(places, finding);
  }
  for (const int rank : lost) {
    const Loss loss = places[static_cast<std::size_t>(rank)].loss;
    const bool known = loss != Loss::kGone && loss != Loss::kReset;
    judgement.outcomes[static_cast<std::size_t>(rank)].outcome =
        known ? Outcome::kKilled : Outcome::kFailed;
  }
  PutFirst(std::move(agents), lost, judgement);
  std::ranges::stable_partition(
      judgement.findings, [](const Finding& finding) { return finding.cause != Cause::kUnknown; });
  const bool more = std::ranges::any_of(judgement.findings, [](const Finding& finding) {
    return finding.proved && finding.cause != Cause::kAgentLost;
  });
  judgement.verdict = more ? Verdict::kFail : Verdict::kUnknown;
}

}  // namespace

bool WeAreCutOff(const std::vector<RankPlace>& places) {
  const auto silent =
      std::ranges::count_if(places, [](const RankPlace& place) { return IsSilent(place.loss); });
  const bool left =
      std::ranges::any_of(places, [](const RankPlace& place) { return place.loss == Loss::kLeft; });
  return left || 2 * static_cast<std::size_t>(silent) > places.size();
}

void NameLostHosts(const std::vector<RankPlace>& places, const std::vector<RankEvidence>& evidence,
                   Judgement& judgement) {
  for (Finding& finding : judgement.findings) NamePlace(places, finding);
  std::vector<LostHost> lost = FindLostHosts(places, evidence);
  if (lost.empty()) return NameLostAgents(places, evidence, judgement);
  const bool only_cut_off =
      std::ranges::all_of(lost, [](const LostHost& host) { return host.fate == Fate::kCutOff; });
  if (only_cut_off && WeAreCutOff(places)) lost = {OurSide(places)};
  std::vector<int> ranks;
  std::vector<Finding> findings;
  for (const LostHost& host : lost) {
    findings.push_back(Describe(host));
    ranks.insert(ranks.end(), host.ranks.begin(), host.ranks.end());
    for (const int rank : host.ranks) {
      RankOutcome& outcome = judgement.outcomes[static_cast<std::size_t>(rank)];
      const bool known = evidence[static_cast<std::size_t>(rank)].state != ProcessState::kLost;
      if (!known) outcome.outcome = OutcomeOf(host);
    }
  }
  PutFirst(std::move(findings), ranks, judgement);
  judgement.verdict = Verdict::kFail;
}

}  // namespace lockstep::verdict
