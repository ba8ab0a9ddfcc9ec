// What a test tells a library that it preloads: variables of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace lockstep::bench::peers {

inline double NumberFrom(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

inline std::string TextFrom(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace lockstep::bench::peers
