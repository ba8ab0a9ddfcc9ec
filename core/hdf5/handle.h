// RAII for HDF5's identifiers, and its error stack kept quiet: messages are ours.
#pragma once

#include <fmt/core.h>
#include <hdf5.h>

#include <string>
#include <utility>

namespace lockstep::hdf5 {

// Owns one HDF5 identifier; a negative one owns nothing and is not ok().
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (ok()) close_(id_);
  }

  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// While one lives, HDF5 prints no error stack on this thread.
class Silence {
 public:
  Silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// A file that is built or read, and the first thing that went wrong with it. What follows after it
// is void, so long sequences of calls need one look at the end.
class File {
 public:
  explicit File(hid_t open) : id(open) {}
  const hid_t id;
  bool ok() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  void Note(std::string text) {
    if (ok()) text_ = std::move(text);
  }
  template <typename First, typename... More>
  void Note(fmt::format_string<First, More...> format, First&& first, More&&... more) {
    Note(fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
  }

 private:
  std::string text_;
};

}  // namespace lockstep::hdf5
