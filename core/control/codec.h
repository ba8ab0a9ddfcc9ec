// The bytes inside a frame: integers and doubles in the machine's own order (all agents of a launch
// run the same binary), strings with a 32-bit length before them, no padding anywhere.
#ifndef LOCKSTEP_CORE_CONTROL_CODEC_H_
#define LOCKSTEP_CORE_CONTROL_CODEC_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep::control {

class Encoder {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> Encoder& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Encoder& Text(std::string_view text) {
    Put(static_cast<std::uint32_t>(text.size()));
    return Raw(text);
  }
  Encoder& Raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reading past the end gives zeros and makes ok() false for good: ask once, at the end.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    const std::string_view bytes = Raw(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string Text() { return std::string(Raw(Get<std::uint32_t>())); }
  std::string_view Raw(std::size_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }
  // Everything was there and nothing is left.
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace lockstep::control

#endif  // LOCKSTEP_CORE_CONTROL_CODEC_H_
