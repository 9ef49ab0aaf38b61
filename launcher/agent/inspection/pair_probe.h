// PairProbe: measures the routes from this host to others, one at a time, with the mesh that
// carries the tensors: the median round trip of a small message, and how fast a short transfer
// goes. For hvdrun doctor.
//
// One of two hosts leads: it sends small messages, which come back, and then bursts, each twice as
// large as the one before, until one takes 0.3 s or 32 MiB are sent in all. Then the other one does
// the bursts. Bytes that stay away for 3 s are given up, so that a route on which only small
// messages pass is found.
//
// Has a thread of its own; all functions from one other thread.
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
  static constexpr uint64_t kGeneration = 1;  // whose directory has the addresses
  // The longest time between a MeasurePair and its answer.
  static constexpr Duration kAnswerLimit = std::chrono::seconds(14);

  // Called in the thread of the probe.
  struct Owner {
    std::function<void(std::string key, std::string value)> put;
    std::function<void(std::string key)> want;
    std::function<void(PairMeasured answer)> done;  // once per Measure
  };

  PairProbe(OpenProbe question, Owner owner);
  // Gives up and waits for the thread, a tenth of a second at most.
  ~PairProbe();
  PairProbe(const PairProbe&) = delete;

  // An entry that was wanted.
  void GiveValue(const std::string& key, const std::string& value);
  // After those that were asked for before.
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
