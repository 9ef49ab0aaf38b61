// What happens to a simulated job, in the order of time: events of the model, and the ticks that
// the job asks for.
#ifndef HVD_TEST_SIM_SIM_EVENTS_H_
#define HVD_TEST_SIM_SIM_EVENTS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/job.h"

namespace hvd::test {

class SimEvents {
 public:
  // By `bound` the job is to be done.
  explicit SimEvents(Duration bound) : bound_(bound) {}

  TimePoint now() const { return now_; }
  void Later(Duration delay, std::function<void()> happens) {
    events_.push({now_ + delay, order_++, std::move(happens)});
  }
  // The next event, while nobody looks at the job's clock. False: there is none.
  bool RunNextEvent() {
    if (events_.empty()) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.happens();
    return true;
  }
  // The next event, or `tick` if that is due before. The rule that is broken; empty: none.
  std::string RunNext(const JobState& state, const std::function<void()>& tick) {
    const std::optional<TimePoint> due = NextTick(state);
    if (events_.empty() && !due) return "nothing will ever happen again";
    if (due && (events_.empty() || *due <= events_.top().at)) {
      now_ = std::max(now_, *due);
      tick();
      const std::optional<TimePoint> next = NextTick(state);
      if (next && *next <= now_ && state.phase != JobPhase::kDone)
        return "a tick has nothing to do and comes again at once";
    } else {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.happens();
    }
    return now_ > TimePoint() + bound_ ? "the job does not end" : "";
  }

 private:
  struct Event {
    TimePoint at;
    uint64_t order = 0;
    std::function<void()> happens;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  const Duration bound_;
  TimePoint now_{};
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_SIM_EVENTS_H_
