#include "runtime/trace/event_names.h"

#include <array>

namespace hvd {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "ALLREDUCE", "ALLGATHER", "BROADCAST",       "ALLTOALL",          "REDUCESCATTER",
    "BARRIER",   "JOIN",      "ADD_PROCESS_SET", "REMOVE_PROCESS_SET"};
constexpr uint8_t kBarrier = 5;

}  // namespace

std::string_view CollectiveName(uint8_t collective) {
  return collective < kNames.size() ? kNames[collective] : "OPERATION";
}

bool MovesData(uint8_t collective) { return collective < kBarrier; }

}  // namespace hvd
