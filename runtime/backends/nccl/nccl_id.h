// The unique id by which the members of a communicator find each other, on its way through the
// job's store: member 0 makes it and puts it there, the others get it. Where member 0 cannot make
// one, it puts its sentence instead, so that no rank waits for ever.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_

#include <optional>
#include <string>

#include "runtime/backends/nccl/nccl_calls.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"

namespace hvd {

// Encodes the value that is put into the store, and decodes the one that came out of it. kAborted
// with the sentence of the member that put a failure; kInternal for what is neither.
std::string EncodeNcclId(const NcclUniqueId& id);
std::string EncodeNcclIdFailure(const Status& why);
Result<NcclUniqueId> DecodeNcclId(const std::string& value);

// Member 0: makes the id and puts it under `key`. Others: the id, or nothing if it has not come
// within `wait`, which may be 0. Any other error of the store is passed on.
Result<std::optional<NcclUniqueId>> ObtainNcclId(const NcclApi& api, const NcclMember& member,
                                                 KvStore& store, const std::string& key,
                                                 Duration wait);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_ID_H_
