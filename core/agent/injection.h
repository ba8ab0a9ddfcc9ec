// Something that was done to a worker from outside.
#pragma once

#include <string>

namespace lockstep::agent {

// Something that was done to a worker; its end undoes it.
class Injection {
 public:
  virtual ~Injection() = default;
  virtual std::string Describe() const = 0;
};

}  // namespace lockstep::agent
