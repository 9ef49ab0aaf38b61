// ProbeDirectories: the key-value stores in which agents find each other for the proof of
// connectivity and for the measurement of pairs. Pure.
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
  // A value and the host that gets it.
  using Answer = std::pair<uint32_t, KeyValue>;

  ProbeDirectories();

  // For the hosts that wait for the key. Other generations are ignored.
  std::vector<Answer> Put(const PutKey& put);
  // At once if the key is known, else with its Put.
  std::vector<Answer> Want(uint32_t host, const WantKey& want);

 private:
  KvTable* Of(uint64_t generation);

  KvTable proof_, pairs_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PROBE_DIRECTORIES_H_
