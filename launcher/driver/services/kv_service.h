// KvService: the driver's key-value table of a generation, through which ranks and agents publish
// their addresses. Takes entries and requests of hosts and sends an entry to every host that asked
// for it. Pure: the router is the only way out.
//
// A refusal is a sentence about "its agent", for AgentConnection::Break. A message that belongs to
// another generation, or comes from a host without a rank, is dropped.
#ifndef HVD_LAUNCHER_DRIVER_SERVICES_KV_SERVICE_H_
#define HVD_LAUNCHER_DRIVER_SERVICES_KV_SERVICE_H_

#include <cstdint>
#include <string>

#include "launcher/overlay/tree/tree_router.h"
#include "launcher/wire/kv_table.h"
#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

class KvService {
 public:
  // `tree` outlives this object.
  explicit KvService(TreeRouter& tree) : tree_(tree) {}

  void Begin(uint64_t generation) { table_.Begin(generation); }
  // The message belongs to the present generation and to a host with a rank.
  bool IsCurrent(uint32_t host, uint64_t generation) const {
    return generation == table_.generation() && tree_.Has(host);
  }
  // kInvalidArgument: the host names more keys than its ranks have use for.
  Status Put(uint32_t host, PutKey put);
  Status Want(uint32_t host, const WantKey& want);

 private:
  Status CheckKeys(uint32_t host, const std::string& key);

  TreeRouter& tree_;
  KvTable table_;  // readers are hosts
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SERVICES_KV_SERVICE_H_
