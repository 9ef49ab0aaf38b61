#include "runtime/net/kv_store.h"

#include <algorithm>

namespace hvd {

Status CheckKvKey(const std::string& key) {
  bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!key.empty() && key.size() <= kMaxKvKey && printable) return Status::Ok();
  return InvalidArgument("a key of the directory has 1 to " + std::to_string(kMaxKvKey) +
                         " printable characters and no blanks; this one has " +
                         std::to_string(key.size()));
}

}  // namespace hvd
