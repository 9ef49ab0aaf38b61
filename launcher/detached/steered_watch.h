// SteeredWatch: applies the user's commands to the host list of a running elastic job: hvdrun drain
// removes a host, hvdrun scale limits the number of slots. The rest of hvdrun sees a changing list
// of hosts, as from a discovery script.
#ifndef HVD_LAUNCHER_DETACHED_STEERED_WATCH_H_
#define HVD_LAUNCHER_DETACHED_STEERED_WATCH_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

// The user's commands; in a file, one per line: "limit 4", "drain node2".
struct Steering {
  uint32_t limit = 0;             // total slots; 0: no limit
  std::set<std::string> drained;  // host names
  bool operator==(const Steering&) const = default;
};

// Pure. Ignores unknown lines.
Steering ParseSteering(std::string_view text);
std::string SteeringText(const Steering& steering);
// The answer without drained hosts and slots above the limit. Pure.
HostAnswer Steered(const HostAnswer& answer, const Steering& steering);

class SteeredWatch final : public HostWatch {
 public:
  // `file` need not exist; it is polled.
  SteeredWatch(asio::io_context& io, std::unique_ptr<HostWatch> hosts, std::string file)
      : hosts_(std::move(hosts)), file_(std::move(file)), timer_(io) {}
  ~SteeredWatch() override { Stop(); }

  void Start(std::function<void(const HostAnswer&)> on_answer) override;
  void Stop() override;

 private:
  void Look();
  void Answer();

  std::unique_ptr<HostWatch> hosts_;
  const std::string file_;
  asio::steady_timer timer_;
  std::function<void(const HostAnswer&)> on_answer_;
  Steering steering_;
  std::optional<HostAnswer> last_;  // the last answer of the source
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_STEERED_WATCH_H_
