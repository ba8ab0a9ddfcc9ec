// The bytes inside a frame: integers, doubles and enumerations in the machine's own order (all
// agents of a launch run the same binary), strings and lists with a 32-bit length before them, no
// padding anywhere.
//
// A type is described once, for both directions: its static Describe(fields, record), or a function
// of that name for types of other rooms, calls fields(part, ...) with its parts in their order.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::control {

// What Describe takes: the type, const when it is written.
template <typename T, typename Record>
concept Is = std::same_as<std::remove_const_t<T>, Record>;

// Specialized for structs without padding that travel as they lie in memory.
template <typename T>
inline constexpr bool kTravelsAsBytes = false;

template <typename T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Encoder {
 public:
  // clang-format off
  template <Scalar T>
  Encoder& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // clang-format on
  Encoder& Text(std::string_view text) {
    Put(static_cast<std::uint32_t>(text.size()));
    return Raw(text);
  }
  Encoder& Raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

  // For Describe.
  template <typename... Parts>
  void operator()(const Parts&... parts) {
    (Write(parts), ...);
  }
  // An enumeration whose last value is `last`.
  template <typename T>
  void UpTo(const T& value, T) {
    Put(value);
  }
  // What is left of the frame.
  void Rest(const std::string& bytes) { Raw(bytes); }
  // Of what was read: whether it can be.
  void Require(bool) {}

 private:
  template <typename T>
  void Write(const T& part) {
    if constexpr (Scalar<T>) {
      Put(part);
    } else if constexpr (kTravelsAsBytes<T>) {
      Raw({reinterpret_cast<const char*>(&part), sizeof part});
    } else if constexpr (requires { T::Describe(*this, part); }) {
      T::Describe(*this, part);
    } else {
      Describe(*this, part);
    }
  }
  void Write(const std::string& text) { Text(text); }
  template <typename T>
  void Write(const std::vector<T>& all) {
    Put(static_cast<std::uint32_t>(all.size()));
    if constexpr (kTravelsAsBytes<T>) {
      Raw({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(T)});
    } else {
      for (const T& one : all) Write(one);
    }
  }
  template <typename K, typename V>
  void Write(const std::map<K, V>& all) {
    Put(static_cast<std::uint32_t>(all.size()));
    for (const auto& [key, value] : all) (*this)(key, value);
  }
  template <typename T>
  void Write(const std::optional<T>& part) {
    Put(part.has_value());
    if (part) Write(*part);
  }

  std::string bytes_;
};

// Reading past the end gives zeros and makes ok() false for good: ask once, at the end.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <Scalar T>
  T Get() {
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

  // For Describe, as those of Encoder.
  template <typename... Parts>
  void operator()(Parts&... parts) {
    (Read(parts), ...);
  }
  template <typename T>
  void UpTo(T& value, T last) {
    value = Get<T>();
    Require(value <= last);
  }
  void Rest(std::string& bytes) { bytes = Raw(rest_.size()); }
  void Require(bool possible) { ok_ = ok_ && possible; }

 private:
  // Whoever nests deeper sent nothing of ours.
  static constexpr int kMostDepth = 16;

  template <typename T>
  void Read(T& part) {
    if constexpr (std::same_as<T, bool>) {
      part = Get<std::uint8_t>() != 0;  // of other bytes a bool must not be made
    } else if constexpr (Scalar<T>) {
      part = Get<T>();
    } else if constexpr (kTravelsAsBytes<T>) {
      const std::string_view bytes = Raw(sizeof part);
      if (ok_) std::memcpy(&part, bytes.data(), sizeof part);
    } else {
      Require(++depth_ <= kMostDepth);
      if (ok_) Nest(part);
      --depth_;
    }
  }
  template <typename T>
  void Nest(T& part) {
    if constexpr (requires { T::Describe(*this, part); }) {
      T::Describe(*this, part);
    } else {
      Describe(*this, part);
    }
  }
  void Read(std::string& text) { text = Text(); }
  // The bytes end before more is made than they could hold.
  template <typename T>
  void Read(std::vector<T>& all) {
    const auto count = Get<std::uint32_t>();
    all.clear();
    if constexpr (kTravelsAsBytes<T>) {
      Require(count <= rest_.size() / sizeof(T));
      if (!ok_ || count == 0) return;
      all.resize(count);
      const std::string_view bytes = Raw(count * sizeof(T));
      std::memcpy(all.data(), bytes.data(), bytes.size());
    } else {
      for (std::uint32_t i = 0; i < count && ok_; ++i) {
        T one{};
        Read(one);
        all.push_back(std::move(one));
      }
    }
  }
  template <typename K, typename V>
  void Read(std::map<K, V>& all) {
    all.clear();
    for (auto left = Get<std::uint32_t>(); left > 0 && ok_; --left) {
      K key{};
      Read(key);
      Read(all[key]);
    }
  }
  template <typename T>
  void Read(std::optional<T>& part) {
    part.reset();
    if (Get<std::uint8_t>() != 0) Read(part.emplace());
  }

  std::string_view rest_;
  bool ok_ = true;
  int depth_ = 0;
};

template <typename T>
std::string Encode(const T& record) {
  Encoder encoder;
  encoder(record);
  return encoder.Take();
}

// Nothing when the bytes are no such record, all of it and nothing else.
template <typename T>
std::optional<T> Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  std::optional<T> record(std::in_place);
  decoder(*record);
  if (!decoder.complete()) record.reset();
  return record;
}

}  // namespace lockstep::control
