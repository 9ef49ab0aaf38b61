#include "launcher/driver/services/kv_service.h"

#include <utility>

namespace hvd {

Status KvService::CheckKeys(uint32_t host, const std::string& key) {
  if (table_.Admits(host, key, tree_.MostKeysOf(host))) return Status::Ok();
  return InvalidArgument("its agent names more keys of the directory than its hosts have use for");
}

Status KvService::Put(uint32_t host, PutKey put) {
  if (!IsCurrent(host, put.generation)) return Status::Ok();
  HVD_RETURN_IF_ERROR(CheckKeys(host, put.key));
  const KeyValue entry{put.generation, std::move(put.key), std::move(put.value)};
  for (uint32_t reader : table_.Put(entry.key, entry.value)) tree_.ToHost(reader, entry);
  return Status::Ok();
}

Status KvService::Want(uint32_t host, const WantKey& want) {
  if (!IsCurrent(host, want.generation)) return Status::Ok();
  HVD_RETURN_IF_ERROR(CheckKeys(host, want.key));
  if (const std::string* value = table_.Find(want.key)) {
    tree_.ToHost(host, {want.generation, want.key, *value});
  } else {
    table_.Await(host, want.key);
  }
  return Status::Ok();
}

}  // namespace hvd
