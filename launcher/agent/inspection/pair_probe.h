// PairProbe: measures the routes from this host to others, one at a time, over the mesh that
// carries the tensors: median round trip of a small message, and bandwidth of a short transfer. For
// hvdrun doctor.
//
// One of the two hosts leads: it sends small messages, which are echoed, and then bursts of
// doubling size until one takes 0.3 s or 32 MiB have been sent. Then the other host sends bursts.
// Gives up after 3 s without expected bytes, which detects routes that pass small messages only.
//
// Has its own thread; call all functions from one other thread.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_PAIR_PROBE_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_PAIR_PROBE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/agent/inspection/driver_kv_store.h"
#include "launcher/wire/messages.h"
#include "runtime/base/mutex.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

class PairProbe final {
 public:
  static constexpr uint64_t kGeneration = 1;  // the directory with the addresses
  // Maximum time between a MeasurePair and its answer.
  static constexpr Duration kAnswerLimit = std::chrono::seconds(14);

  // Called on the probe's thread.
  struct Owner {
    std::function<void(std::string key, std::string value)> put;
    std::function<void(std::string key)> want;
    std::function<void(PairMeasured answer)> done;  // once per Measure
  };

  PairProbe(OpenProbe question, Owner owner);
  // Gives up and joins the thread, within 0.1 s.
  ~PairProbe();
  PairProbe(const PairProbe&) = delete;

  // Passes in a requested entry.
  void GiveValue(const std::string& key, const std::string& value);
  // Queues a measurement.
  void Measure(const MeasurePair& question);

 private:
  void Run();
  Result<std::unique_ptr<Mesh>> OpenMesh();
  std::optional<MeasurePair> NextQuestion();
  bool stopping();

  const OpenProbe question_;
  const Owner owner_;
  DriverKvStore directory_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<MeasurePair> asked_ HVD_GUARDED_BY(mutex_);
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_PAIR_PROBE_H_
