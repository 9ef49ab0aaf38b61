#include "launcher/overlay/dial/invitation.h"

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "launcher/process/jobs/job_id.h"

namespace hvd {
namespace {

constexpr std::string_view kTitle = "hvdrun-invitation";
constexpr std::string_view kUnconnected = "unconnected ";
constexpr size_t kKeyDigits = 64;
constexpr size_t kMostReason = 400;

std::string_view PopWord(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

std::string InvitationText(const Invitation& invitation) {
  return std::string(kTitle) + " " + invitation.job_id + " " + invitation.key + " " +
         EncodeMeshRecord(invitation.door) + "\n";
}

Result<Invitation> ParseInvitation(std::string_view line) {
  if (PopWord(line) != kTitle) return InvalidArgument("its first line is no invitation");
  Invitation invitation;
  invitation.job_id = PopWord(line);
  if (!ParseJobId(invitation.job_id)) return InvalidArgument("its invitation names no job");
  invitation.key = PopWord(line);
  if (invitation.key.size() != kKeyDigits) return InvalidArgument("its invitation has no key");
  Result<MeshRecord> door = DecodeMeshRecord(line);
  if (!door.ok()) return InvalidArgument("its invitation has no address of the driver");
  invitation.door = std::move(*door);
  return invitation;
}

std::string UnconnectedText(const std::string& reason) {
  return std::string(kUnconnected) + Printable(reason, kMostReason);
}

std::optional<std::string> ParseUnconnected(std::string_view line) {
  if (!line.starts_with(kUnconnected)) return std::nullopt;
  return Printable(line.substr(kUnconnected.size()), kMostReason);
}

}  // namespace hvd
