#include "runtime/trace/recorder.h"

#include <algorithm>
#include <cstring>

namespace hvd {

TraceRing TraceRing::In(std::span<std::byte> memory) {
  if (memory.size() < BytesFor(1)) return {};
  const uint64_t records = (memory.size() - kTraceHeaderBytes) / sizeof(TraceRecord);
  if (!std::has_single_bit(records) || BytesFor(records) != memory.size()) return {};
  return {reinterpret_cast<TraceRingHeader*>(memory.data()),
          reinterpret_cast<TraceSlot*>(memory.data() + kTraceHeaderBytes), records};
}

Recorder::Recorder(std::span<std::byte> memory, TraceClock clock)
    : ring_(TraceRing::In(memory)), clock_(clock) {
  if (!on()) return;
  next_ = ring_.header->written.load(std::memory_order_relaxed);
  ring_.header->clock.store(static_cast<uint32_t>(clock), std::memory_order_release);
}

void ForEachNameRecord(uint32_t id, std::string_view text,
                       const std::function<void(const TraceRecord&)>& write) {
  text = text.substr(0, kMostNameBytes);
  for (uint16_t part = 0;; ++part) {
    const size_t bytes = std::min(text.size(), TraceRecord::kNameBytes);
    char room[TraceRecord::kNameBytes] = {};
    text.copy(room, bytes);
    text.remove_prefix(bytes);
    TraceRecord record;
    record.kind = TraceKind::kName;
    record.collective = static_cast<uint8_t>(bytes);
    record.part = static_cast<uint16_t>(part | (text.empty() ? TraceRecord::kLastPiece : 0));
    record.id = id;
    std::memcpy(&record.stamp, room, 8);
    std::memcpy(&record.bytes, room + 8, 8);
    std::memcpy(&record.rank, room + 16, 8);
    write(record);
    if (text.empty()) return;
  }
}

void Recorder::WriteName(TraceName* name, std::string_view text) {
  if (name->id == 0) name->id = ++last_id_;
  name->written_at = next_;
  ForEachNameRecord(name->id, text, [this](const TraceRecord& record) { Write(record); });
}

}  // namespace hvd
