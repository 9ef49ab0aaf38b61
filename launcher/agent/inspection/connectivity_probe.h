// ConnectivityProbe: finds out at which addresses this host reaches others, by connecting to them
// and proving the job's key, with the very mesh that will carry the tensors. An address that cannot
// be routed, or leads back to this machine (docker0, virbr0), is left out.
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
  // Called in the thread of the probe.
  struct Owner {
    std::function<void(std::string key, std::string value)> put;
    std::function<void(std::string key)> want;
    // Once. Other hosts may still probe this one: the probe answers them until it is destroyed.
    std::function<void(ConnectivityProbed answer)> done;
  };

  ConnectivityProbe(ProbeConnectivity question, Owner owner);
  // Gives up and waits for the thread, a tenth of a second at most.
  ~ConnectivityProbe();
  ConnectivityProbe(const ConnectivityProbe&) = delete;

  // An entry that was wanted. Any thread.
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
  std::unique_ptr<Mesh> mesh_;  // made by the thread
  std::thread thread_;          // last: it uses all of the above
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_CONNECTIVITY_PROBE_H_
