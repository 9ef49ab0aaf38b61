// The line that the agents of a step read on their stdin: the driver's address, and the key by
// which both sides authenticate. One line, the same for all agents. Pure.
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
  std::string job_id;  // of host 0's agent: an agent derives its host number from its own id
  std::string key;     // of this step only; secret
  MeshRecord door;     // where the driver listens
};

// Including the line break.
inline constexpr size_t kMostInvitationBytes = 4096;
std::string InvitationText(const Invitation& invitation);
// Without the line break. kInvalidArgument for anything else; the sentence does not quote the key.
Result<Invitation> ParseInvitation(std::string_view line);

// What an agent that cannot connect prints on the step's stdout after its greeting, and the reason
// parsed from it; nothing for any other text.
std::string UnconnectedText(const std::string& reason);
std::optional<std::string> ParseUnconnected(std::string_view line);

// The driver's peer number in the handshake; an agent's is its host number.
inline constexpr uint32_t kDriverPeer = ~uint32_t{0};
// Reserved, so that no connection of a world or of the tree is mistaken for one of these.
inline constexpr uint64_t kDialGeneration = ~uint64_t{0} - 1;

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_DIAL_INVITATION_H_
