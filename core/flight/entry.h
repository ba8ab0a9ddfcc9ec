// One entry of a dump, from its dictionary.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/flight/document.h"
#include "core/flight/dump.h"

namespace lockstep::flight {

struct FlightEntry {
  FlightCall call;  // all but its group
  std::int64_t record_id = 0;
  std::int64_t started_ns = 0;    // 0: not said
  std::int64_t completed_ns = 0;  // 0: not said
  std::string_view backend;       // of the document, as the next two
  std::string_view group;
  std::string_view description;
};

// Keeps what entries share (keys, frames), so that each is looked at once.
class FlightEntryParser {
 public:
  FlightEntryParser(const FlightDocument& document, const std::string& file, FlightTexts& texts)
      : document_(document), file_(file), texts_(texts) {}

  Result<FlightEntry> Parse(const FlightValue& value);

 private:
  enum Field : int {
    kRecordId,
    kGroup,
    kCollectiveSequence,
    kSequence,  // before format 2.2
    kPeerSequence,
    kIsPeer,
    kName,
    kInputSizes,
    kOutputSizes,
    kInputTypes,
    kOutputTypes,
    kState,
    kRetired,
    kCreated,
    kStarted,
    kCompleted,
    kTimeout,
    kFrames,
    kFields,
  };

  static Field FieldOf(std::string_view key);
  Status Error(const std::string& what) const;
  void Collect(const FlightValue& value);
  const FlightValue& At(Field field) const { return fields_[static_cast<std::size_t>(field)]; }
  std::int64_t IntegerAt(Field field) const;
  bool BoolAt(Field field) const;
  Status ParseGroup(FlightEntry& entry) const;
  Status ParseName(FlightEntry& entry);
  Status ParseProgress(FlightEntry& entry) const;
  Status ParseShape(const FlightValue& sizes, std::int64_t& elements, std::string* shape);
  Status ParseTensors(Field sizes, Field types, std::int64_t& elements, std::string& text,
                      std::string_view& type);
  Status ParseArguments(FlightCall& call);
  std::int32_t PlaceOf(const FlightValue& frames);
  // The text of a frame; 0 for one of PyTorch's own.
  std::int32_t FrameOf(const FlightValue& frame);
  // Values that are named again and again cost time each time: more looks than any real dump needs
  // are refused.
  bool Spend(std::size_t looks);

  const FlightDocument& document_;
  const std::string& file_;
  FlightTexts& texts_;
  std::int64_t number_ = -1;  // of the entry
  std::array<FlightValue, kFields> fields_;
  // Entries have their keys in the same order, and share their texts.
  std::vector<std::pair<const char*, Field>> keys_;
  std::vector<std::int32_t> frames_;  // by dictionary: 0 not seen, 1 PyTorch's, else text + 2
  std::uint64_t looks_ = 0;
};

}  // namespace lockstep::flight
