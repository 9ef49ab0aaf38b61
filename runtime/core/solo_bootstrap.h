// SoloBootstrap: a world of one, for a script that runs without a launcher.
#ifndef HVD_RUNTIME_CORE_SOLO_BOOTSTRAP_H_
#define HVD_RUNTIME_CORE_SOLO_BOOTSTRAP_H_

#include <atomic>

#include "runtime/core/bootstrap.h"

namespace hvd {

class SoloBootstrap final : public Bootstrap {
 public:
  Result<World> Join(Duration timeout) override;
  void Leave(uint64_t) override {}
  SegmentSource& segments() override { return segments_; }
  Status Attend() override { return Status::Ok(); }
  bool watched() const override { return false; }
  void CloseAfterFork() override {}

 private:
  LocalSegmentSource segments_;
  std::atomic<uint64_t> epoch_{0};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_SOLO_BOOTSTRAP_H_
