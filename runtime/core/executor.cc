#include "runtime/core/executor.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/core/state/name_table.h"

namespace hvd {

Status Executor::Prepare(Operation* op, const RequestSpec& spec, bool caller_waits) {
  const TensorName& name = *op->name;
  const std::span<const TensorSpec> tensors = spec.tensors();
  op->parts.resize(name.calls.size());
  for (size_t i = 0; i < op->parts.size(); ++i) {
    op->parts[i].call = name.calls[i];
    op->parts[i].call.caller_waits = caller_waits;
    Status prepared = PreparePart(op, &op->parts[i], tensors.empty() ? nullptr : &tensors[i]);
    if (prepared.ok()) continue;
    for (OperationTensor& part : op->parts) {
      if (part.state != nullptr) For(part.call).Abandon(std::move(part.state), false);
    }
    return prepared;
  }
  return Status::Ok();
}

// The call of the part is that of its name, without what is known only to this rank.
Status Executor::PreparePart(Operation* op, OperationTensor* part, const TensorSpec* tensor) {
  part->result.made_output = nullptr;
  part->result.received_splits.clear();
  part->done = false;
  part->call.result = &part->result;
  part->call.activities = op->activities ? &*op->activities : nullptr;
  if (tensor != nullptr) {
    part->call.input = tensor->input;
    part->call.output = tensor->output;
    part->call.device_index = tensor->device_index;
    part->call.stream = tensor->stream;
    part->dimensions = static_cast<uint32_t>(tensor->shape.size());
    std::copy(tensor->shape.begin(), tensor->shape.end(), part->shape.begin());
  }
  if (op->set->group.on_one_host() && (!op->name->refusal.ok() || IsControl(op->collective))) {
    part->descriptor = {};
    return Status::Ok();
  }
  return For(part->call).Prepare(part->call, &part->state, &part->descriptor);
}

Status Executor::Start(Operation* op, const Status& agreed) {
  return op->set->group.on_one_host() ? StartOnHost(op) : StartCrossHost(op, agreed);
}

Status Executor::StartOnHost(Operation* op) {
  op->parts_left = op->parts.size();
  for (size_t i = 0; i < op->parts.size(); ++i) {
    OperationTensor& part = op->parts[i];
    if (!IsControl(op->collective)) {  // a change of process sets moves no data
      Result<bool> complete =
          For(part.call).Start(part.call, part.state.get(), rounds_.InputsOf(*op->name, i));
      if (!complete.ok()) return complete.status();
      if (!*complete) continue;
    }
    part.done = true;
    part.state.reset();
    --op->parts_left;
  }
  return Status::Ok();
}

Status Executor::StartCrossHost(Operation* op, const Status& agreed) {
  TensorName& name = *op->name;
  const std::string detail = EncodeDetail(name.own_detail, name.text, !name.hosts_know_names);
  name.hosts_know_names = true;
  const size_t count = agreed.ok() ? op->parts.size() : 1;
  InterHostRequest inter_host;
  inter_host.domain = name.domain <= 0 ? name.domain : name.set->instance;
  inter_host.name = name.text;
  inter_host.detail = detail;
  inter_host.part_count = static_cast<uint32_t>(count);
  inter_host.disagreement = agreed.ok() ? nullptr : &agreed;
  op->parts_left = count;
  for (size_t i = 0; i < op->parts.size(); ++i) {
    OperationTensor& part = op->parts[i];
    part.done = i >= count;
    if (part.done) {
      if (part.state != nullptr) For(part.call).Abandon(std::move(part.state), false);
      continue;
    }
    inter_host.part = static_cast<uint32_t>(i);
    MemberInputs inputs{name.descriptors, {}, {}};
    if (agreed.ok()) inputs = rounds_.InputsOf(name, i);
    inputs.inter_host = &inter_host;
    Result<bool> complete = For(part.call).Start(part.call, part.state.get(), inputs);
    if (!complete.ok()) return complete.status();
  }
  return Status::Ok();
}

Status Executor::Advance(Operation* op) {
  for (OperationTensor& part : op->parts) {
    if (part.done) continue;
    Result<bool> complete = For(part.call).Advance(part.call, part.state.get());
    if (!complete.ok()) return complete.status();
    if (!*complete) continue;
    part.done = true;
    part.state.reset();
    --op->parts_left;
    peers_.WakeAll();
  }
  return Status::Ok();
}

bool Executor::Needs(const Operation& op, uint32_t peer) const {
  if (op.set->index_of_peer[peer] == ProcessSet::kNotHere) return false;
  return std::any_of(op.parts.begin(), op.parts.end(), [&](const OperationTensor& part) {
    return !part.done && For(part.call).Needs(part.call, part.state.get(), peer);
  });
}

std::string Executor::Awaits(const Operation& op) const {
  for (const OperationTensor& part : op.parts) {
    if (part.done || !op.started) continue;
    std::string text = For(part.call).Awaits(part.call, part.state.get());
    if (!text.empty()) return text;
  }
  return "for its data to be moved";
}

AwaitedRanks Executor::AwaitedBy(const Operation& op) const {
  for (const OperationTensor& part : op.parts) {
    if (part.done || !op.started) continue;
    AwaitedRanks awaited = For(part.call).AwaitedBy(part.call, part.state.get());
    if (!awaited.ranks.empty()) return awaited;
  }
  return {{}, true};
}

void Executor::Withdraw(const Operation& op, std::string why) {
  const OperationTensor& first = op.parts[0];
  if (!first.done) For(first.call).Withdraw(first.call, first.state.get(), std::move(why));
}

void Executor::Finish(Operation* op, const Status& status, bool peers_may_work) {
  for (OperationTensor& part : op->parts) {
    if (part.state != nullptr) For(part.call).Abandon(std::move(part.state), peers_may_work);
    const bool written = peers_may_work && op->started && !part.done;
    if (!status.ok() && !written && part.result.made_output != nullptr) {
      heap_.Free(part.result.made_output);
    }
    if (!status.ok()) part.result.made_output = nullptr;
  }
}

void Executor::FreeOutput(OperationTensor* part) {
  heap_.Free(std::exchange(part->result.made_output, nullptr));
}

}  // namespace hvd
