#include "runtime/net/kv_store.h"

#include <algorithm>

#include "runtime/base/text/format.h"

namespace hvd {

Status CheckKvKey(const std::string& key) {
  bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!key.empty() && key.size() <= kMaxKvKey && printable) return Status::Ok();
  return InvalidArgument(Format(
      "a key of the directory has 1 to {} printable characters and no blanks; this one has {}",
      kMaxKvKey, key.size()));
}

}  // namespace hvd
