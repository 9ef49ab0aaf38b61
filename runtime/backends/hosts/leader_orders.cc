#include "runtime/backends/hosts/leader_orders.h"

#include <utility>

namespace hvd {
namespace {

std::vector<uint32_t> Without(std::vector<uint32_t> ranks, uint32_t rank) {
  std::erase(ranks, rank);
  return ranks;
}

}  // namespace

bool LeaderOrders::IsOrder(const Coordination& msg) {
  return std::holds_alternative<RunMessage>(msg) || std::holds_alternative<EndMessage>(msg) ||
         std::holds_alternative<WaitMessage>(msg) || std::holds_alternative<TurnMessage>(msg) ||
         std::holds_alternative<SumsMessage>(msg) ||
         std::holds_alternative<EarlyOfferMessage>(msg) ||
         std::holds_alternative<RecallMessage>(msg);
}

Status LeaderOrders::Execute(Coordination&& order, std::optional<Coordination>* reply) {
  if (auto* run = std::get_if<RunMessage>(&order)) return OnRun(std::move(*run));
  if (auto* sums = std::get_if<SumsMessage>(&order)) return OnRun(std::move(sums->run));
  if (auto* turn = std::get_if<TurnMessage>(&order)) return OnTurn(std::move(turn->run), reply);
  if (auto* early = std::get_if<EarlyOfferMessage>(&order)) {
    HVD_RETURN_IF_ERROR(reported_.early().Keep(std::move(early->ready)));
    return UseEarlyOffer();
  }
  if (auto* recall = std::get_if<RecallMessage>(&order)) {
    reported_.early().Drop(recall->ticket);
    *reply = RecalledMessage{recall->ticket};
  }
  if (auto* end = std::get_if<EndMessage>(&order)) OnEnd(*end);
  if (auto* wait = std::get_if<WaitMessage>(&order)) OnWait(*wait);
  return Status::Ok();
}

Status LeaderOrders::UseEarlyOffer() {
  std::optional<RunMessage> run = reported_.RunOfEarlyOffer();
  return run ? OnRun(std::move(*run)) : Status::Ok();
}

Status LeaderOrders::OnRun(RunMessage&& msg) {
  ++settled_;
  LeaderBatch batch;
  std::vector<uint32_t> others;
  for (const RunEntry& entry : msg.entries) {
    LeaderOpPointer op = reported_.Remove(entry.ticket);
    if (op == nullptr) return Internal("the coordinator knows a ticket that never was");
    if (msg.leaders.empty()) msg.leaders = op->FirstMembers();
    if (others.empty()) others = Without(msg.leaders, rank_);
    for (const auto& part : op->parts) part->result_status->awaited.AtWork(others);
    batch.ops.push_back(std::move(op));
  }
  if (!msg.sums.empty() && msg.sums.size() != msg.leaders.size())
    return Internal("the coordinator sent parts of a sum for other leaders");
  batch.msg = std::move(msg);
  on_batch_(std::move(batch));
  return Status::Ok();
}

// No data to move, so the batch is done when the members here know of it.
Status LeaderOrders::OnTurn(RunMessage&& msg, std::optional<Coordination>* reply) {
  ++settled_;
  std::vector<LeaderOpPointer> ops;
  uint32_t parts = 0;
  for (const RunEntry& entry : msg.entries) {
    LeaderOpPointer op = reported_.Remove(entry.ticket);
    if (op == nullptr) return Internal("the coordinator knows a ticket that never was");
    if (msg.leaders.empty()) msg.leaders = op->FirstMembers();
    parts += static_cast<uint32_t>(op->parts.size());
    ops.push_back(std::move(op));
  }
  uint32_t place = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const RunEntry& entry = msg.entries[i];
    for (size_t p = 0; p < ops[i]->parts.size(); ++p) {
      AgreedPart agreed{{.place = place++, .batch_size = parts, .participants = entry.participants},
                        msg.turns};
      if (p < entry.extents.size()) agreed.agreement.extents = entry.extents[p];
      agreed.agreement.notes = msg.notes;
      publisher_.PublishAgreement(*ops[i]->parts[p], agreed);
    }
  }
  publisher_.WakeHost();
  if (msg.leaders[0] == rank_) *reply = DoneMessage{msg.number};
  return Status::Ok();
}

void LeaderOrders::OnEnd(const EndMessage& msg) {
  LeaderOpPointer op = reported_.Remove(msg.ticket);
  if (op == nullptr) return;
  if (!msg.status.ok()) {
    failures_.emplace_back(std::move(op), msg.status);
    return;
  }
  ++settled_;
  for (const auto& part : op->parts) part->result_status->last_joined = msg.last_joined;
  publisher_.PublishResults({&op, 1});
}

void LeaderOrders::OnWait(const WaitMessage& msg) {
  const LeaderOp* op = reported_.Find(msg.ticket);
  if (op == nullptr) return;
  for (const auto& part : op->parts) part->result_status->awaited.NotAnnounced(msg.ranks);
}

void LeaderOrders::PublishFailures() {
  for (const auto& [op, why] : std::exchange(failures_, {})) publisher_.PublishFailure(*op, why);
}

void LeaderOrders::FailAll(const Status& why) {
  for (const auto& [ticket, op] : reported_.all()) publisher_.PublishFailure(*op, why);
  reported_.Clear();
}

}  // namespace hvd
