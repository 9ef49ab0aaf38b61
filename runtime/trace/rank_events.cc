#include "runtime/trace/rank_events.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/trace/chrome_text.h"
#include "runtime/trace/event_names.h"
#include "runtime/trace/recorder.h"

namespace hvd {
namespace {

// Names that scripts make up in each step would exhaust the memory.
constexpr size_t kMostNames = 65536;
constexpr size_t kMostEarly = 4096;  // more ranks than a host has
constexpr const char* kStatusNames[] = {
    "ok",      "in progress", "invalid argument", "not initialized", "duplicate name", "mismatch",
    "aborted", "unsupported", "out of memory",    "forked",          "internal",       "dismissed"};

std::string StatusText(uint32_t status) {
  return status < std::size(kStatusNames) ? kStatusNames[status] : std::to_string(status);
}

std::string Member(const char* key, const std::string& value) {
  return '"' + std::string(key) + "\":" + value;
}

TraceActivity ActivityIn(uint16_t part) { return static_cast<TraceActivity>(part & 0xffU); }

// Empty if the record does not have it; otherwise appended to other members.
std::string WayMember(uint16_t part) {
  const std::string_view algorithm = AlgorithmName(static_cast<TraceAlgorithm>(part >> 8U));
  return algorithm.empty() ? "" : "," + Member("algorithm", JsonText(algorithm));
}

std::string LinkArgs(const TraceRecord& record) {
  return Member("to", std::to_string(record.rank)) + "," +
         Member("sent", std::to_string(record.bytes)) + "," +
         Member("busy_us", std::to_string(record.status));
}

std::string TrialArgs(const TraceRecord& record, std::string_view settings, std::string_view kind) {
  return Member("settings", JsonText(settings)) + "," + Member("kind", JsonText(kind)) + "," +
         Member("bytes_per_second", std::to_string(record.bytes)) + "," +
         Member("steps", std::to_string(record.rank)) + "," +
         Member("step_us", std::to_string(record.status));
}

}  // namespace

void RankEvents::Add(std::span<const TraceRecord> records, uint64_t lost,
                     const TimelineSink& sink) {
  if (lost > 0) {
    lost_ += lost;
    for (const TraceRecord& record : records) {
      if (record.kind == TraceKind::kName) continue;
      now_ = std::max(now_, static_cast<int64_t>(record.stamp));
      break;
    }
    for (auto& [id, name] : names_) EndOpen(name, sink);
    Emit(sink, TimelineEvent::Phase::kMark, "EVENTS_LOST",
         Member("count", std::to_string(lost)) + "," + Member("in_all", std::to_string(lost_)));
  }
  for (const TraceRecord& record : records) {
    if (record.kind == TraceKind::kName) {
      Learn(record);
    } else {
      Record(record, sink);
    }
  }
}

void RankEvents::EndAll(const TimelineSink& sink) {
  for (auto& [id, name] : names_) EndOpen(name, sink);
}

void RankEvents::Close(const TimelineSink& sink) {
  EndAll(sink);
  names_.clear();
}

RankEvents::Name& RankEvents::Find(uint32_t id) {
  if (auto found = names_.find(id); found != names_.end()) return found->second;
  if (names_.size() >= kMostNames) {
    std::erase_if(names_, [](const auto& entry) {
      return entry.second.state == State::kIdle && entry.second.waits == 0 && !entry.second.active;
    });
    if (names_.size() >= kMostNames) names_.clear();
  }
  Name& name = names_[id];
  name.row = Format("tensor {}", id);  // its name was overwritten; it will be recorded again
  return name;
}

// "name\0dtype\0shape", in pieces.
void RankEvents::Learn(const TraceRecord& piece) {
  Name& name = Find(piece.id);
  const uint16_t number = piece.part & ~TraceRecord::kLastPiece;
  if (number == 0) {
    name.pieces.clear();
  } else if (number != name.next_piece || name.pieces.size() > kMostNameBytes) {
    name.next_piece = 0;  // some were lost
    return;
  }
  name.next_piece = static_cast<uint16_t>(number + 1);
  char room[TraceRecord::kNameBytes];
  std::memcpy(room, &piece.stamp, 8);
  std::memcpy(room + 8, &piece.bytes, 8);
  std::memcpy(room + 16, &piece.rank, 8);
  name.pieces.append(room, std::min<size_t>(piece.collective, sizeof room));
  if ((piece.part & TraceRecord::kLastPiece) == 0) return;
  const std::string all = std::exchange(name.pieces, {});
  const size_t dtype = std::min(all.find('\0'), all.size());
  const size_t shape = std::min(all.find('\0', dtype + 1), all.size());
  name.dtype = dtype < all.size() ? all.substr(dtype + 1, shape - dtype - 1) : "";
  name.shape = shape < all.size() ? all.substr(shape + 1) : "";
  // Nothing in the row may be open under another name.
  if (name.state != State::kIdle || name.waits != 0 || name.active) return;
  name.text = all.substr(0, dtype);
  if (!name.text.empty()) name.row = name.text;
}

void RankEvents::Emit(const TimelineSink& sink, TimelineEvent::Phase phase, std::string what,
                      std::string args) const {
  sink.event({phase, now_, rank_, {}, std::move(what), std::move(args)});
}

void RankEvents::EmitOn(Name& name, const TimelineSink& sink, TimelineEvent::Phase phase,
                        std::string what, std::string args) const {
  name.row_ns = now_;
  sink.event({phase, now_, rank_, name.row, std::move(what), std::move(args)});
}

void RankEvents::Record(const TraceRecord& record, const TimelineSink& sink) {
  using Phase = TimelineEvent::Phase;
  if (record.kind == TraceKind::kActivity) return Activity(Find(record.id), record, sink);
  now_ = std::max(now_, static_cast<int64_t>(record.stamp));
  if (record.kind == TraceKind::kCycle) return Emit(sink, Phase::kMark, "CYCLE_START");
  if (record.kind == TraceKind::kStep) return Emit(sink, Phase::kMark, "OPTIMIZER_STEP");
  if (record.kind == TraceKind::kCommit) return Emit(sink, Phase::kMark, "COMMIT");
  if (record.kind == TraceKind::kStall)
    return EmitOn(Find(record.id), sink, Phase::kMark, "STALL",
                  Member("waited_ns", std::to_string(record.bytes)));
  if (record.kind == TraceKind::kLink) return Emit(sink, Phase::kMark, "LINK", LinkArgs(record));
  if (record.kind == TraceKind::kTrial) {
    const Name& trial = Find(record.id);
    return Emit(sink, Phase::kMark, "TUNING_TRIAL", TrialArgs(record, trial.text, trial.dtype));
  }
  if (record.kind < TraceKind::kSubmit || record.kind > TraceKind::kWaitEnd) return;
  Name& name = Find(record.id);
  const std::string what(CollectiveName(record.collective));
  switch (record.kind) {
    case TraceKind::kSubmit:
    case TraceKind::kArrive: {
      const bool own = record.kind == TraceKind::kSubmit;
      if (!own && name.state == State::kRunning && name.early.size() < kMostEarly) {
        name.early.push_back(record.rank);
        return;
      }
      if (name.state == State::kRunning) EndOpen(name, sink);
      Announced(name, own ? rank_ : record.rank, what, sink);
      if (own) sink.submission({rank_, name.row, record.status, record.rank, now_, record.part});
      return;
    }
    case TraceKind::kStart:
      if (name.state == State::kRunning) EndOpen(name, sink);
      EndActivity(name, now_, sink);
      if (name.state == State::kNegotiating) EmitOn(name, sink, Phase::kEnd, "");
      name.state = State::kRunning;
      name.top_level = MovesData(record.collective);
      if (name.top_level) EmitOn(name, sink, Phase::kBegin, what);
      return;
    case TraceKind::kDone: return Done(name, record, sink);
    // A wait is an event of its own row: other threads of the rank go on.
    case TraceKind::kWaitBegin:
      ++name.waits;
      return Emit(sink, Phase::kBegin, "WAIT", Member("tensor", JsonText(name.row)));
    case TraceKind::kWaitEnd:
      if (name.waits == 0) return;
      --name.waits;
      return Emit(sink, Phase::kEnd, "");
    default: return;
  }
}

void RankEvents::Announced(Name& name, uint32_t rank, const std::string& what,
                           const TimelineSink& sink) {
  if (std::exchange(name.state, State::kNegotiating) == State::kIdle)
    EmitOn(name, sink, TimelineEvent::Phase::kBegin, "NEGOTIATE_" + what);
  EmitOn(name, sink, TimelineEvent::Phase::kTick, std::to_string(rank));
}

// Recorded when its operation is over, so other rows may already have later events; its own row
// does not.
void RankEvents::Activity(Name& name, const TraceRecord& record, const TimelineSink& sink) {
  const int64_t ns = std::max(name.row_ns, static_cast<int64_t>(record.stamp));
  now_ = std::max(now_, ns);
  EndActivity(name, ns, sink);
  std::string what = ActivityName(ActivityIn(record.part), record.collective);
  if (what.empty()) return;
  std::string args = Member("bytes", std::to_string(record.bytes));
  if (record.rank > 1) args += "," + Member("tensors", std::to_string(record.rank));
  args += WayMember(record.part);
  name.active = true;
  name.row_ns = ns;
  sink.event({TimelineEvent::Phase::kBegin, ns, rank_, name.row, std::move(what), std::move(args)});
}

void RankEvents::EndActivity(Name& name, int64_t ns, const TimelineSink& sink) {
  if (!std::exchange(name.active, false)) return;
  name.row_ns = ns;
  sink.event({TimelineEvent::Phase::kEnd, ns, rank_, name.row, "", ""});
}

// The operation is over. A faster rank may have had its result and announced the next round before.
void RankEvents::Done(Name& name, const TraceRecord& record, const TimelineSink& sink) {
  const std::vector<uint32_t> early = std::exchange(name.early, {});
  EmitEnd(name, record, sink);
  const std::string what(CollectiveName(record.collective));
  for (uint32_t rank : early) Announced(name, rank, what, sink);
}

void RankEvents::EmitEnd(Name& name, const TraceRecord& record, const TimelineSink& sink) {
  std::string args = Member("bytes", std::to_string(record.bytes));
  if (record.status == 0 && !name.dtype.empty()) {
    args = Member("dtype", JsonText(name.dtype)) + "," + Member("shape", JsonText(name.shape)) +
           "," + args;
  }
  args += WayMember(record.part);
  if (record.status != 0) args += "," + Member("error", JsonText(StatusText(record.status)));
  EndActivity(name, now_, sink);
  const State before = std::exchange(name.state, State::kIdle);
  const bool top_level = std::exchange(name.top_level, false);
  if (before == State::kNegotiating || top_level)
    return EmitOn(name, sink, TimelineEvent::Phase::kEnd, "", std::move(args));
  if (before == State::kRunning) return;  // a barrier or a join
  // It began before the recording.
  EmitOn(name, sink, TimelineEvent::Phase::kTick, std::string(CollectiveName(record.collective)),
         std::move(args));
}

void RankEvents::EndOpen(Name& name, const TimelineSink& sink) {
  const State before = std::exchange(name.state, State::kIdle);
  const bool top_level = std::exchange(name.top_level, false);
  name.early.clear();
  EndActivity(name, now_, sink);
  if (before == State::kNegotiating || top_level)
    EmitOn(name, sink, TimelineEvent::Phase::kEnd, "", Member("complete", "false"));
  for (; name.waits > 0; --name.waits) Emit(sink, TimelineEvent::Phase::kEnd, "");
}

}  // namespace hvd
