// ProbeDirectories: the key-value tables through which agents find each other for the connectivity
// probe and for pair measurements. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_PROBE_DIRECTORIES_H_
#define HVD_LAUNCHER_DOCTOR_PROBE_DIRECTORIES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "launcher/wire/kv_table.h"
#include "launcher/wire/messages.h"

namespace hvd {

class ProbeDirectories {
 public:
  // A value with its recipient.
  using Answer = std::pair<uint32_t, KeyValue>;

  ProbeDirectories();

  // Returns the answers for hosts that wait for the key. Ignores other generations.
  std::vector<Answer> Put(const PutKey& put);
  // Returns the answer if the key is known; otherwise its Put will.
  std::vector<Answer> Want(uint32_t host, const WantKey& want);

 private:
  KvTable* Of(uint64_t generation);

  KvTable proof_, pairs_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PROBE_DIRECTORIES_H_
