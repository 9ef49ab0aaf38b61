// StockRendezvous: the answers of the HTTP server of a launcher of stock Horovod to its workers.
// They leave addresses for each other, and in an elastic job ask for their place. Nothing that they
// send is unpickled, or looked at in another way.
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

// Beyond these nothing more is taken. A value of a rank has some hundred bytes for each other rank.
inline constexpr size_t kMostStockValue = size_t{1} << 20;
inline constexpr size_t kMostStockBytes = size_t{512} << 20;
// For each pair of ranks, beside so much for all.
inline constexpr size_t kStockBytesOfPair = 2048;
inline constexpr size_t kFewestStockBytes = size_t{16} << 20;

// The values that workers of stock Horovod leave for each other, by scope and key.
class StockStore {
 public:
  // By scope: how many ranks meet in it.
  using Sizes = std::map<std::string, uint32_t, std::less<>>;

  // A world begins, and all that was there is forgotten.
  void Begin(Sizes sizes);

  // False: there is no room.
  bool Put(std::string_view scope, std::string_view key, std::string_view value);
  // Null: there is none. Valid until the next change.
  const std::string* Find(std::string_view scope, std::string_view key) const;
  // In a scope of Begin: a rank has found all the others, and when each rank of the scope has said
  // so, the scope is empty again. In another scope: the key goes at once.
  void Delete(std::string_view scope, std::string_view key);

  size_t bytes() const { return bytes_; }
  // The most that is taken for the world that began last: a stranger may fill it.
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
  std::string host;  // as its worker knows it: HOROVOD_HOSTNAME
  Placement place;
};

// The scopes in which the ranks of a world meet: all of them, those of each host, and those with
// the same local rank. Pure.
StockStore::Sizes StockScopes(const std::vector<StockSlot>& slots);

class StockRendezvous {
 public:
  using Reply = std::function<void(HttpAnswer)>;

  // The world of these slots begins. Workers that wait for their place are told.
  void Begin(const std::vector<StockSlot>& slots);
  // A rank of the world is gone: it goes on in no process.
  void Break() { broken_ = true; }

  // Calls `reply` at once. Only a rank that asks for its place waits, until all ranks of the world
  // have asked, which then goes on, or another one begins: a rank that has lost a peer may ask
  // before anybody else knows of it.
  void Handle(const HttpRequest& request, Reply reply);

 private:
  HttpAnswer AnswerTo(std::string_view method, const std::string& scope, const std::string& key,
                      std::string_view body);
  HttpAnswer PlaceOf(const std::string& slot) const;
  void HandlePlace(const std::string& slot, Reply reply);
  void AnswerWaiting();

  StockStore store_;
  std::map<std::string, std::string> places_;  // by "host:local rank"
  bool broken_ = true;                         // or none has begun
  std::vector<std::pair<std::string, Reply>> waiting_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_
