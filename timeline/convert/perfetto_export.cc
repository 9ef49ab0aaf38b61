#include "timeline/convert/perfetto_export.h"

#include <utility>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// Numbers of fields and values, from protos/perfetto/trace of Perfetto.
enum TraceField : uint32_t { kPacket = 1 };
enum PacketField : uint32_t {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum TrackEventField : uint32_t { kAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11 };
enum EventType : uint32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };
enum DescriptorField : uint32_t { kUuid = 1, kName = 2, kParentUuid = 5 };
enum AnnotationField : uint32_t {
  kArgumentNameIid = 1,
  kBool = 2,
  kInteger = 4,
  kDouble = 5,
  kJson = 9,
  kTextIid = 17,
};
enum InternedField : uint32_t { kEventNames = 2, kArgumentNames = 3, kArgumentTexts = 29 };
enum EntryField : uint32_t { kIid = 1, kText = 2 };
enum ClockField : uint32_t { kClocks = 1, kClockId = 1, kClockTime = 2 };
constexpr uint64_t kRealtime = 1, kBootTime = 6;
constexpr uint64_t kNothingInterned = 1, kNeedsInterned = 2;  // flags of a sequence
constexpr uint64_t kSequence = 1;
constexpr size_t kMostInterned = 100'000;

std::string TextOf(std::string_view value) {
  return !value.empty() && value[0] == '"' ? StringOf(value) : std::string(value);
}

}  // namespace

PerfettoExport::PerfettoExport(const TraceOrigin& origin, std::string* out) : out_(out) {
  names_.field = kEventNames;
  argument_names_.field = kArgumentNames;
  argument_texts_.field = kArgumentTexts;
  if (!origin.zero_ns) return;
  // Stamps use the boot clock by default; its zero is the zero of the trace.
  ProtobufText snapshot;
  const uint64_t zero = static_cast<uint64_t>(*origin.zero_ns);
  for (const auto& [id, time] : {std::pair{kBootTime, uint64_t{0}}, std::pair{kRealtime, zero}}) {
    ProtobufText clock;
    clock.Number(kClockId, id);
    clock.Number(kClockTime, time);
    snapshot.Bytes(kClocks, clock.bytes());
  }
  packet_.Number(kTimestamp, 0);
  packet_.Number(kSequenceId, kSequence);
  packet_.Bytes(kClockSnapshot, snapshot.bytes());
  Packet(packet_);
}

void PerfettoExport::Packet(const ProtobufText& packet) {
  ProtobufText framed;
  framed.Bytes(kPacket, packet.bytes());
  *out_ += framed.bytes();
  packet_.Clear();
}

uint64_t PerfettoExport::Intern(Interned* kind, std::string_view raw) {
  const auto [entry, is_new] =
      kind->numbers.try_emplace(std::string(raw), kind->numbers.size() + 1);
  if (is_new) {
    ProtobufText text;
    text.Number(kIid, entry->second);
    text.Bytes(kText, TextOf(raw));
    interned_.Bytes(kind->field, text.bytes());
  }
  return entry->second;
}

// Names that a script makes up in each step would exhaust the memory, here and in the reader.
void PerfettoExport::ForgetWhenFull() {
  size_t known = 0;
  for (Interned* kind : {&names_, &argument_names_, &argument_texts_})
    known += kind->numbers.size();
  if (known < kMostInterned) return;
  for (Interned* kind : {&names_, &argument_names_, &argument_texts_}) kind->numbers.clear();
  cleared_ = true;
}

// Ranks are not processes of the system: like other rows they become tracks.
void PerfettoExport::DescribeTrack(uint64_t track, uint64_t parent, std::string_view name) {
  ProtobufText descriptor;
  descriptor.Number(kUuid, track);
  descriptor.Bytes(kName, name);
  if (parent != 0) descriptor.Number(kParentUuid, parent);
  packet_.Number(kSequenceId, kSequence);
  packet_.Bytes(kTrackDescriptor, descriptor.bytes());
  Packet(packet_);
}

uint64_t PerfettoExport::ProcessOf(std::string_view pid) {
  const auto [entry, is_new] = tracks_.try_emplace(std::string(pid), tracks_.size() + 1);
  if (is_new) DescribeTrack(entry->second, 0, "process " + TextOf(pid));
  return entry->second;
}

uint64_t PerfettoExport::TrackOf(std::string_view pid, std::string_view tid) {
  const size_t both = pid.size() + 1 + tid.size();
  const bool same = last_track_ != 0 && last_key_.size() == both &&
                    last_key_.compare(0, pid.size(), pid) == 0 &&
                    last_key_.compare(pid.size() + 1, tid.size(), tid) == 0;
  if (same) return last_track_;
  const uint64_t process = ProcessOf(pid);
  last_key_.assign(pid).append(1, '\n').append(tid);
  const auto [entry, is_new] = tracks_.try_emplace(last_key_, tracks_.size() + 1);
  if (is_new) DescribeTrack(entry->second, process, "row " + TextOf(tid));
  return last_track_ = entry->second;
}

// Names of processes and rows.
void PerfettoExport::Describe(const TraceEvent& event) {
  if (event.name == "\"process_name\"") {
    DescribeTrack(ProcessOf(event.pid), 0, NameIn(event.args));
  } else if (event.name == "\"thread_name\"") {
    const uint64_t track = TrackOf(event.pid, event.tid);
    DescribeTrack(track, ProcessOf(event.pid), NameIn(event.args));
  } else {
    ++left_out_;
    return;
  }
  ++events_;
}

void PerfettoExport::Annotate(std::string_view args) {
  ForEachMember(args, [this](std::string_view key, std::string_view value) {
    annotation_.Clear();
    annotation_.Number(kArgumentNameIid, Intern(&argument_names_, '"' + std::string(key) + '"'));
    const char first = value[0];
    if (first == '"') {
      annotation_.Number(kTextIid, Intern(&argument_texts_, value));
    } else if (first == 't' || first == 'f') {
      annotation_.Number(kBool, first == 't');
    } else if (first == '{' || first == '[' || first == 'n') {
      annotation_.Bytes(kJson, value);
    } else if (const auto number = ParseWhole<int64_t>(value)) {
      annotation_.Signed(kInteger, *number);
    } else {
      annotation_.Double(kDouble, ParseWhole<double>(value).value_or(0));
    }
    event_.Bytes(kAnnotations, annotation_.bytes());
  });
}

void PerfettoExport::Write(uint64_t ns, uint32_t type, uint64_t track, const TraceEvent& event) {
  ForgetWhenFull();
  event_.Clear();
  interned_.Clear();
  event_.Number(kType, type);
  event_.Number(kTrackUuid, track);
  if (type != kSliceEnd && !event.name.empty())
    event_.Number(kNameIid, Intern(&names_, event.name));
  if (type != kSliceEnd || event.phase == 'E') Annotate(event.args);
  packet_.Number(kTimestamp, ns);
  packet_.Number(kSequenceId, kSequence);
  packet_.Number(kSequenceFlags, std::exchange(cleared_, false) ? kNothingInterned | kNeedsInterned
                                                                : kNeedsInterned);
  if (!interned_.empty()) packet_.Bytes(kInternedData, interned_.bytes());
  packet_.Bytes(kTrackEvent, event_.bytes());
  Packet(packet_);
}

void PerfettoExport::Add(const TraceEvent& event) {
  if (event.phase == 'M') return Describe(event);
  const auto ns = NanosecondsOf(event.ts);
  const bool known = event.phase == 'B' || event.phase == 'E' || event.phase == 'X' ||
                     event.phase == 'i' || event.phase == 'I';
  // Perfetto has no time before zero.
  if (!known || !ns || *ns < 0) {
    ++left_out_;
    return;
  }
  ++events_;
  const uint64_t track = TrackOf(event.pid, event.tid), begin = static_cast<uint64_t>(*ns);
  const auto duration = NanosecondsOf(event.dur);
  if (event.phase == 'X' && duration.value_or(0) > 0) {
    Write(begin, kSliceBegin, track, event);
    return Write(begin + static_cast<uint64_t>(*duration), kSliceEnd, track, event);
  }
  const uint32_t type = event.phase == 'B'   ? kSliceBegin
                        : event.phase == 'E' ? kSliceEnd
                                             : kInstant;
  Write(begin, type, track, event);
}

}  // namespace hvd
