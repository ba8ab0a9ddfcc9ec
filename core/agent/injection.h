// Something that was done to a worker from outside.
#ifndef LOCKSTEP_CORE_AGENT_INJECTION_H_
#define LOCKSTEP_CORE_AGENT_INJECTION_H_

#include <string>

namespace lockstep::agent {

// Something that was done to a worker; its end undoes it.
class Injection {
 public:
  virtual ~Injection() = default;
  virtual std::string Describe() const = 0;
};

}  // namespace lockstep::agent

#endif  // LOCKSTEP_CORE_AGENT_INJECTION_H_
