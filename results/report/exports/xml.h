// Text for XML.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::results::report::exports {

// For an element's text or an attribute in double quotes; what is no UTF-8 is replaced.
std::string Xml(std::string_view text);

}  // namespace lockstep::results::report::exports
