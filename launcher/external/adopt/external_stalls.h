// ExternalStalls: explains slow collectives among ranks that hvdrun did not start. Without a driver
// to query all hosts, the agent examines its own host only; ranks on other hosts count as
// unreachable. Writes its findings to the stderr of a waiting rank.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_STALLS_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_STALLS_H_

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

class ExternalStalls {
 public:
  // Called if the wait can never end.
  using Endless = std::function<void(uint64_t generation, const std::string& reason)>;

  // `clock` outlives this object.
  ExternalStalls(asio::io_context& io, const Clock& clock, Endless endless);

  // Starts watching the ranks. `generations` outlives this object.
  void Watch(const HostGenerations& generations);

 private:
  void Handle(const ToDriver& message);
  void Conclude();
  void Report(const StallExplained& stall) const;

  const Clock& clock_;
  const Endless endless_;
  const HostGenerations* generations_ = nullptr;
  Plan plan_;              // of the generation being examined
  uint32_t own_host_ = 0;  // in plan_
  uint32_t waiting_ = 0;   // the rank that reported the stall
  std::string reported_;   // key of the last verdict; each is reported once
  RankExaminer examiner_;
  StallRounds rounds_;
  asio::steady_timer limit_timer_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_STALLS_H_
