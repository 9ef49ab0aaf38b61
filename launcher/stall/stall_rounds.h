// StallRounds: asks the agents what their ranks do when one of them reports a stall, and makes the
// verdict of their answers. A stall that looks as if it can never end is looked at twice. Pure: the
// time is an argument.
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

  // A host reports a stall in this generation, whose ranks `plan` has. One that comes while another
  // one is looked into is looked into with it.
  void Begin(const Plan& plan, const StallReport& report, TimePoint now);
  // An answer. kInvalidArgument when the host speaks of ranks that it does not have.
  Status Take(const Plan& plan, uint32_t host, const RanksExamined& answer);

  // The result, once all have answered or have had their time. Call it after Take and at the tick.
  std::optional<StallExplained> Result(const Plan& plan, TimePoint now);
  // When Result may return something though no answer comes; TimePoint::max(): never.
  TimePoint NextTick() const { return round_.NextTick(); }

 private:
  void AskAll(const Plan& plan, TimePoint now);

  const Ask ask_;
  AnswerRound round_;
  bool second_ = false;  // the round is the second look
  uint64_t generation_ = 0;
  std::set<uint32_t> stacks_;  // ranks
  WorldFacts before_, now_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_STALL_ROUNDS_H_
