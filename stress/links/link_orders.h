// What a LinkDirector and the plugins say to each other: lines of text.
#pragma once

namespace lockstep::stress::links {

// To a plugin, a word and what follows it.
inline constexpr char kUseOrder[] = "use";        // 0 or 1: whether workers to come use the relay
inline constexpr char kAnswerOrder[] = "answer";  // connection, peer
inline constexpr char kApplyOrder[] = "apply";    // a LinkRule
inline constexpr char kHealOrder[] = "heal";      // rule
inline constexpr char kWatchOrder[] = "watch";    // 0 or 1: the sockets of workers
inline constexpr char kAddressesOrder[] = "addresses";
inline constexpr char kNetworkOrder[] = "network";  // a NetworkRule
// Both ways: a time, which comes back as it is.
inline constexpr char kEcho[] = "echo";
// From it.
inline constexpr char kAskReport[] = "ask";              // connection, endpoint
inline constexpr char kAppliedReport[] = "applied";      // rule
inline constexpr char kTouchedReport[] = "touched";      // rule, bytes
inline constexpr char kAddressesReport[] = "addresses";  // of the host, with a space between
inline constexpr char kDoneReport[] = "done";            // rule, what was done; then it is applied
inline constexpr char kImpossibleReport[] = "impossible";  // rule, why

}  // namespace lockstep::stress::links
