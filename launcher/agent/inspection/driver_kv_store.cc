#include "launcher/agent/inspection/driver_kv_store.h"

#include <utility>

namespace hvd {

DriverKvStore::DriverKvStore(std::function<void(std::string, std::string)> put,
                             std::function<void(std::string)> want)
    : put_(std::move(put)), want_(std::move(want)) {}

Status DriverKvStore::Put(const std::string& key, const std::string& value) {
  put_(key, value);
  return Status::Ok();
}

Result<std::string> DriverKvStore::Get(const std::string& key, Duration timeout) {
  MutexLock lock(mutex_);
  if (auto [entry, asked] = values_.try_emplace(key, ""); asked) want_(key);
  changed_.wait_for(lock, timeout,
                    [&]() HVD_REQUIRES(mutex_) { return stopped_ || !values_[key].empty(); });
  if (stopped_) return Aborted("the host gave up");
  if (values_[key].empty()) return Status(Code::kInProgress, "not known yet");
  return values_[key];
}

void DriverKvStore::GiveValue(const std::string& key, const std::string& value) {
  {
    MutexLock lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

void DriverKvStore::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace hvd
