// NamedHosts: converts a source's host names to hosts of the job, without blocking the loop.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_

#include <asio/io_context.hpp>
#include <functional>
#include <vector>

#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/own_names.h"
#include "launcher/elastic_hosts/watch_parts.h"

namespace hvd {

class NamedHosts {
 public:
  NamedHosts(asio::io_context& io, const WatchParts& parts)
      : default_slots_(parts.default_slots), own_names_(io, parts.own_names) {}

  // `then` is called from the io_context, unless Forget() is called first.
  void Resolve(std::vector<HostSpec> specs, std::function<void(std::vector<HostSlots>)> then);
  void Forget() { own_names_.Forget(); }

 private:
  std::function<uint32_t(bool remote)> default_slots_;
  OwnNames own_names_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_
