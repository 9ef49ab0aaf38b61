#include "timeline/rank_events.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "timeline/chrome_text.h"
#include "timeline/event_names.h"
#include "timeline/recorder.h"

namespace hvd {
namespace {

// Names that scripts make up anew in each step would fill the memory.
constexpr size_t kMostNames = 65536;
constexpr const char* kStatusNames[] = {
    "ok",      "in progress", "invalid argument", "not initialized", "duplicate name", "mismatch",
    "aborted", "unsupported", "out of memory",    "forked",          "internal",       "dismissed"};

std::string StatusText(uint32_t status) {
  return status < std::size(kStatusNames) ? kStatusNames[status] : std::to_string(status);
}

std::string Member(const char* key, const std::string& value) {
  return '"' + std::string(key) + "\":" + value;
}

}  // namespace

void RankEvents::Take(std::span<const TraceRecord> records, uint64_t lost,
                      const TimelineSink& sink) {
  if (lost > 0) {
    lost_ += lost;
    for (const TraceRecord& record : records) {
      if (record.kind == TraceKind::kName) continue;
      now_ = std::max(now_, static_cast<int64_t>(record.stamp));
      break;
    }
    for (auto& [id, name] : names_) EndOpen(name, sink);
    Emit(sink, TimelineEvent::Phase::kMark, nullptr, "EVENTS_LOST",
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

void RankEvents::Close(const TimelineSink& sink) {
  for (auto& [id, name] : names_) EndOpen(name, sink);
  names_.clear();
}

RankEvents::Name& RankEvents::Find(uint32_t id) {
  if (auto found = names_.find(id); found != names_.end()) return found->second;
  if (names_.size() >= kMostNames) {
    std::erase_if(names_, [](const auto& entry) {
      return entry.second.state == State::kIdle && entry.second.waits == 0;
    });
    if (names_.size() >= kMostNames) names_.clear();
  }
  Name& name = names_[id];
  name.text = "tensor " + std::to_string(id);  // its name was overwritten; it will be told again
  return name;
}

// "name\0dtype\0shape", in pieces.
void RankEvents::Learn(const TraceRecord& piece) {
  Name& name = Find(piece.id);
  const uint16_t number = piece.part & ~TraceRecord::kLastPiece;
  if (number == 0) {
    name.pieces.clear();
  } else if (number != name.next_piece || name.pieces.size() > Recorder::kMostNameBytes) {
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
  // Nothing of the row may be open under another name.
  if (name.state == State::kIdle && name.waits == 0) name.text = all.substr(0, dtype);
}

void RankEvents::Emit(const TimelineSink& sink, TimelineEvent::Phase phase, const Name* name,
                      std::string what, std::string args) const {
  sink.event({phase, now_, rank_, name == nullptr ? std::string_view() : name->text,
              std::move(what), std::move(args)});
}

void RankEvents::Record(const TraceRecord& record, const TimelineSink& sink) {
  using Phase = TimelineEvent::Phase;
  now_ = std::max(now_, static_cast<int64_t>(record.stamp));
  if (record.kind == TraceKind::kCycle) return Emit(sink, Phase::kMark, nullptr, "CYCLE_START");
  if (record.kind < TraceKind::kSubmit || record.kind > TraceKind::kWaitEnd) return;
  Name& name = Find(record.id);
  const std::string what(CollectiveName(record.collective));
  switch (record.kind) {
    case TraceKind::kSubmit:
    case TraceKind::kArrive: {
      const bool own = record.kind == TraceKind::kSubmit;
      if (name.state == State::kRunning) EndOpen(name, sink);
      if (std::exchange(name.state, State::kNegotiating) == State::kIdle)
        Emit(sink, Phase::kBegin, &name, "NEGOTIATE_" + what);
      Emit(sink, Phase::kTick, &name, std::to_string(own ? rank_ : record.rank));
      if (own) sink.submission({rank_, name.text, record.status, record.rank, now_});
      return;
    }
    case TraceKind::kStart:
      if (name.state == State::kRunning) EndOpen(name, sink);
      if (name.state == State::kNegotiating) Emit(sink, Phase::kEnd, &name, "");
      name.state = State::kRunning;
      name.top_level = MovesData(record.collective);
      if (name.top_level) Emit(sink, Phase::kBegin, &name, what);
      return;
    case TraceKind::kDone: return Done(name, record, sink);
    // A wait is an event of its own row: other threads of the rank go on.
    case TraceKind::kWaitBegin:
      ++name.waits;
      return Emit(sink, Phase::kBegin, nullptr, "WAIT", Member("tensor", JsonText(name.text)));
    case TraceKind::kWaitEnd:
      if (name.waits == 0) return;
      --name.waits;
      return Emit(sink, Phase::kEnd, nullptr, "");
    default: return;
  }
}

void RankEvents::Done(Name& name, const TraceRecord& record, const TimelineSink& sink) {
  std::string args = Member("bytes", std::to_string(record.bytes));
  if (record.status == 0 && !name.dtype.empty()) {
    args = Member("dtype", JsonText(name.dtype)) + "," + Member("shape", JsonText(name.shape)) +
           "," + args;
  }
  if (record.status != 0) args += "," + Member("error", JsonText(StatusText(record.status)));
  const State before = std::exchange(name.state, State::kIdle);
  const bool top_level = std::exchange(name.top_level, false);
  if (before == State::kNegotiating || top_level)
    return Emit(sink, TimelineEvent::Phase::kEnd, &name, "", std::move(args));
  if (before == State::kRunning) return;  // a barrier or a join
  // Its beginning was before the recording.
  Emit(sink, TimelineEvent::Phase::kTick, &name, std::string(CollectiveName(record.collective)),
       std::move(args));
}

void RankEvents::EndOpen(Name& name, const TimelineSink& sink) {
  const State before = std::exchange(name.state, State::kIdle);
  const bool top_level = std::exchange(name.top_level, false);
  if (before == State::kNegotiating || top_level)
    Emit(sink, TimelineEvent::Phase::kEnd, &name, "", Member("complete", "false"));
  for (; name.waits > 0; --name.waits) Emit(sink, TimelineEvent::Phase::kEnd, nullptr, "");
}

}  // namespace hvd
