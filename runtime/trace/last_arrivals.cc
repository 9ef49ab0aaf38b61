#include "runtime/trace/last_arrivals.h"

#include <algorithm>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Rounds are never complete if records of a rank were lost.
constexpr size_t kMostRounds = 16384;

}  // namespace

std::string LastArrivals::KeyOf(const Submission& submission) {
  return Format("{} {} {} {}", generations_[submission.rank], submission.set, submission.round,
                submission.name);
}

std::optional<LastArrival> LastArrivals::Note(const Submission& submission) {
  if (submission.members < 2) return std::nullopt;
  std::string key = KeyOf(submission);
  auto [found, is_new] = rounds_.try_emplace(key);
  Round& round = found->second;
  const int64_t ns = submission.ns;
  if (is_new) {
    round = {1, submission.rank, ns, ns, ns};
    oldest_.push_back(std::move(key));
    while (oldest_.size() > kMostRounds) {
      rounds_.erase(oldest_.front());
      oldest_.pop_front();
    }
    return std::nullopt;
  }
  ++round.arrived;
  round.first_ns = std::min(round.first_ns, ns);
  // From the second arrival on, two are known.
  if (ns >= round.last_ns) {
    round.before_last_ns = round.last_ns;
    round.last_ns = ns;
    round.last_rank = submission.rank;
  } else if (round.arrived == 2 || ns > round.before_last_ns) {
    round.before_last_ns = ns;
  }
  if (round.arrived < submission.members) return std::nullopt;
  const LastArrival last{round.last_rank, round.last_ns, round.last_ns - round.before_last_ns,
                         round.last_ns - round.first_ns};
  rounds_.erase(found);
  return last;
}

void LastArrivals::BeginRank(uint32_t rank, uint64_t generation) {
  generations_[rank] = generation;
}

}  // namespace hvd
