#include "launcher/external/stock/stock_rendezvous.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {

namespace {

constexpr std::string_view kPlaces = "rank_and_size";
// Where an elastic worker would be told of hosts that were added: a pickle, which nobody reads.
constexpr std::string_view kNotices = "worker_addresses";
// "You are out."
constexpr const char* kNoPlace = "-1,-1,-1,-1,-1,-1";

std::string PlaceText(const Placement& place, size_t size) {
  const std::vector<uint32_t> numbers = {place.rank,       static_cast<uint32_t>(size),
                                         place.local_rank, place.local_size,
                                         place.cross_rank, place.cross_size};
  std::string text;
  for (uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

struct Path {
  std::string scope, key;
};

// "/scope/key", which may be escaped.
std::optional<Path> ParsePath(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  const std::string_view both = target.substr(1);
  const size_t slash = both.find('/');
  if (slash == std::string_view::npos || both.find('/', slash + 1) != std::string_view::npos)
    return std::nullopt;
  std::optional<std::string> scope = PercentDecoded(both.substr(0, slash));
  std::optional<std::string> key = PercentDecoded(both.substr(slash + 1));
  if (!scope || !key || scope->empty() || key->empty()) return std::nullopt;
  return Path{std::move(*scope), std::move(*key)};
}

}  // namespace

StockStore::Sizes StockScopes(const std::vector<StockSlot>& slots) {
  StockStore::Sizes sizes;
  for (const StockSlot& slot : slots) {
    ++sizes["global"];
    ++sizes["local_" + slot.host];
    ++sizes[Format("cross_{}", slot.place.local_rank)];
  }
  return sizes;
}

void StockRendezvous::Begin(const std::vector<StockSlot>& slots) {
  store_.Begin(StockScopes(slots));
  places_.clear();
  for (const StockSlot& slot : slots) {
    places_[Format("{}:{}", slot.host, slot.place.local_rank)] =
        PlaceText(slot.place, slots.size());
  }
  broken_ = false;
  AnswerWaiting();
}

void StockRendezvous::AnswerWaiting() {
  for (const auto& [slot, reply] : std::exchange(waiting_, {})) reply(PlaceOf(slot));
}

void StockRendezvous::HandlePlace(const std::string& slot, Reply reply) {
  if (!broken_ && !places_.contains(slot)) return reply(PlaceOf(slot));
  waiting_.emplace_back(slot, std::move(reply));
  std::set<std::string_view> asking;
  for (const auto& entry : waiting_) asking.insert(entry.first);
  if (!broken_ && asking.size() == places_.size()) AnswerWaiting();
}

void StockRendezvous::Handle(const HttpRequest& request, Reply reply) {
  const std::optional<Path> path = ParsePath(request.target);
  if (!path) return reply({.code = kHttpBadRequest});
  if (path->scope == kPlaces && request.method == "GET")
    return HandlePlace(path->key, std::move(reply));
  reply(AnswerTo(request.method, path->scope, path->key, request.body));
}

HttpAnswer StockRendezvous::AnswerTo(std::string_view method, const std::string& scope,
                                     const std::string& key, std::string_view body) {
  constexpr const char* kBytes = "application/octet-stream";
  if (method == "GET") {
    const std::string* value = store_.Find(scope, key);
    if (value == nullptr) return {.code = kHttpNotFound};
    return {.type = kBytes, .body = *value};
  }
  if (method == "PUT") {
    if (scope == kNotices) return {};
    return {.code = store_.Put(scope, key, body) ? kHttpOk : kHttpNoRoom};
  }
  if (method == "DELETE") {
    store_.Delete(scope, key);
    return {};
  }
  return {.code = kHttpNotAllowed, .head_only = method == "HEAD", .methods = "GET, PUT, DELETE"};
}

HttpAnswer StockRendezvous::PlaceOf(const std::string& slot) const {
  const auto found = places_.find(slot);
  return {.body = found == places_.end() ? kNoPlace : found->second};
}

namespace {

// Overhead per entry in bytes, besides its texts.
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
