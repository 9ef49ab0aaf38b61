#include "runtime/net/layout.h"

#include <algorithm>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Status CheckNumbers(const std::vector<RankPlace>& places) {
  std::vector<RankPlace> sorted = places;
  std::sort(sorted.begin(), sorted.end(), [](const RankPlace& a, const RankPlace& b) {
    return a.host != b.host ? a.host < b.host : a.local_rank < b.local_rank;
  });
  RankPlace expected;
  for (const RankPlace& place : sorted) {
    if (place.host == expected.host + 1 && place.local_rank == 0 && expected.local_rank > 0)
      expected = {place.host, 0};
    if (!(place == expected)) {
      return InvalidArgument(
          Format("a layout without local rank {} of host {}", expected.local_rank, expected.host));
    }
    ++expected.local_rank;
  }
  return Status::Ok();
}

}  // namespace

namespace {

// Runs that are each on one host.
std::vector<RankRun> SingleRunsOf(const std::vector<RankPlace>& places) {
  std::vector<RankRun> runs;
  for (const RankPlace& place : places) {
    bool goes_on = !runs.empty() && runs.back().host == place.host &&
                   runs.back().local_rank + runs.back().count == place.local_rank;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({place.host, place.local_rank, 1});
    }
  }
  return runs;
}

}  // namespace

std::vector<RankRun> RunsOf(const std::vector<RankPlace>& places) {
  std::vector<RankRun> runs;
  for (const RankRun& run : SingleRunsOf(places)) {
    RankRun* last = runs.empty() ? nullptr : &runs.back();
    const bool goes_on = last != nullptr && run.host == last->host + last->hosts &&
                         run.local_rank == last->local_rank && run.count == last->count;
    if (goes_on) {
      ++last->hosts;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

Result<std::vector<RankPlace>> PlacesOf(const std::vector<RankRun>& runs, uint32_t size) {
  uint64_t total = 0;
  for (const RankRun& run : runs) {
    if (run.count == 0 || run.hosts == 0) return InvalidArgument("a layout with a run of no ranks");
    total += uint64_t{run.count} * run.hosts;
    if (total > kMaxRanks) break;
  }
  if (total != size || size == 0 || size > kMaxRanks) {
    return InvalidArgument(Format("a layout of {} ranks for a world of {}", total, size));
  }
  std::vector<RankPlace> places;
  places.reserve(size);
  for (const RankRun& run : runs) {
    for (uint32_t host = 0; host < run.hosts; ++host) {
      for (uint32_t i = 0; i < run.count; ++i) {
        places.push_back({run.host + host, run.local_rank + i});
      }
    }
  }
  HVD_RETURN_IF_ERROR(CheckNumbers(places));
  return places;
}

}  // namespace hvd
