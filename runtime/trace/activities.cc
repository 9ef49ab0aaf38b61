#include "runtime/trace/activities.h"

#include <array>

namespace hvd {
namespace {

// The prefix of an exchange, before the name of its collective.
constexpr std::array<std::string_view, 10> kActivities = {"",
                                                          "MEMCPY_IN_FUSION_BUFFER",
                                                          "MEMCPY_OUT_FUSION_BUFFER",
                                                          "WAIT_FOR_HOSTS",
                                                          "QUEUE",
                                                          "HOST_REDUCE",
                                                          "EXCHANGE_",
                                                          "GLOO_",
                                                          "MPI_",
                                                          "HAND_OUT"};
// Horovod's names: it calls a broadcast BCAST here.
constexpr std::array<std::string_view, 5> kExchanged = {"ALLREDUCE", "ALLGATHER", "BCAST",
                                                        "ALLTOALL", "REDUCESCATTER"};
constexpr std::array<std::string_view, 8> kAlgorithms = {
    "", "announcement", "in place", "copied", "alone", "direct", "sliced", "tree"};

template <size_t N>
std::string_view Entry(const std::array<std::string_view, N>& names, size_t number) {
  return number < N ? names[number] : std::string_view();
}

}  // namespace

std::string ActivityName(TraceActivity activity, uint8_t collective) {
  std::string name(Entry(kActivities, static_cast<size_t>(activity)));
  if (name.ends_with('_')) name += Entry(kExchanged, collective);
  return name;
}

std::string_view AlgorithmName(TraceAlgorithm algorithm) {
  return Entry(kAlgorithms, static_cast<size_t>(algorithm));
}

}  // namespace hvd
