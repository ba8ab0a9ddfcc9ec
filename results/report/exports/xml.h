// Text for XML.
#ifndef LOCKSTEP_RESULTS_REPORT_EXPORTS_XML_H_
#define LOCKSTEP_RESULTS_REPORT_EXPORTS_XML_H_

#include <string>
#include <string_view>

namespace lockstep::results::report::exports {

// For an element's text or an attribute in double quotes; what is no UTF-8 is replaced.
std::string Xml(std::string_view text);

}  // namespace lockstep::results::report::exports

#endif  // LOCKSTEP_RESULTS_REPORT_EXPORTS_XML_H_
