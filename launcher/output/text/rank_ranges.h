// Ranks in words: "0,2-3". Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_RANK_RANGES_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_RANK_RANGES_H_

#include <cstdint>
#include <span>
#include <string>

namespace hvd {

// `ranks` ascend.
std::string RankRanges(std::span<const uint32_t> ranks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_RANK_RANGES_H_
