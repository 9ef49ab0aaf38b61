// RankSignals: SIGUSR1 and SIGUSR2 that hvdrun got, forwarded to the ranks, and what the user is
// told when no rank handles them. SIGUSR1 also asks ranks that train to stop after their step.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_RANK_SIGNALS_H_
#define HVD_LAUNCHER_DRIVER_RANK_SIGNALS_H_

#include <cstdint>
#include <string>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/services/forwarded_signals.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

class RankSignals {
 public:
  // All of them outlive this object.
  RankSignals(const JobState& state, AgentSet& agents, EventQueue& events, Screen& screen)
      : state_(state), agents_(agents), events_(events), screen_(screen) {}

  void Forward(int signal);
  // An agent has answered, or is gone.
  Status Handle(uint32_t host, const SignalForwarded& answer, TimePoint now);
  void HandleGone(uint32_t host, TimePoint now);

 private:
  void PrintUnlessEnding(const std::string& sentence);

  const JobState& state_;
  AgentSet& agents_;
  EventQueue& events_;
  Screen& screen_;
  ForwardedSignals forwarded_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_RANK_SIGNALS_H_
