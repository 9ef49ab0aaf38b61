// ViewServer: the driver's server for hvdrun top and hvdrun dump. Listens at an abstract unix
// address with the job's id, for processes of its user (or root). A client sends its request in one
// packet; the answer is a stream of bytes, in packets of any size:
//   top    a line of JSON (view_json.h) each time the owner publishes one, until the client closes
//   dump   rings (RingHead and records), and their end
//   stacks the same with what py-spy wrote of each rank in the place of records
//   native the same with C frames
//
// A slow client gets fewer views; one that reads nothing for 30 s, or sends anything else, is
// dropped. One thread, that of the io_context; never blocks.
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
// The contents of a dump.
enum class Dumped : uint8_t { kEvents, kStacks, kNativeStacks };
// Maximum size of a packet.
inline constexpr size_t kViewPacket = 32 * 1024;

class ViewServer {
 public:
  struct Callbacks {
    // The first viewer has come, or the last one has gone.
    std::function<void()> viewers_changed;
    std::function<void(uint64_t client, Dumped)> dump_wanted;
    // Everything sent to a client of a dump was delivered, or the client has gone.
    std::function<void(uint64_t client)> drained;
  };
  ViewServer(asio::io_context& io, Callbacks callbacks);
  ~ViewServer();

  Status Open(const std::string& job_id);
  // Drops all clients and stops listening.
  void Close();

  bool has_viewers() const;
  // Sends to all viewers that have received the previous view.
  void Publish(const std::string& view_json);
  // Sends to a client of a dump; ignored if it has gone.
  void Send(uint64_t client, std::string_view bytes);
  // Closes its connection once everything was delivered.
  void Finish(uint64_t client);
  bool Has(uint64_t client) const { return clients_.contains(client); }
  // It has gone, or has received everything sent.
  bool IsDrained(uint64_t client) const;

 private:
  struct Client;

  void Add(LinkClient visitor);
  void Read(const std::shared_ptr<Client>& client);
  void HandleRequest(const std::shared_ptr<Client>& client);
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
