// The line that the agents of a step read on their stdin: where the driver is, and the key by which
// both sides prove themselves. One line, the same for all agents. Pure.
#ifndef HVD_LAUNCHER_OVERLAY_DIAL_INVITATION_H_
#define HVD_LAUNCHER_OVERLAY_DIAL_INVITATION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {

struct Invitation {
  std::string job_id;  // that of host 0: the number of an agent's host follows from its own id
  std::string key;     // of this step and nothing else; secret
  MeshRecord door;     // where the driver listens
};

// With its line break.
inline constexpr size_t kMostInvitationBytes = 4096;
std::string InvitationText(const Invitation& invitation);
// Without the line break. kInvalidArgument for anything else; the sentence does not quote the key.
Result<Invitation> ParseInvitation(std::string_view line);

// The words of an agent that cannot connect, on the step's stdout behind its greeting, and the
// reason in them again; nothing for any other words.
std::string UnconnectedText(const std::string& reason);
std::optional<std::string> ParseUnconnected(std::string_view words);

// The numbers of the handshake: the driver, and each agent by the number of its host.
inline constexpr uint32_t kDriverPeer = ~uint32_t{0};
// Its own, so that no connection of a world or of the tree passes for one of these.
inline constexpr uint64_t kDialGeneration = ~uint64_t{0} - 1;

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_INVITATION_H_
