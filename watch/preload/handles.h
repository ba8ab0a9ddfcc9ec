// What a vendor's handle stands for. Fixed tables in static memory: no call of a program allocates.
// A handle may stand for several requests at once (Open MPI returns one that is already over).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::watch::preload {

struct Known {
  std::uint64_t key = 0;  // 0: an empty place
  std::uint64_t value = 0;
  std::uint32_t number = 0;
  std::uint32_t code = 0;
};

// Whether calls may come from several threads at a time. MPI says no where its program asked for
// less than MPI_THREAD_MULTIPLE: then a lock, which costs as much as a look into a table, is none.
inline constinit bool several_threads = true;

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(several_threads ? &flag : nullptr) {
    while (flag_ && flag_->test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpinLock() {
    if (flag_) flag_->clear(std::memory_order_release);
  }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag* flag_;
};

// Open addressing with backward shift: no tombstones, so it stays fast however long it runs.
template <std::size_t kPlaces>
class HandleTable {
 public:
  // False when the table is full.
  bool Insert(const Known& known) {
    const SpinLock lock(flag_);
    if (count_ >= kPlaces / 4 * 3) return false;
    std::size_t at = Home(known.key);
    while (places_[at].key != 0) at = Next(at);
    places_[at] = known;
    ++count_;
    return true;
  }

  bool Find(std::uint64_t key, Known* known) {
    const SpinLock lock(flag_);
    const std::size_t at = Place(key);
    if (places_[at].key == 0) return false;
    *known = places_[at];
    return true;
  }

  // Of several of this key the one that was inserted last: it stands behind the others.
  bool FindNewest(std::uint64_t key, Known* known) {
    const SpinLock lock(flag_);
    const std::size_t first = Place(key);
    if (places_[first].key == 0) return false;
    *known = places_[first];
    for (std::size_t at = Next(first); places_[at].key != 0; at = Next(at)) {
      if (places_[at].key == key) *known = places_[at];
    }
    return true;
  }

  bool Update(const Known& known) {
    const SpinLock lock(flag_);
    const std::size_t at = Place(known.key);
    if (places_[at].key == 0) return false;
    places_[at] = known;
    return true;
  }

  bool Remove(std::uint64_t key, Known* known) {
    const SpinLock lock(flag_);
    return RemoveAt(Place(key), known);
  }

  // Of several of this key the very one, which is `code` from now on. False where it is gone, also
  // where another one has its key.
  bool Mark(const Known& known, std::uint32_t code) {
    const SpinLock lock(flag_);
    const std::size_t at = PlaceOfSame(known);
    if (places_[at].key == 0) return false;
    places_[at].code = code;
    return true;
  }

  // … which is no more.
  bool RemoveSame(const Known& known) {
    const SpinLock lock(flag_);
    Known removed;
    return RemoveAt(PlaceOfSame(known), &removed);
  }

  // The one of this number; another one of its key where that is gone.
  bool RemoveOne(std::uint64_t key, std::uint32_t number, Known* known) {
    const SpinLock lock(flag_);
    std::size_t at = Place(key);
    while (places_[at].key != 0 && (places_[at].key != key || places_[at].number != number)) {
      at = Next(at);
    }
    return RemoveAt(places_[at].key != 0 ? at : Place(key), known);
  }

 private:
  bool RemoveAt(std::size_t hole, Known* known) {
    if (places_[hole].key == 0) return false;
    *known = places_[hole];
    --count_;
    for (std::size_t at = Next(hole); places_[at].key != 0; at = Next(at)) {
      const std::size_t home = Home(places_[at].key);
      const bool stays = hole <= at ? hole < home && home <= at : hole < home || home <= at;
      if (stays) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = Known();
    return true;
  }

  static std::size_t Home(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15ULL >> 32) & (kPlaces - 1);
  }
  static std::size_t Next(std::size_t at) { return (at + 1) & (kPlaces - 1); }
  std::size_t Place(std::uint64_t key) const {
    std::size_t at = Home(key);
    while (places_[at].key != 0 && places_[at].key != key) at = Next(at);
    return at;
  }

  std::size_t PlaceOfSame(const Known& known) const {
    const auto same = [&](const Known& each) {
      return each.key == known.key && each.value == known.value && each.number == known.number;
    };
    std::size_t at = Home(known.key);
    while (places_[at].key != 0 && !same(places_[at])) at = Next(at);
    return at;
  }

  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
  std::size_t count_ = 0;
  Known places_[kPlaces];
};

// Who uses a handle that is gone is told of it. So the newest of these stay in their table: a
// library may never give them again, and a table that is full ends the recording.
template <typename Table>
class LastGone {
 public:
  static constexpr std::size_t kMost = 1024;

  explicit constexpr LastGone(Table& table) : table_(table) {}
  // `known` is `code` from now on.
  void Mark(const Known& known, std::uint32_t code) {
    if (!table_.Mark(known, code)) return;
    const SpinLock lock(flag_);
    Known& oldest = newest_[next_++ % kMost];
    if (oldest.key != 0) table_.RemoveSame(oldest);
    oldest = known;
  }

 private:
  Table& table_;
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
  std::size_t next_ = 0;
  Known newest_[kMost] = {};
};

}  // namespace lockstep::watch::preload
