// The unique id by which the members of a communicator find each other, through the job's store:
// member 0 creates and puts it, the others get it. If member 0 cannot create one, it puts its error
// message instead, so that no rank waits forever.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_

#include <optional>
#include <string>

#include "runtime/backends/nccl/nccl_calls.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"

namespace hvd {

// Encode and decode the value in the store. kAborted with the message of the member that put a
// failure; kInternal for anything else.
std::string EncodeNcclId(const NcclUniqueId& id);
std::string EncodeNcclIdFailure(const Status& why);
Result<NcclUniqueId> DecodeNcclId(const std::string& value);

// Member 0: creates the id and puts it under `key`. Others: the id, or nothing if it has not
// arrived within `wait`, which may be 0. Other errors of the store are returned.
Result<std::optional<NcclUniqueId>> ObtainNcclId(const NcclApi& api, const NcclMember& member,
                                                 KvStore& store, const std::string& key,
                                                 Duration wait);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_
