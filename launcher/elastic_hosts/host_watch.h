// HostWatch: where the hosts of an elastic job come from, asked again and again. It never blocks
// the loop, and it has no opinion: a host that fails stays in its list.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "discovery/host_slots.h"

namespace hvd {

struct HostAnswer {
  // In the source's order, none twice; maybe none at all. While there is trouble: the last list
  // that was good.
  std::vector<HostSlots> hosts;
  std::string trouble;    // one sentence why the source has no answer now; empty: it has
  bool hopeless = false;  // asking again cannot help: there is no such program

  bool operator==(const HostAnswer&) const = default;
};

class HostWatch {
 public:
  virtual ~HostWatch() = default;
  // Once. `on_answer` is called by the io_context, never from within a call of this class: with the
  // first answer, and then when the hosts are others, when trouble of another kind arises, and when
  // it is over.
  virtual void Start(std::function<void(const HostAnswer&)> on_answer) = 0;
  // No answer comes any more, and nothing that the watch started is left. May be called at any
  // time, also by on_answer; the destructor does it, too.
  virtual void Stop() = 0;
};

// Makes one, which ends before the io_context.
using HostWatchMaker = std::function<std::unique_ptr<HostWatch>(asio::io_context&)>;

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_
