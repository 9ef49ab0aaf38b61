// DriverKvStore: the key-value table of a generation, for a thread of an agent; its owner forwards
// requests to the driver.
//
// Put and Get from that thread, GiveValue and Stop from any.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_DRIVER_KV_STORE_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_DRIVER_KV_STORE_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/net/kv_store.h"

namespace hvd {

class DriverKvStore final : public KvStore {
 public:
  DriverKvStore(std::function<void(std::string key, std::string value)> put,
                std::function<void(std::string key)> want);

  Status Put(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key, Duration timeout) override;

  // Passes in a requested entry.
  void GiveValue(const std::string& key, const std::string& value);
  // Fails all current and later calls of Get.
  void Stop();

 private:
  const std::function<void(std::string, std::string)> put_;
  const std::function<void(std::string)> want_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_ HVD_GUARDED_BY(mutex_);
  bool stopped_ HVD_GUARDED_BY(mutex_) = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_DRIVER_KV_STORE_H_
