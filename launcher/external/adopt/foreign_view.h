// ForeignView: lets hvdrun top and hvdrun dump look at ranks that hvdrun did not start, as far as
// they are on this host: the agent answers as a driver would that has this host alone.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_VIEW_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_VIEW_H_

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

class ForeignView {
 public:
  // `generations` outlives this object.
  ForeignView(asio::io_context& io, std::string job_id, const HostGenerations& generations);

  // From now on others may look. Not ok: nobody can, and why.
  Status Open() { return live_.Open(job_id_); }
  // A generation has its page, and these slots are in it.
  void UsePage(const std::vector<uint32_t>& slots);

 private:
  LiveService::Hooks Hooks();
  JobView Outline() const;
  StackReader::Workers Ranks() const;
  void Ask(const ToAgent& question);
  void Take(const ToDriver& answer);

  asio::io_context& io_;
  const std::string job_id_;
  const HostGenerations& generations_;
  const HostClock clock_ = HostClock::Ours();
  RecorderReader recorders_;
  StackReader stacks_;
  LiveService live_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_FOREIGN_VIEW_H_
