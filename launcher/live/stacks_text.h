// The Python stacks of many ranks as hvdrun dump --stacks prints them, equal ones merged. Pure.
#ifndef HVD_LAUNCHER_LIVE_STACKS_TEXT_H_
#define HVD_LAUNCHER_LIVE_STACKS_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct RankStacks {
  uint32_t rank = 0;
  std::string host;
  std::string text;    // py-spy's output; empty: not available
  std::string reason;  // why not
};

// Omits process and thread ids, in which equal stacks differ. Ends with a newline.
std::string StacksText(std::vector<RankStacks> ranks);
// A list of objects, one per rank: rank, host, and stacks (py-spy's output) or null with a reason.
std::string StacksJson(const std::vector<RankStacks>& ranks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_STACKS_TEXT_H_
