// The Python stacks of many ranks as hvdrun dump --stacks prints them: those that are equal once.
// Pure.
#ifndef HVD_LAUNCHER_LIVE_STACKS_TEXT_H_
#define HVD_LAUNCHER_LIVE_STACKS_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct RankStacks {
  uint32_t rank = 0;
  std::string host;
  std::string text;    // as py-spy writes it; empty: it could not be read
  std::string reason;  // why not
};

// Without numbers of processes and threads, by which equal stacks differ. Ends with a newline.
std::string StacksText(std::vector<RankStacks> ranks);
// A list of objects, one for each rank: rank, host, stacks as py-spy writes them, or null and
// reason.
std::string StacksJson(const std::vector<RankStacks>& ranks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_STACKS_TEXT_H_
