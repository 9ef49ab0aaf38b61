// FixedWatch: the hosts of -H, or this machine; answers once.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_FIXED_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_FIXED_WATCH_H_

#include <asio/io_context.hpp>
#include <functional>
#include <vector>

#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/elastic_hosts/named_hosts.h"
#include "launcher/elastic_hosts/watch_parts.h"

namespace hvd {

class FixedWatch final : public HostWatch {
 public:
  FixedWatch(asio::io_context& io, std::vector<HostSpec> specs, const WatchParts& parts)
      : named_(io, parts), specs_(std::move(specs)) {}
  ~FixedWatch() override { Stop(); }

  void Start(std::function<void(const HostAnswer&)> on_answer) override;
  void Stop() override { named_.Forget(); }

 private:
  NamedHosts named_;
  std::vector<HostSpec> specs_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_FIXED_WATCH_H_
