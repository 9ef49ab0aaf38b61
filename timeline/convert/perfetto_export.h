// PerfettoExport: writes the events of a trace in Perfetto's protobuf format (field numbers in
// README.md). At most a third of the JSON's size, since names are interned.
//
// One thread at a time.
#ifndef HVD_TIMELINE_CONVERT_PERFETTO_EXPORT_H_
#define HVD_TIMELINE_CONVERT_PERFETTO_EXPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "timeline/convert/protobuf_text.h"
#include "timeline/read/trace_source.h"

namespace hvd {

class PerfettoExport {
 public:
  // Appends to `out`; `origin` is that of the events.
  PerfettoExport(const TraceOrigin& origin, std::string* out);
  void Add(const TraceEvent& event);

  uint64_t events() const { return events_; }      // written
  uint64_t left_out() const { return left_out_; }  // counters, arrows, and events without a time

 private:
  // Interns texts of a kind: each is written once and then referred to by number.
  struct Interned {
    std::unordered_map<std::string, uint64_t> numbers;
    uint32_t field = 0;  // of InternedData
  };
  uint64_t Intern(Interned* kind, std::string_view raw);
  void ForgetWhenFull();
  uint64_t TrackOf(std::string_view pid, std::string_view tid);
  uint64_t ProcessOf(std::string_view pid);
  void Describe(const TraceEvent& event);
  void DescribeTrack(uint64_t track, uint64_t parent, std::string_view name);
  void Annotate(std::string_view args);
  void Write(uint64_t ns, uint32_t type, uint64_t track, const TraceEvent& event);
  void Packet(const ProtobufText& packet);

  std::string* const out_;
  Interned names_, argument_names_, argument_texts_;
  std::unordered_map<std::string, uint64_t> tracks_;
  std::string last_key_;
  uint64_t last_track_ = 0;
  bool cleared_ = true;  // the next packet resets the interned texts
  ProtobufText interned_, event_, packet_, annotation_;
  uint64_t events_ = 0, left_out_ = 0;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_PERFETTO_EXPORT_H_
