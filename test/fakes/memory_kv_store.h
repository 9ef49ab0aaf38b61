// A directory for the threads of a test.
#ifndef HVD_TEST_FAKES_MEMORY_KV_STORE_H_
#define HVD_TEST_FAKES_MEMORY_KV_STORE_H_

#include <condition_variable>
#include <map>
#include <mutex>

#include "runtime/net/kv_store.h"

namespace hvd::test {

class MemoryKvStore final : public KvStore {
 public:
  Status Put(const std::string& key, const std::string& value) override {
    HVD_RETURN_IF_ERROR(CheckKvKey(key));
    std::lock_guard lock(mutex_);
    if (value.size() > kMaxKvValue) return InvalidArgument("the value is too long");
    values_[key] = value;
    changed_.notify_all();
    return Status::Ok();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    std::unique_lock lock(mutex_);
    bool there = changed_.wait_for(lock, timeout, [&] { return values_.contains(key); });
    if (!there) return Status(Code::kInProgress, "nobody has put " + key);
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_MEMORY_KV_STORE_H_
