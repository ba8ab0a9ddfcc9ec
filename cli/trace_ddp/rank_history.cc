// Each record is a kind, a time and its parts. A record that was cut off, because its process was
// killed meanwhile, is left out.
#include "cli/trace_ddp/rank_history.h"

#include <string>
#include <utility>

#include "cli/trace_ddp/rank.h"
#include "core/base/clock.h"
#include "core/control/codec.h"
#include "core/control/records.h"

// Records are read by the program that wrote them.
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::collective::Operation> = true;
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::ddp::Section> = true;
template <>
inline constexpr bool lockstep::control::kTravelsAsBytes<lockstep::journal::Annotation> = true;

namespace lockstep::cli::trace_ddp {
namespace {

enum class Record : char {
  kSection = 's',
  kPhase = 'p',
  kCall = 'c',
  kBegin = 'b',
  kDone = 'd',
  kEnd = 'e',
  kEnvironment = 'x',
};

template <typename... Parts>
std::string RecordOf(Record kind, const Parts&... parts) {
  control::Encoder record;
  record(kind, MonotonicNs(), parts...);
  return record.Take();
}

template <typename T>
T Get(control::Decoder& decoder) {
  T part{};
  decoder(part);
  return part;
}

class HistoryReader {
 public:
  explicit HistoryReader(RankHistory& history) : history_(history), calls_(history.trace) {}

  // False: it was cut off.
  bool ReadRecord(control::Decoder& decoder) {
    const auto kind = decoder.Get<Record>();
    now_.ns = decoder.Get<std::int64_t>();
    switch (kind) {
      case Record::kSection:
        return OnSection(Get<ddp::Section>(decoder), decoder.ok());
      case Record::kCall: {
        const auto operation = Get<collective::Operation>(decoder);
        return OnCall(operation, Get<journal::Annotation>(decoder), decoder.ok());
      }
      case Record::kPhase:
        now_.phase = decoder.Get<journal::Phase>();
        return Note(decoder.ok());
      case Record::kBegin:
        now_.inside = true;
        ++now_.begun;
        return Note(decoder.ok());
      case Record::kDone:
        now_.inside = false;
        if (!Get<bool>(decoder) && decoder.ok()) history_.failed_ns = now_.ns;
        return Note(decoder.ok());
      case Record::kEnd:
        decoder(history_.trace.status, history_.trace.tensors);
        if (decoder.ok()) history_.end_ns = now_.ns;
        return decoder.ok();
      case Record::kEnvironment:
        decoder(history_.environment);
        return decoder.ok();
    }
    return false;
  }

 private:
  bool OnSection(const ddp::Section& section, bool whole) {
    if (whole) calls_.OnSection(section);
    return whole;
  }
  bool OnCall(const collective::Operation& operation, const journal::Annotation& annotation,
              bool whole) {
    if (!whole) return false;
    calls_.OnCollective(operation, annotation);
    ++now_.calls;
    return Note(true);
  }
  bool Note(bool whole) {
    if (whole) history_.moments.push_back(now_);
    return whole;
  }

  RankHistory& history_;
  TraceRecorder calls_;
  Moment now_;
};

}  // namespace

void HistoryWriter::OnSection(const ddp::Section& section) {
  seat_.Write(RecordOf(Record::kSection, section));
}
void HistoryWriter::OnPhase(journal::Phase phase) { seat_.Write(RecordOf(Record::kPhase, phase)); }
void HistoryWriter::OnCollective(const collective::Operation& operation,
                                 const journal::Annotation& annotation) {
  seat_.Write(RecordOf(Record::kCall, operation, annotation));
}
void HistoryWriter::OnBegin() { seat_.Write(RecordOf(Record::kBegin)); }
void HistoryWriter::OnDone(bool well) { seat_.Write(RecordOf(Record::kDone, well)); }
void HistoryWriter::OnEnd(const TracedRank& trace) {
  seat_.Write(RecordOf(Record::kEnd, trace.status, trace.tensors));
}
void HistoryWriter::OnEnvironment(const Status& status) { seat_.Write(EnvironmentRecord(status)); }
std::string EnvironmentRecord(const Status& status) {
  return RecordOf(Record::kEnvironment, status);
}

RankHistory ReadHistory(EndedRank ended) {
  RankHistory history;
  HistoryReader reader(history);
  control::Decoder decoder(ended.written);
  while (!decoder.rest().empty() && reader.ReadRecord(decoder)) {
  }
  history.process = std::move(ended);
  return history;
}

}  // namespace lockstep::cli::trace_ddp
