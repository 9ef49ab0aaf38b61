// StallRounds: examines the ranks of all hosts when an agent reports a stall, and makes a verdict
// of the answers. A stall that seems unable to end is examined twice. Pure: the time is an
// argument.
#ifndef HVD_LAUNCHER_STALL_STALL_ROUNDS_H_
#define HVD_LAUNCHER_STALL_STALL_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "launcher/stall/answer_round.h"
#include "launcher/stall/verdict/verdict.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"

namespace hvd {

class StallRounds {
 public:
  using Ask = std::function<void(uint32_t host, const ExamineRanks& question)>;

  explicit StallRounds(Ask ask) : ask_(std::move(ask)) {}

  // A host reports a stall in the generation of `plan`. A report during an examination is covered
  // by that one.
  void Begin(const Plan& plan, const StallReport& report, TimePoint now);
  // Handles an answer. kInvalidArgument if it mentions ranks that the host does not have.
  Status Handle(const Plan& plan, uint32_t host, const RanksExamined& answer);

  // The result, once all have answered or the deadline has passed. Call after Handle and at each
  // tick.
  std::optional<StallExplained> Result(const Plan& plan, TimePoint now);
  // When Result may return something without another answer; TimePoint::max(): never.
  TimePoint NextTick() const { return round_.NextTick(); }

 private:
  void AskAll(const Plan& plan, TimePoint now);

  const Ask ask_;
  AnswerRound round_;
  bool second_ = false;  // this is the second examination
  uint64_t generation_ = 0;
  std::set<uint32_t> stacks_;  // ranks
  WorldFacts before_, now_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_STALL_ROUNDS_H_
