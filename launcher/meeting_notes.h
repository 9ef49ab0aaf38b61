// What adopting agents of several hosts write to each other in a key-value server, and the world that follows. Pure.
#ifndef HVD_LAUNCHER_MEETING_NOTES_H_
#define HVD_LAUNCHER_MEETING_NOTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host_epochs.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// One rank that waits for the world. `token` stands for its host in this one meeting.
struct RankNote {
  std::string token;
  uint32_t local_rank = 0;
  uint64_t last_epoch = 0;  // its host has seen
  bool operator==(const RankNote&) const = default;
};

// The world, as the host of rank 0 decided it.
struct WorldNote {
  uint64_t epoch = 0;
  std::string data_key;
  std::vector<std::string> tokens;  // by host
  std::vector<RankRun> layout;
  bool operator==(const WorldNote&) const = default;
};

// Text. Decoding refuses anything that is not exactly such a note, with kInvalidArgument.
std::string EncodeNote(const RankNote& note);
std::string EncodeNote(const WorldNote& note);
Result<RankNote> DecodeRankNote(std::string_view text);
Result<WorldNote> DecodeWorldNote(std::string_view text);

// By rank. Hosts are numbered in the order of their first ranks.
Result<WorldNote> WorldOfNotes(const std::vector<RankNote>& notes, std::string data_key);

// The part of `host` in a world of this layout. Names, key and addresses are left to the caller.
HostWorld PartOfHost(const std::vector<RankPlace>& places, uint32_t host);

}  // namespace hvd

#endif  // HVD_LAUNCHER_MEETING_NOTES_H_
