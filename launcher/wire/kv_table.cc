#include "launcher/wire/kv_table.h"

#include <utility>

namespace hvd {

void KvTable::Begin(uint64_t generation) {
  generation_ = generation;
  values_.clear();
  waiting_.clear();
  brought_.clear();
}

std::set<uint32_t> KvTable::Put(const std::string& key, std::string value) {
  values_[key] = std::move(value);
  auto readers = waiting_.extract(key);
  return readers.empty() ? std::set<uint32_t>{} : std::move(readers.mapped());
}

const std::string* KvTable::Find(const std::string& key) const {
  auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

bool KvTable::Await(uint32_t reader, const std::string& key) {
  std::set<uint32_t>& readers = waiting_[key];
  readers.insert(reader);
  return readers.size() == 1;
}

bool KvTable::Admits(uint32_t speaker, const std::string& key, uint64_t most) {
  if (values_.count(key) > 0 || waiting_.count(key) > 0) return true;
  return ++brought_[speaker] <= most;
}

}  // namespace hvd
