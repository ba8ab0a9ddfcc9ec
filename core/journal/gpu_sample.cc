#include "core/journal/gpu_sample.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

namespace lockstep::journal {
namespace {

// "domain:bus:device.function" with four digits of the domain, which all forms have.
constexpr std::size_t kShortForm = 12;

}  // namespace

std::string DescribeThrottling(std::int64_t reasons) {
  // nvmlClocksThrottleReasons: 0x1 idle, 0x2 clocks set by a person, 0x10 sync boost and 0x100
  // display setting are no faults.
  static constexpr std::pair<std::int64_t, const char*> kNames[] = {{0x4, "power cap"},
                                                                    {0x8, "hardware slowdown"},
                                                                    {0x20, "thermal (software)"},
                                                                    {0x40, "thermal (hardware)"},
                                                                    {0x80, "power brake"}};
  std::string text;
  if (reasons < 0) return "unknown";
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

std::vector<PlacedGpuSample> PlaceSamples(const std::vector<GpuSamples>& hosts) {
  std::vector<PlacedGpuSample> placed;
  for (const GpuSamples& host : hosts) {
    for (const GpuSample& sample : host.samples) {
      const bool known = sample.gpu >= 0 && sample.gpu < std::ssize(host.buses);
      placed.push_back(
          {host.rank, known ? host.buses[static_cast<std::size_t>(sample.gpu)] : "", sample});
    }
  }
  return placed;
}

bool SameBus(const std::string& a, const std::string& b) {
  if (a.size() < kShortForm || b.size() < kShortForm) return false;
  const std::string_view short_a = std::string_view(a).substr(a.size() - kShortForm);
  const std::string_view short_b = std::string_view(b).substr(b.size() - kShortForm);
  return std::equal(short_a.begin(), short_a.end(), short_b.begin(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace lockstep::journal
