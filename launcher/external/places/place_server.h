// PlaceServer: the agent's server for processes that another launcher started on this host: they
// hand over their places and are told how their ranks ended. Such a process (place_holder.h) lives
// as long as its rank and ends the same way, so that its launcher sees an ordinary world.
//
// Refuses processes of other users. One thread, that of the io_context.
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
  // Null: no process holds this place.
  Place* Find(uint32_t place);
  // Tells the process that holds the place; ignored if there is none.
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
