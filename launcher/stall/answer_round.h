// AnswerRound: one question to the agents of several hosts: which have not answered yet, and the
// deadline. Pure: the time is an argument.
#ifndef HVD_LAUNCHER_STALL_ANSWER_ROUND_H_
#define HVD_LAUNCHER_STALL_ANSWER_ROUND_H_

#include <cstdint>
#include <set>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

class AnswerRound {
 public:
  // Returns the number of the question, which the answers repeat.
  uint32_t Begin(const std::vector<uint32_t>& hosts, TimePoint deadline) {
    waiting_ = {hosts.begin(), hosts.end()};
    deadline_ = deadline;
    open_ = true;
    return ++number_;
  }
  // False for an answer to another question, or a second one.
  bool NoteAnswer(uint32_t host, uint32_t number) {
    return open_ && number == number_ && waiting_.erase(host) != 0;
  }
  // True once, when all have answered or the deadline has passed; ends the round.
  bool Close(TimePoint now) {
    if (!open_ || (!waiting_.empty() && now < deadline_)) return false;
    open_ = false;
    return true;
  }

  bool is_open() const { return open_; }
  // When Close may become true without another answer; TimePoint::max(): never.
  TimePoint NextTick() const { return open_ ? deadline_ : TimePoint::max(); }

 private:
  bool open_ = false;
  uint32_t number_ = 0;
  std::set<uint32_t> waiting_;  // hosts
  TimePoint deadline_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_ANSWER_ROUND_H_
