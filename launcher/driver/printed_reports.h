// PrintedReports: reports to the agents how much of their workers' output has been printed, in a
// job that another hvdrun may take over: agents keep the rest.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_PRINTED_REPORTS_H_
#define HVD_LAUNCHER_DRIVER_PRINTED_REPORTS_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"

namespace hvd {

class PrintedReports {
 public:
  // All of them outlive this object, but for `screen`, which calls SendSoon.
  PrintedReports(asio::io_context& io, const JobState& state, AgentSet& agents, Screen& screen)
      : timer_(io), state_(state), agents_(agents), screen_(screen) {}
  PrintedReports(const PrintedReports&) = delete;

  // Some output was printed. Not every line is a message: reports are sent 20 ms apart.
  void SendSoon();

 private:
  void Send();

  asio::steady_timer timer_;
  bool scheduled_ = false;
  const JobState& state_;
  AgentSet& agents_;
  Screen& screen_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_PRINTED_REPORTS_H_
