// Directory: a key-value store that all ranks of one epoch share, where they tell each other how to be reached. Small and
// slow; tensors never travel here.
//
// Keys are printable text without blanks; a key is put once in an epoch. Nothing of an epoch is seen in the next one.
// Thread-safe.
#ifndef HVD_RUNTIME_NET_DIRECTORY_H_
#define HVD_RUNTIME_NET_DIRECTORY_H_

#include <cstddef>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxDirectoryKey = 128;
inline constexpr size_t kMaxDirectoryValue = 3072;

class Directory {
 public:
  virtual ~Directory() = default;
  // kInvalidArgument for what is too long or no key; kAborted when the epoch is over.
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has put the key. kInProgress after `timeout`; kAborted with the reason when the epoch breaks.
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
};

// Ok, or kInvalidArgument: what every Put and Get checks first.
Status CheckDirectoryKey(const std::string& key);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_DIRECTORY_H_
