// RankExaminer: detects, in an agent, that a rank of its host waits too long in a collective, and
// examines the ranks from outside on request.
//
// One thread, that of the io_context. Never blocks: the answer follows once CPU use has been
// measured and the stacks have been written.
#ifndef HVD_LAUNCHER_STALL_RANK_EXAMINER_H_
#define HVD_LAUNCHER_STALL_RANK_EXAMINER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "launcher/generation/host_generations.h"
#include "launcher/generation/rank_waits.h"
#include "launcher/process/thread_state.h"
#include "launcher/stall/outside_stacks.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class RankExaminer {
 public:
  // `clock` outlives this object.
  RankExaminer(asio::io_context& io, const Clock& clock, std::function<void(const ToDriver&)> send)
      : clock_(clock), look_timer_(io), answer_timer_(io), outside_(io), send_(std::move(send)) {}

  // Starts watching the ranks. `generations` outlives this object. `reports_idle`: also report long
  // waits as GenerationIdle, whatever the warning time.
  void Watch(const HostGenerations& generations, bool reports_idle);
  // Sends RanksExamined; cancels an unanswered question.
  void Answer(const ExamineRanks& question);

 private:
  // A rank with the first half of its facts.
  struct Subject {
    uint32_t slot = 0;
    int pid = 0;
    ThreadState state;
    bool wanted = false;      // its source line is requested
    int64_t stack_from = -1;  // offset of its stacks in its file; -1: not requested
  };

  void Look();
  void ReportIdle(uint64_t generation, Duration longest, uint64_t finished);
  void Finish();
  // Reads the stacks of requested ranks that wrote none from outside, then answers.
  void AnswerWith(RanksExamined answer);
  RankFacts FactsOf(const Subject& subject, Duration measured) const;

  const Clock& clock_;
  asio::steady_timer look_timer_, answer_timer_;
  OutsideStacks outside_;
  const std::function<void(const ToDriver&)> send_;
  const HostGenerations* generations_ = nullptr;
  bool reports_idle_ = false;
  std::vector<StallWatch> watches_;  // by slot
  uint64_t idle_generation_ = 0;     // in which a rank waits long; 0: none
  uint64_t finished_ = 0;            // collectives finished when that was reported
  ExamineRanks question_;
  std::vector<Subject> subjects_;
  TimePoint asked_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_RANK_EXAMINER_H_
