// ForeignStalls: explains collectives that take too long among ranks that hvdrun did not start.
// There is no driver that could ask the agents of all hosts, so the agent asks itself: of ranks on
// other hosts it knows only that they are there. Its findings are written to the stderr of a rank
// that waits.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_STALLS_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_STALLS_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "launcher/generation/host_generations.h"
#include "launcher/stall/rank_examiner.h"
#include "launcher/stall/stall_rounds.h"
#include "launcher/stall/verdict/verdict.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"

namespace hvd {

class ForeignStalls {
 public:
  // The wait can never end.
  using Endless = std::function<void(uint64_t generation, const std::string& reason)>;

  // `clock` outlives this object.
  ForeignStalls(asio::io_context& io, const Clock& clock, Endless endless);

  // From now on the ranks are watched. `generations` outlives this object.
  void Watch(const HostGenerations& generations);

 private:
  void Take(const ToDriver& message);
  void Conclude();
  void Tell(const StallExplained& stall) const;

  const Clock& clock_;
  const Endless endless_;
  const HostGenerations* generations_ = nullptr;
  Plan plan_;              // of the generation that is looked into
  uint32_t own_host_ = 0;  // in plan_
  uint32_t waiting_ = 0;   // the rank that reported the stall
  std::string said_;       // of the last verdict: each is said once
  RankExaminer examiner_;
  StallRounds rounds_;
  asio::steady_timer limit_timer_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_STALLS_H_
