// KvStore: a key-value store shared by all ranks of one generation, where they publish their
// addresses. Small and slow; not for tensors.
//
// Keys are printable text without blanks; a key is put once in a generation. The next generation
// starts empty. Thread-safe.
#ifndef HVD_RUNTIME_NET_KV_STORE_H_
#define HVD_RUNTIME_NET_KV_STORE_H_

#include <cstddef>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxKvKey = 128;
inline constexpr size_t kMaxKvValue = 3072;

class KvStore {
 public:
  virtual ~KvStore() = default;
  // kInvalidArgument if it is too long or no key; kAborted when the generation is over.
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until the key is put. kInProgress after `timeout`; kAborted with the reason when the
  // generation breaks.
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
};

// Ok, or kInvalidArgument: every Put and Get checks this first.
Status CheckKvKey(const std::string& key);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_KV_STORE_H_
