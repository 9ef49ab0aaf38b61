// The records that adopting agents exchange through a key-value server, and the world computed from
// them. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_RECORDS_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/generation/host_generations.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// The ranks of one host that wait for a world.
struct WaitingHost {
  std::vector<uint32_t> ranks;   // by local rank
  uint32_t size = 0;             // of the world
  uint64_t last_generation = 0;  // this host has seen
};

// One rank that waits for the world. `token` stands for its host in this one rendezvous.
struct RankEntry {
  std::string token;             // as MakeJobId() makes it
  uint32_t local_rank = 0;       // below kMaxRanks
  uint64_t last_generation = 0;  // its host has seen; below kLastMetGeneration
  bool operator==(const RankEntry&) const = default;
};

// The world decided by the host of rank 0.
struct WorldRecord {
  uint64_t generation = 0;          // from 1 to kLastMetGeneration
  std::string data_key;             // as MakeJobKey() makes it
  std::vector<std::string> tokens;  // by host, no two alike
  std::vector<RankRun> layout;
  bool operator==(const WorldRecord&) const = default;
};

// Limit of generations, so that increments do not overflow.
inline constexpr uint64_t kLastMetGeneration = uint64_t{1} << 62;

std::string EncodeRecord(const RankEntry& note);
std::string EncodeRecord(const WorldRecord& note);
// The text is untrusted: everything is checked before use, and allocations are bounded by the text
// and `size` (ranks of the world). The text of kInvalidArgument follows "the record ...".
Result<RankEntry> DecodeRankEntry(std::string_view text);
Result<WorldRecord> DecodeWorldRecord(std::string_view text, uint32_t size);
// Maximum length of the record of a world of `size` ranks.
size_t MostBytesOfWorldRecord(uint32_t size);

// The record that the host of rank 0 writes instead of a world that cannot be formed, with the
// reason.
std::string EncodeRefusal(const std::string& reason);
std::optional<std::string> DecodeRefusal(std::string_view text);

// Whether this is a rendezvous name: 16 hexadecimal digits, as from MakeJobId().
bool IsRendezvousName(std::string_view text);

// By rank. Hosts are numbered in the order of their first ranks.
Result<WorldRecord> WorldOfRecords(const std::vector<RankEntry>& notes, std::string data_key);

// The part of `host` in a world of this layout; no slots if there is no such host. The caller fills
// in names, key and addresses.
HostWorld PartOfHost(const std::vector<RankPlace>& places, uint32_t host);

// The part of the waiting host that has this token. kInvalidArgument, as above, if the world has
// other ranks on that host, or a past generation.
Result<HostWorld> PartOfWaiting(const WorldRecord& world, const WaitingHost& here,
                                const std::string& token);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_RENDEZVOUS_RECORDS_H_
