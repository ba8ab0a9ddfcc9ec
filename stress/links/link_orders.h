// What a LinkDirector and the companions say to each other: lines of text.
#ifndef LOCKSTEP_STRESS_LINKS_LINK_ORDERS_H_
#define LOCKSTEP_STRESS_LINKS_LINK_ORDERS_H_

namespace lockstep {

// To a companion, a word and what follows it.
inline constexpr char kUseOrder[] = "use";        // 0 or 1: whether workers to come use the relay
inline constexpr char kAnswerOrder[] = "answer";  // connection, peer
inline constexpr char kApplyOrder[] = "apply";    // a LinkRule
inline constexpr char kHealOrder[] = "heal";      // rule
// From it.
inline constexpr char kAskReport[] = "ask";          // connection, endpoint
inline constexpr char kAppliedReport[] = "applied";  // rule
inline constexpr char kTouchedReport[] = "touched";  // rule, bytes

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_LINKS_LINK_ORDERS_H_
