// ConnectivityProbe: determines the addresses at which this host reaches others, by connecting and
// authenticating over the same mesh that carries the tensors. Skips addresses that are unroutable
// or lead back to this machine (docker0, virbr0).
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_CONNECTIVITY_PROBE_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_CONNECTIVITY_PROBE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "launcher/agent/inspection/driver_kv_store.h"
#include "launcher/wire/messages.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

class ConnectivityProbe final {
 public:
  // Called on the probe's thread.
  struct Owner {
    std::function<void(std::string key, std::string value)> put;
    std::function<void(std::string key)> want;
    // Once. Other hosts may still probe this one: the probe answers them until it is destroyed.
    std::function<void(ConnectivityProbed answer)> done;
  };

  ConnectivityProbe(ProbeConnectivity question, Owner owner);
  // Gives up and joins the thread, within 0.1 s.
  ~ConnectivityProbe();
  ConnectivityProbe(const ConnectivityProbe&) = delete;

  // Passes in a requested entry. Any thread.
  void GiveValue(const std::string& key, const std::string& value) {
    directory_.GiveValue(key, value);
  }

 private:
  void Run();
  ConnectivityProbed Prove();

  const ProbeConnectivity question_;
  const Owner owner_;
  DriverKvStore directory_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Mesh> mesh_;  // created by the thread
  std::thread thread_;          // last: it uses all of the above
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_CONNECTIVITY_PROBE_H_
