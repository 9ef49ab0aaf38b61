// FactsCollector: derives facts about ranks from the events of a timeline. Pure; accepts any
// events, including traces without ranks. Memory: about 80 bytes per operation and rank.
#ifndef HVD_TIMELINE_REPORT_FACTS_COLLECTOR_H_
#define HVD_TIMELINE_REPORT_FACTS_COLLECTOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/read/trace_event.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

class FactsCollector {
 public:
  void Add(const TraceEvent& event);
  // The last call.
  TraceFacts Finish();
  // So far.
  const TraceFacts& facts() const { return facts_; }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Row {
    uint32_t tensor = 0;
    size_t operation = kNone;  // the current one
    bool negotiating = false, running = false;
    bool moves_data = true;
    uint32_t activities = 0;  // open, inside of its operation
    size_t activity = 0;      // the outermost of them, in facts_.activities
    int64_t activity_ns = 0;  // its beginning
  };
  struct Rank {
    size_t place = 0;      // in facts_.ranks
    std::string own_mark;  // the text by which an event marks this rank's announcement
    std::unordered_map<int64_t, Row> rows;
    int64_t now_ns = 0;
    bool begun = false;
    uint32_t waits = 0, flying = 0, negotiating = 0;
    int64_t wait_begin_ns = 0;
  };

  Rank* Find(std::string_view pid);
  void Metadata(const TraceEvent& event);
  void NameRank(const TraceEvent& event);
  void Advance(Rank& rank, int64_t ns);
  void OwnRow(Rank& rank, const TraceEvent& event);
  static void AddLink(RankHistory& facts, const TraceEvent& event);
  void TensorRow(Rank& rank, const TraceEvent& event, int64_t ns);
  void BeginActivity(Row& row, const TraceEvent& event, int64_t ns);
  void EndActivity(Row& row, int64_t ns);
  void Submit(Rank& rank, Row& row);
  void Start(Rank& rank, Row& row);
  void End(Rank& rank, Row& row, const TraceEvent& event);
  void Close(Rank& rank, Row& row);
  void OnlyEnd(Rank& rank, Row& row, const TraceEvent& event);
  void Late(const Rank& rank, const Row& row, const TraceEvent& event);
  Row& RowOf(Rank& rank, const TraceEvent& event);
  uint32_t TensorNamed(const std::string& name);
  RankHistory& FactsOf(const Rank& rank) { return facts_.ranks[rank.place]; }

  TraceFacts facts_;
  std::unordered_map<std::string, Rank> ranks_;  // by pid
  std::unordered_map<std::string, uint32_t> tensors_;
  std::string last_pid_;
  Rank* last_rank_ = nullptr;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_FACTS_COLLECTOR_H_
