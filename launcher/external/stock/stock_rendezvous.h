// StockRendezvous: the answers of the HTTP server of a launcher of stock Horovod to its workers.
// They leave addresses for each other, and in an elastic job ask for their place. Nothing that they
// send is unpickled, or looked at in another way.
//
// One thread.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_RENDEZVOUS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/external/stock/stock_store.h"
#include "launcher/live/http/http_request.h"
#include "launcher/wire/plan.h"

namespace hvd {

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
