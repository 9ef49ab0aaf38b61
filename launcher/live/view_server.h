// ViewServer: the end of hvdrun top and hvdrun dump in the driver. It listens at an abstract unix
// address that has the job's id in its name, for processes of its user (or root). A client says in
// one packet what it wants; the answer is a stream of bytes, in packets of any size:
//   top    a line of JSON (view_json.h) each time the owner publishes one, until the client closes
//   dump   rings (RingHead and records), and their end
//   stacks the same with what py-spy wrote of each rank in the place of records
//   native the same with C frames
//
// A slow client gets fewer views; one that takes nothing for 30 s is dropped, as is one that says
// anything else. One thread, that of the io_context; nothing waits.
#ifndef HVD_LAUNCHER_LIVE_VIEW_SERVER_H_
#define HVD_LAUNCHER_LIVE_VIEW_SERVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/process/links/link_listener.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr std::string_view kViewAddress = "hvd-view-";
inline constexpr std::string_view kAskTop = "top", kAskDump = "dump", kAskStacks = "stacks",
                                  kAskNative = "native";
// What a dump consists of.
enum class Dumped : uint8_t { kEvents, kStacks, kNativeStacks };
// Of one packet.
inline constexpr size_t kViewPacket = 32 * 1024;

class ViewServer {
 public:
  struct Callbacks {
    // The first client wants views, or the last one wants no more.
    std::function<void()> viewers_changed;
    std::function<void(uint64_t client, Dumped)> dump_wanted;
    // All that was sent to a client of a dump has left, or the client has.
    std::function<void(uint64_t client)> drained;
  };
  ViewServer(asio::io_context& io, Callbacks callbacks);
  ~ViewServer();

  Status Open(const std::string& job_id);
  // No client is left, and none comes.
  void Close();

  bool has_viewers() const;
  // To all clients that want views and have taken the last one.
  void Publish(const std::string& view_json);
  // To a client of a dump; nothing happens when it is gone.
  void Send(uint64_t client, std::string_view bytes);
  // Closes its connection once all has left.
  void Finish(uint64_t client);
  bool Has(uint64_t client) const { return clients_.contains(client); }
  // It is gone, or has taken all that was sent.
  bool IsDrained(uint64_t client) const;

 private:
  struct Client;

  void Add(LinkClient visitor);
  void Read(const std::shared_ptr<Client>& client);
  void TakeWish(const std::shared_ptr<Client>& client);
  void Write(const std::shared_ptr<Client>& client);
  void Drained(const std::shared_ptr<Client>& client);
  void StartLimit(const std::shared_ptr<Client>& client);
  void Drop(uint64_t client);

  asio::io_context& io_;
  const Callbacks callbacks_;
  LinkListener listener_;
  std::map<uint64_t, std::shared_ptr<Client>> clients_;
  uint64_t next_ = 1;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_SERVER_H_
