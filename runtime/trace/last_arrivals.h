// LastArrivals: determines, per tensor and round, which rank submitted it last and how late. Pure.
#ifndef HVD_RUNTIME_TRACE_LAST_ARRIVALS_H_
#define HVD_RUNTIME_TRACE_LAST_ARRIVALS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/trace/timeline_event.h"

namespace hvd {

struct LastArrival {
  uint32_t rank = 0;            // the last one
  int64_t ns = 0;               // when
  int64_t late_ns = 0;          // after the previous one
  int64_t first_waited_ns = 0;  // how long the first one waited
};

class LastArrivals {
 public:
  // Returns a result once every member of the process set has submitted this round.
  std::optional<LastArrival> Note(const Submission& submission);
  // The rank begins this generation and counts rounds from zero. Late records of other ranks may
  // follow, so rounds of the previous generation are kept for a while.
  void BeginRank(uint32_t rank, uint64_t generation);

 private:
  struct Round {
    uint32_t arrived = 0;
    uint32_t last_rank = 0;
    int64_t first_ns = 0, last_ns = 0, before_last_ns = 0;
  };
  std::string KeyOf(const Submission& submission);

  std::unordered_map<uint32_t, uint64_t> generations_;  // of each rank
  std::unordered_map<std::string, Round> rounds_;
  std::deque<std::string> oldest_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_LAST_ARRIVALS_H_
