// StockRendezvous: the HTTP rendezvous server that workers of stock Horovod expect from their
// launcher. They exchange addresses, and in an elastic job ask for their place. Values are opaque;
// nothing is unpickled.
//
// One thread.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/live/http/http_request.h"
#include "launcher/wire/plan.h"

namespace hvd {

// Limits of stored data. A rank's value has some hundred bytes per other rank.
inline constexpr size_t kMostStockValue = size_t{1} << 20;
inline constexpr size_t kMostStockBytes = size_t{512} << 20;
// Limit per pair of ranks, plus a constant.
inline constexpr size_t kStockBytesOfPair = 2048;
inline constexpr size_t kFewestStockBytes = size_t{16} << 20;

// The values that workers of stock Horovod exchange, by scope and key.
class StockStore {
 public:
  // By scope: number of its ranks.
  using Sizes = std::map<std::string, uint32_t, std::less<>>;

  // Begins a world; drops all values.
  void Begin(Sizes sizes);

  // False: the limit is reached.
  bool Put(std::string_view scope, std::string_view key, std::string_view value);
  // Null: none. Valid until the next change.
  const std::string* Find(std::string_view scope, std::string_view key) const;
  // In a scope of Begin: a rank has found all others; the scope is emptied when all its ranks have
  // reported so. In other scopes: removes the key at once.
  void Delete(std::string_view scope, std::string_view key);

  size_t bytes() const { return bytes_; }
  // The limit for the current world: any client may fill it.
  size_t most_bytes() const { return most_bytes_; }

 private:
  struct Scope {
    std::map<std::string, std::string, std::less<>> values;
    std::set<std::string, std::less<>> finished;  // keys, of a scope of Begin
  };
  using Scopes = std::map<std::string, Scope, std::less<>>;
  void Forget(Scopes::iterator scope);

  Sizes sizes_;
  Scopes scopes_;
  size_t bytes_ = 0, most_bytes_ = kFewestStockBytes;
};

struct StockSlot {
  std::string host;  // the worker's HOROVOD_HOSTNAME
  Placement place;
};

// The scopes in which the ranks of a world meet: all of them, those of each host, and those with
// the same local rank. Pure.
StockStore::Sizes StockScopes(const std::vector<StockSlot>& slots);

class StockRendezvous {
 public:
  using Reply = std::function<void(HttpAnswer)>;

  // Begins a world of these slots. Answers workers that wait for their place.
  void Begin(const std::vector<StockSlot>& slots);
  // A rank of the world is lost: the world has failed.
  void Break() { broken_ = true; }

  // Calls `reply` at once, except for a rank that asks for its place: it waits until all ranks of
  // the world have asked, and the world continues, or until another world begins, because a rank
  // that lost a peer may ask before the loss is known.
  void Handle(const HttpRequest& request, Reply reply);

 private:
  HttpAnswer AnswerTo(std::string_view method, const std::string& scope, const std::string& key,
                      std::string_view body);
  HttpAnswer PlaceOf(const std::string& slot) const;
  void HandlePlace(const std::string& slot, Reply reply);
  void AnswerWaiting();

  StockStore store_;
  std::map<std::string, std::string> places_;  // by "host:local rank"
  bool broken_ = true;                         // also before the first world
  std::vector<std::pair<std::string, Reply>> waiting_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_
