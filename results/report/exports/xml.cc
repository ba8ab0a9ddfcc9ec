#include "results/report/exports/xml.h"

#include "results/report/exports/utf8.h"

namespace lockstep::results::report::exports {

// XML 1.0 allows no other control characters, not even as references.
std::string Xml(std::string_view text) {
  std::string escaped;
  for (const char c : Utf8(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      default:
        escaped += c >= 0 && c < 32 && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace lockstep::results::report::exports
