#include "runtime/backends/gloo/allreduce_algorithm.h"

#include <algorithm>

namespace hvd {
namespace {

// The most that a leader receives in one step; measured on loopback with 2, 3 and 4 leaders.
constexpr size_t kMostReceived = 256 * 1024;
// With more leaders than this, adding up everything everywhere costs more than a second exchange.
constexpr size_t kMostDirectLeaders = 16;

// One is added up while the next one arrives.
constexpr size_t kLeastPieces = 2;
constexpr size_t kMostPieces = 8;
constexpr uint64_t kBytesPerUs = 12'500;  // at 100 Gbit/s

}  // namespace

AllreduceAlgorithm ChooseAllreduce(size_t bytes, size_t leaders) {
  const bool direct =
      leaders <= kMostDirectLeaders && (leaders <= 1 || bytes <= kMostReceived / (leaders - 1));
  return direct ? AllreduceAlgorithm::kDirect : AllreduceAlgorithm::kSliced;
}

size_t PiecesInFlight(uint64_t round_trip_us, size_t part_bytes) {
  if (round_trip_us == 0 || part_bytes == 0) return kMostPieces;
  const uint64_t us = std::min<uint64_t>(round_trip_us, 1'000'000);
  const uint64_t on_the_way = (us * kBytesPerUs + part_bytes - 1) / part_bytes;
  return std::clamp<uint64_t>(1 + on_the_way, kLeastPieces, kMostPieces);
}

}  // namespace hvd
