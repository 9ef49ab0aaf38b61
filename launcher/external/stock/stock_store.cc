#include "launcher/external/stock/stock_store.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

// The bytes that an entry costs beside its texts.
constexpr size_t kPerEntry = 128;

size_t CostOf(std::string_view key, std::string_view value) {
  return key.size() + value.size() + kPerEntry;
}

}  // namespace

void StockStore::Begin(Sizes sizes) {
  const auto all = sizes.find("global");
  const size_t ranks = all == sizes.end() ? 0 : all->second;
  most_bytes_ = std::min(kMostStockBytes, kFewestStockBytes + kStockBytesOfPair * ranks * ranks);
  sizes_ = std::move(sizes);
  scopes_.clear();
  bytes_ = 0;
}

bool StockStore::Put(std::string_view scope, std::string_view key, std::string_view value) {
  const std::string* former = Find(scope, key);
  size_t bytes = bytes_ + CostOf(key, value);
  if (former != nullptr) bytes -= CostOf(key, *former);
  const bool new_scope = scopes_.find(scope) == scopes_.end();
  if (new_scope) bytes += CostOf(scope, "");
  if (value.size() > kMostStockValue || bytes > most_bytes_) return false;
  bytes_ = bytes;
  scopes_[std::string(scope)].values[std::string(key)] = value;
  return true;
}

const std::string* StockStore::Find(std::string_view scope, std::string_view key) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return nullptr;
  const auto value = found->second.values.find(key);
  return value == found->second.values.end() ? nullptr : &value->second;
}

void StockStore::Delete(std::string_view scope, std::string_view key) {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return;
  auto& [values, finished] = found->second;
  const auto value = values.find(key);
  if (value == values.end()) return;
  if (const auto size = sizes_.find(scope); size != sizes_.end()) {
    finished.emplace(key);
    if (finished.size() >= size->second) Forget(found);
    return;
  }
  bytes_ -= CostOf(key, value->second);
  values.erase(value);
  if (values.empty()) Forget(found);
}

void StockStore::Forget(Scopes::iterator scope) {
  for (const auto& [key, value] : scope->second.values) bytes_ -= CostOf(key, value);
  bytes_ -= CostOf(scope->first, "");
  scopes_.erase(scope);
}

}  // namespace hvd
