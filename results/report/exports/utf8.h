// Text from machines and libraries, safe to write where UTF-8 is required.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::results::report::exports {

// The text, with U+FFFD in the place of what is no UTF-8.
std::string Utf8(std::string_view text);

}  // namespace lockstep::results::report::exports
