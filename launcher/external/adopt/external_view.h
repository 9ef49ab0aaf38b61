// ExternalView: serves hvdrun top and hvdrun dump for the ranks on this host that hvdrun did not
// start: the agent answers like the driver of a job with this host only.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_VIEW_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_VIEW_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/generation/host_generations.h"
#include "launcher/live/live_service.h"
#include "launcher/live/recorder_reader.h"
#include "launcher/stall/stack_reader.h"
#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

class ExternalView {
 public:
  // `generations` outlives this object.
  ExternalView(asio::io_context& io, std::string job_id, const HostGenerations& generations);

  // Starts serving. Not ok: why it cannot.
  Status Open() { return live_.Open(job_id_); }
  // A generation with these slots has its page.
  void UsePage(const std::vector<uint32_t>& slots);

 private:
  LiveService::Hooks Hooks();
  JobView Outline() const;
  StackReader::Workers Ranks() const;
  void Ask(const ToAgent& question);
  void Handle(const ToDriver& answer);

  asio::io_context& io_;
  const std::string job_id_;
  const HostGenerations& generations_;
  const HostClock clock_ = HostClock::Ours();
  RecorderReader recorders_;
  StackReader stacks_;
  LiveService live_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_EXTERNAL_VIEW_H_
