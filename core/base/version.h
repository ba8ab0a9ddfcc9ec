// Which Lockstep this is: the number that the file VERSION holds, and the commit that was built.
#pragma once

#include <string>

namespace lockstep {

struct Version {
  std::string number;     // "1.2.3"; "": of a file that does not tell
  std::string commit;     // "1a2b3c4"; "": built outside of git, or without --config=stamped
  bool modified = false;  // the checkout differed from that commit
  bool operator==(const Version&) const = default;
};

// Of this program.
Version ThisVersion();

// "1.2.3", "1.2.3 (1a2b3c4)" or "1.2.3 (1a2b3c4, modified)"; "" without a number.
std::string TextOf(const Version& version);
std::string ThisVersionText();

}  // namespace lockstep
