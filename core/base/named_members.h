// Members of a record with their names, each said once. They go to a function, or into a list:
//   LOCKSTEP_FIELDS(fields, row, rank, bytes);   // fields("rank", row.rank), fields("bytes", …)
//   Json json = {LOCKSTEP_PAIRS(row, rank, bytes), {"gbps", Gbps(row)}};   // {"rank", row.rank}, …
#pragma once

#define LOCKSTEP_FIELDS(function, record, ...) \
  LOCKSTEP_RESCAN(LOCKSTEP_EACH_MEMBER(function, record, __VA_ARGS__))
#define LOCKSTEP_PAIRS(record, ...) LOCKSTEP_FIELDS(LOCKSTEP_PAIR, record, __VA_ARGS__)
#define LOCKSTEP_PAIR(name, value) \
  { name, value }

// No macro expands itself, so what is left of the list is scanned again: 27 times and more.
#define LOCKSTEP_EACH_MEMBER(function, record, member, ...) \
  function(#member, record.member)                          \
      __VA_OPT__(, LOCKSTEP_EACH_AGAIN LOCKSTEP_NOTHING(function, record, __VA_ARGS__))
#define LOCKSTEP_NOTHING ()
#define LOCKSTEP_EACH_AGAIN() LOCKSTEP_EACH_MEMBER
#define LOCKSTEP_RESCAN(...) LOCKSTEP_RESCAN_9(LOCKSTEP_RESCAN_9(LOCKSTEP_RESCAN_9(__VA_ARGS__)))
#define LOCKSTEP_RESCAN_9(...) LOCKSTEP_RESCAN_3(LOCKSTEP_RESCAN_3(LOCKSTEP_RESCAN_3(__VA_ARGS__)))
#define LOCKSTEP_RESCAN_3(...) LOCKSTEP_RESCAN_1(LOCKSTEP_RESCAN_1(LOCKSTEP_RESCAN_1(__VA_ARGS__)))
#define LOCKSTEP_RESCAN_1(...) __VA_ARGS__
