#include "runtime/backends/hosts/stepped_batch.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace hvd {

bool SteppedBatch::Fits(const LeaderBatch& batch, InterHostComm& comm) {
  InterHostSteps* steps = comm.steps();
  if (steps == nullptr || batch.ops.size() != batch.msg.entries.size()) return false;
  if (!batch.msg.sums.empty()) return true;  // nothing is exchanged
  const size_t most = steps->MostSumBytes(batch.msg.leaders.size());
  const CollectiveCall* first = nullptr;
  size_t bytes = 0;
  for (const LeaderOpPointer& op : batch.ops) {
    for (const auto& part : op->parts) {
      if (first == nullptr) first = &part->call;
      if (!TravelTogether(*first, part->call)) return false;
      bytes += part->call.count * SizeOf(InterHostType(part->call));
    }
  }
  return first != nullptr && bytes <= most;
}

SteppedBatch::SteppedBatch(LeaderBatch batch, InterHostComm& comm, uint32_t rank)
    : batch_(std::move(batch)),
      comm_(comm),
      rank_(rank),
      items_(ItemsOf(batch_.msg, batch_.ops)),
      sum_(items_) {
  if (items_[0].part->straight) return;
  NoteActivity(items_, {.bytes = sum_.bytes(), .activity = TraceActivity::kHostReduce});
}

Status SteppedBatch::Continue(TimePoint deadline) {
  if (over_) return outcome_;
  Status step = Step(deadline);
  if (step.code() == Code::kInProgress) return step;
  over_ = true;
  exchange_.reset();
  return outcome_ = std::move(step);
}

Status SteppedBatch::Step(TimePoint deadline) {
  if (exchange_ == nullptr) {
    if (!sum_.Help()) {
      if (deadline > TimePoint{}) ::sched_yield();
      return {Code::kInProgress, "a rank of this host adds up its part"};
    }
    if (sum_.count() != 0) HVD_RETURN_IF_ERROR(Begin());
  }
  if (exchange_ != nullptr) {
    HVD_RETURN_IF_ERROR(exchange_->Continue(deadline));
    NoteAlgorithm(items_, algorithm_);
  }
  if (sum_.count() != 0) sum_.HandOut();
  NoteActivity(items_, {.activity = TraceActivity::kNone});
  return Status::Ok();
}

Status SteppedBatch::Begin() {
  const std::vector<uint32_t>& leaders = batch_.msg.leaders;
  const auto self = std::ranges::find(leaders, rank_);
  if (self == leaders.end()) {
    return Internal("the coordinator gave out work that is not for this rank");
  }
  const auto room = [this](size_t bytes) {
    packed_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return packed_.get();
  };
  SumCopies* copies = sum_.Pack(room, comm_.CopiesByPart() && batch_.msg.sums.empty());
  NoteActivity(items_, ExchangeNote(comm_.name(), items_, Collective::kAllreduce, sum_.bytes()));
  if (!batch_.msg.sums.empty()) {
    NoteAlgorithm(items_, TraceAlgorithm::kAnnouncement);
    return sum_.AddOffered(batch_.msg.sums, static_cast<size_t>(self - leaders.begin()));
  }
  InterHostCall call{{leaders, static_cast<uint32_t>(self - leaders.begin())},
                     TagOf(batch_.msg.number, 0)};
  call.algorithm = &algorithm_;
  call.cut = batch_.msg.cut;
  call.copies = copies;
  exchange_ = comm_.steps()->BeginSum(call, sum_.spec(), sum_.input(), sum_.output(), sum_.count());
  return Status::Ok();
}

Status SteppedBatch::Finish(const std::function<bool()>& given_up) {
  for (;;) {
    // An Abort ends the exchange, but not the work of another rank on this host.
    Status done = Continue(exchange_ == nullptr ? TimePoint{} : TimePoint::max());
    if (done.code() != Code::kInProgress) return done;
    if (exchange_ != nullptr) continue;
    if (given_up()) return Aborted("the world broke while a sum was made");
    ::sched_yield();
  }
}

}  // namespace hvd
