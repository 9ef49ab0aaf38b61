// What adopting agents of several hosts write to each other in a key-value server, and the world that follows. Pure.
#ifndef HVD_LAUNCHER_MEETING_NOTES_H_
#define HVD_LAUNCHER_MEETING_NOTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host_epochs.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// The ranks of one host that wait for a world.
struct WaitingHost {
  std::vector<uint32_t> ranks;  // by local rank
  uint32_t size = 0;            // of the world
  uint64_t last_epoch = 0;      // this host has seen
};

// One rank that waits for the world. `token` stands for its host in this one meeting.
struct RankNote {
  std::string token;        // as MakeJobId() makes it
  uint32_t local_rank = 0;  // below kMaxRanks
  uint64_t last_epoch = 0;  // its host has seen; below kLastMetEpoch
  bool operator==(const RankNote&) const = default;
};

// The world, as the host of rank 0 decided it.
struct WorldNote {
  uint64_t epoch = 0;               // from 1 to kLastMetEpoch
  std::string data_key;             // as MakeJobKey() makes it
  std::vector<std::string> tokens;  // by host, no two alike
  std::vector<RankRun> layout;
  bool operator==(const WorldNote&) const = default;
};

// No world counts further: what comes after it stays a number.
inline constexpr uint64_t kLastMetEpoch = uint64_t{1} << 62;

std::string EncodeNote(const RankNote& note);
std::string EncodeNote(const WorldNote& note);
// Anybody may have written the text, so all of it is checked before it is used, and nothing is allocated that the text and
// `size` (ranks of the world) do not account for. kInvalidArgument says what is wrong, as the end of "the record ...".
Result<RankNote> DecodeRankNote(std::string_view text);
Result<WorldNote> DecodeWorldNote(std::string_view text, uint32_t size);
// The longest text of a world of `size` ranks.
size_t MostBytesOfWorldNote(uint32_t size);

// What the host of rank 0 writes in place of a world that cannot be: the reason for all.
std::string EncodeRefusal(const std::string& reason);
std::optional<std::string> DecodeRefusal(std::string_view text);

// Whether this names a meeting: 16 hexadecimal digits, as MakeJobId() makes them.
bool IsMeetingName(std::string_view text);

// By rank. Hosts are numbered in the order of their first ranks.
Result<WorldNote> WorldOfNotes(const std::vector<RankNote>& notes, std::string data_key);

// The part of `host` in a world of this layout; no slots if it has no such host. Names, key and addresses are left to the
// caller.
HostWorld PartOfHost(const std::vector<RankPlace>& places, uint32_t host);

// The part of the waiting host that has this token. kInvalidArgument, as above, when the world has other ranks on that
// host, or an epoch that is over.
Result<HostWorld> PartOfWaiting(const WorldNote& world, const WaitingHost& here,
                                const std::string& token);

}  // namespace hvd

#endif  // HVD_LAUNCHER_MEETING_NOTES_H_
