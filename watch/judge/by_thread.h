// What is known of each thread of a rank. Most ranks have one or two, so nothing is allocated for
// what comes and goes with each call. In the order of their numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::watch::judge {

template <typename T>
class ByThread {
 public:
  using Item = std::pair<std::uint16_t, T>;

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

  auto find(std::uint16_t thread) {
    const auto at = Lower(thread);
    return at != items_.end() && at->first == thread ? at : items_.end();
  }
  T& operator[](std::uint16_t thread) {
    auto at = Lower(thread);
    if (at == items_.end() || at->first != thread) at = items_.insert(at, Item(thread, T()));
    return at->second;
  }
  void erase(std::uint16_t thread) {
    const auto at = find(thread);
    if (at != items_.end()) items_.erase(at);
  }

 private:
  auto Lower(std::uint16_t thread) {
    return std::ranges::lower_bound(items_, thread, {}, &Item::first);
  }

  std::vector<Item> items_;
};

}  // namespace lockstep::watch::judge
