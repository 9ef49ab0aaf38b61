// ConnectorLoop: the connections of a mesh (runtime/net/mesh/mesh_connector.h), accepted and made
// on an io_context.
//
// One thread, that of the io_context. The owner is called from it, and never from inside a call.
#ifndef HVD_LAUNCHER_OVERLAY_DIAL_CONNECTOR_LOOP_H_
#define HVD_LAUNCHER_OVERLAY_DIAL_CONNECTOR_LOOP_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_connector.h"

namespace hvd {

class ConnectorLoop final : private MeshConnectorOwner {
 public:
  // `listener`: accepts connections; may be empty. `clock` and `owner` outlive this object. The
  // owner takes each socket, which is then in no epoll.
  ConnectorLoop(asio::io_context& io, const Clock& clock, MeshConnectorOptions options,
                MeshListener listener, MeshConnectorOwner& owner);

  // Results in Connected or Unreachable.
  void Dial(uint32_t peer, std::vector<MeshAddress> addresses);
  // Closes the listener and all connections not yet established.
  void Close();

 private:
  void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t peer, Status why) override;

  void WaitForEvents();
  void HandleEvents();
  void ScheduleTick();

  asio::io_context& io_;
  const Clock& clock_;
  MeshConnectorOwner& owner_;
  asio::posix::stream_descriptor epoll_;
  asio::steady_timer timer_;
  MeshConnector connector_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_CONNECTOR_LOOP_H_
