// PlaceServer: where the processes that another launcher started on this host give their places to
// the agent, and learn how the rank that took it has ended. Such a process (place_holder.h) stays
// as long as its rank, and ends as it does, so that its launcher sees a world of the usual kind.
//
// Processes of other users are sent away. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_SERVER_H_
#define HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_SERVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/external/places/place.h"
#include "launcher/process/links/link_listener.h"
#include "launcher/process/process_end.h"
#include "runtime/base/status.h"

namespace hvd {

class PlaceServer {
 public:
  using OnTaken = std::function<void(PlaceNumber)>;

  PlaceServer(asio::io_context& io, OnTaken on_taken);
  ~PlaceServer();

  Status Listen(const std::string& agent_job_id);
  // Null: nobody holds this place.
  Place* Find(uint32_t place);
  // Tells the process that holds it; nothing happens when there is none.
  void End(uint32_t place, const ProcessEnd& end);

 private:
  struct Holder;
  using HolderPtr = std::shared_ptr<Holder>;

  void Accept(LinkClient client);
  void WaitToRead(const HolderPtr& holder);
  void Read(const HolderPtr& holder);

  asio::io_context& io_;
  OnTaken on_taken_;
  std::vector<std::string> own_environment_;  // of the agent
  LinkListener listener_;
  std::map<uint32_t, HolderPtr> holders_;  // by place
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_PLACES_PLACE_SERVER_H_
