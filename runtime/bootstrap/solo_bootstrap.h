// SoloBootstrap: a world of one, for scripts run without a launcher.
#ifndef HVD_RUNTIME_BOOTSTRAP_SOLO_BOOTSTRAP_H_
#define HVD_RUNTIME_BOOTSTRAP_SOLO_BOOTSTRAP_H_

#include <atomic>
#include <map>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/bootstrap/bootstrap.h"

namespace hvd {

class SoloBootstrap final : public Bootstrap, private KvStore {
 public:
  Result<World> Join(Duration timeout) override;
  void Leave(uint64_t, TimePoint) override;
  SegmentSource& segments() override { return segments_; }
  KvStore& directory() override { return *this; }
  Status PollAgent() override { return Status::Ok(); }
  bool watched() const override { return false; }
  void CloseAfterFork() override {}

 private:
  Status Put(const std::string& key, const std::string& value) override;
  // Fails if the key is missing: no other rank could put it.
  Result<std::string> Get(const std::string& key, Duration timeout) override;

  LocalSegmentSource segments_;
  Mutex mutex_;
  std::map<std::string, std::string> values_ HVD_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{0};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_SOLO_BOOTSTRAP_H_
