#include "test/sim/sim_world.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace hvd::test {
namespace {

const double kOddInput[64] = {};

// An operation that one member asks for otherwise.
struct OddRequest {
  double output[64] = {};
  std::vector<int64_t> shape{1};
};

bool MakesOutput(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kAlltoall ||
         collective == Collective::kReducescatter;
}

std::string TextOf(const SimOp& op) {
  std::string text = "'" + op.name + "' (collective " +
                     std::to_string(static_cast<int>(op.collective)) + ", set " +
                     std::to_string(op.set) + ", of";
  for (size_t i = 0; i < op.members.size(); ++i) {
    text += " " + std::to_string(op.members[i]) + (op.takes_part[i] != 0 ? "" : " (not)") +
            (op.odd == i ? " (odd)" : "");
  }
  return text + (op.never ? ", never complete)" : ")");
}

}  // namespace

SimWorld::SimWorld(SimProgram program, std::vector<uint32_t> host_of, Fault fault, uint64_t seed)
    : threads_(host_of.back() > 0 ? std::make_unique<SeededThreads>(seed) : nullptr),
      program_(std::move(program)),
      fault_(fault),
      random_(seed ^ 0x5eed),
      hosts_(std::move(host_of), seed) {
  for (uint32_t h = 0; h < hosts_.count(); ++h) {
    const size_t capacity = 2 + random_() % 20, max_record = 160 + random_() % 2000;
    const auto size = static_cast<uint32_t>(hosts_.ranks_of(h).size());
    nets_.push_back(std::make_unique<SimNet>(size, capacity, max_record));
  }
  EngineOptions options;
  options.clock = &clock_;
  options.last_work = Duration(0);
  ranks_.resize(program_.size);
  for (uint32_t r = 0; r < program_.size; ++r) {
    Rank& rank = ranks_[r];
    rank.peers = std::make_unique<SimPeers>(NetOf(r), hosts_.local_of(r));
    rank.backend = std::make_unique<LateBackend>(heap_, random_);
    Backend* backend = rank.backend.get();
    if (hosts_.several()) backend = &hosts_.Open(r, *backend, heap_, segments_);
    rank.engine =
        std::make_unique<Engine>(*rank.peers, *backend, heap_, hosts_.WorldOf(r), options);
    EnterStep(rank, r);
  }
  fault_turn_ = random_() % (program_.size * program_.steps.size() * 40);
}

void SimWorld::Fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

std::string SimWorld::Run() {
  while (failure_.empty() && !AllThrough()) {
    ++turns_;
    clock_.Advance(Duration(1 + random_() % 1000));
    if (fault_ != Fault::kNone && turns_ == fault_turn_) StrikeFault();
    const auto rank = static_cast<uint32_t>(random_() % program_.size);
    const size_t neighbours = hosts_.ranks_of(hosts_.host_of(rank)).size();
    const auto peer = static_cast<uint32_t>(random_() % neighbours);
    for (uint64_t i = random_() % 4; i > 0 && NetOf(rank).Deliver(peer, hosts_.local_of(rank));
         --i) {
    }
    if (random_() % 64 == 0) Notify(rank);
    Turn(rank);
    if (turns_ % (200 * program_.size) == 0 && StandsStill()) {
      Fail("the world stands still: " + WhereAll());
    }
  }
  return failure_;
}

bool SimWorld::AllThrough() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.through; });
}

uint64_t SimWorld::Events() const {
  uint64_t events = done_ + hosts_.messages();
  for (const auto& net : nets_) events += net->events();
  return events;
}

void SimWorld::Notify(uint32_t rank) {
  NetOf(rank).Notify(hosts_.local_of(rank));
  hosts_.Notify(rank);
}

// Threads between hosts take their time: there, nothing may move for long.
bool SimWorld::StandsStill() {
  const TimePoint patience = SteadyNow() + std::chrono::seconds(20);
  while (!AllThrough() && !MovedBy(12)) {
    if (threads_ == nullptr || SteadyNow() > patience) {
      return !AllThrough();  // the last step is no event
    }
    threads_->Sleep(std::chrono::milliseconds(10));
  }
  return false;
}

// Shows everybody everything, again and again; false when that moves nothing.
bool SimWorld::MovedBy(int sweeps) {
  const uint64_t events = Events();
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (const auto& net : nets_) net->DeliverAll();
    for (uint32_t r = 0; r < program_.size; ++r) {
      hosts_.Notify(r);
      for (size_t i = 0; i < 8 + 4 * ranks_[r].flights.size(); ++i) Turn(r);
    }
  }
  return Events() != events;
}

std::string SimWorld::WhereAll() const {
  std::string text;
  for (uint32_t r = 0; r < program_.size; ++r) {
    const Rank& rank = ranks_[r];
    if (rank.through) continue;
    text += "\n  rank " + std::to_string(r) + " on host " + std::to_string(hosts_.host_of(r)) +
            " in step " + std::to_string(rank.step) + " of " +
            std::to_string(program_.steps.size()) + ", " + std::to_string(rank.to_submit.size()) +
            " to submit, waits for:";
    for (const auto& flight : rank.flights) {
      text += flight->op != nullptr ? " " + TextOf(*flight->op) : std::string(" fence");
    }
  }
  return text;
}

// ---- one rank

void SimWorld::EnterStep(Rank& rank, uint32_t number) {
  rank.fence = false;
  rank.to_submit.clear();
  if (rank.step >= program_.steps.size()) return;
  for (const SimOp& op : program_.steps[rank.step].ops) {
    if (op.HasMember(number) && op.takes_part[op.MemberOf(number)] != 0) {
      rank.to_submit.push_back(&op);
    }
  }
}

void SimWorld::Turn(uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.gone || !failure_.empty()) return;
  switch (random_() % 3) {
    case 0:
      if (SubmitSomething(number)) break;
      [[fallthrough]];
    case 1:
      if (!rank.flights.empty()) {
        LookAtFlight(number);
        break;
      }
      [[fallthrough]];
    default: rank.engine->TryProgress();
  }
  // When the removal that was to end them failed, nothing ends them.
  const bool waits = std::any_of(rank.flights.begin(), rank.flights.end(), [](const auto& flight) {
    return flight->op == nullptr || !flight->op->never;
  });
  if (rank.step < program_.steps.size()) return;
  rank.through = rank.flights.empty() || (rank.stopped && !waits);
}

// Submits one of the operations of this step whose name is free, or enters the next step.
bool SimWorld::SubmitSomething(uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.step >= program_.steps.size()) return false;
  if (!rank.to_submit.empty()) {
    const size_t chosen = random_() % std::min<size_t>(rank.to_submit.size(), 4);
    const SimOp* op = rank.to_submit[chosen];
    auto same_name = [op](const SimOp* other) {
      return other != nullptr && other->set == op->set && other->name == op->name;
    };
    if (std::any_of(rank.to_submit.begin(), rank.to_submit.begin() + static_cast<long>(chosen),
                    same_name) ||
        std::any_of(rank.flights.begin(), rank.flights.end(),
                    [&](const auto& flight) { return same_name(flight->op); })) {
      return false;
    }
    rank.to_submit.erase(rank.to_submit.begin() + static_cast<long>(chosen));
    SubmitOp(number, *op);
    return true;
  }
  const SimStep& step = program_.steps[rank.step];
  if (step.kind == SimStep::Kind::kOps) {
    ++rank.step;
    EnterStep(rank, number);
    return true;
  }
  if (rank.fence) return false;  // goes on when the fence is over
  rank.fence = true;
  SubmitFence(number, step);
  return true;
}

void SimWorld::SubmitOp(uint32_t number, const SimOp& op) {
  auto flight = std::make_unique<Flight>();
  flight->op = &op;
  const uint32_t member = op.MemberOf(number);
  std::vector<TensorSpec> tensors;
  const size_t count = op.columns.size();
  flight->inputs.resize(count), flight->outputs.resize(count), flight->shapes.resize(count);
  for (size_t t = 0; t < count; ++t) {
    flight->shapes[t] = {op.rows[t][member], op.columns[t]};
    std::vector<int64_t>& input = flight->inputs[t];
    input.resize(static_cast<size_t>(flight->shapes[t][0] * flight->shapes[t][1]));
    for (size_t i = 0; i < input.size(); ++i) input[i] = ValueOf(number, t, i);
    flight->outputs[t].assign(MakesOutput(op.collective) ? 0 : input.size(), -7);
    void* output = MakesOutput(op.collective) ? nullptr : flight->outputs[t].data();
    tensors.push_back({DType::kInt64, input.data(), output, flight->shapes[t]});
  }
  RequestSpec spec;
  spec.collective = op.collective;
  spec.name = op.name;
  spec.process_set = op.set;
  spec.op = op.op;
  spec.root = op.root;
  if (op.group)
    spec.group = tensors;
  else
    spec.tensor = tensors[0];
  if (op.collective == Collective::kAlltoall) spec.splits = op.splits[member];
  OddRequest odd;
  if (op.odd == member) {
    const bool another = op.collective == Collective::kBarrier || op.name.back() % 2 == 0;
    spec.collective = op.collective != Collective::kBarrier && another ? Collective::kBarrier
                                                                       : Collective::kAllreduce;
    if (!another) spec.collective = op.collective;
    spec.group = {};
    spec.splits = {};
    odd.shape = {static_cast<int64_t>(op.members.size()), 1, 1};
    spec.tensor = {DType::kFloat32, kOddInput, odd.output, odd.shape};
    if (op.members.size() > 64) spec.collective = Collective::kBarrier;
  }
  if (hosts_.several() && !MakesOutput(spec.collective) && random_() % 2 == 0) {
    SubmitAndWait(number, std::move(flight), spec);
  } else {
    Submit(number, std::move(flight), spec);
  }
}

void SimWorld::Submit(uint32_t number, std::unique_ptr<Flight> flight, const RequestSpec& spec) {
  Result<Engine::Handle> handle = ranks_[number].engine->Submit(spec);
  ++done_;
  if (handle.ok()) {
    flight->handle = *handle;
    ranks_[number].flights.push_back(std::move(flight));
    return;
  }
  const bool excused = fault_ != Fault::kNone && (victim_.has_value() || broken_);
  if (!excused) {
    Fail("rank " + std::to_string(number) + " could not submit '" + flight->op->name +
         "': " + handle.status().message());
  }
}

// Waits for a moment only: the other ranks go on when this call has returned.
void SimWorld::SubmitAndWait(uint32_t number, std::unique_ptr<Flight> flight,
                             const RequestSpec& spec) {
  Rank& rank = ranks_[number];
  const Status status = rank.engine->Run(spec, Duration(1), &flight->handle);
  ++done_;
  if (flight->handle != 0) {
    rank.flights.push_back(std::move(flight));
    return;
  }
  CheckOp(number, *flight, status, {});
}

void SimWorld::SubmitFence(uint32_t number, const SimStep& step) {
  Engine& engine = *ranks_[number].engine;
  auto flight = std::make_unique<Flight>();
  flight->step = &step;
  Result<Engine::Handle> handle = Status();
  if (step.kind == SimStep::Kind::kAddSet) {
    std::vector<uint32_t> members = step.members;
    std::shuffle(members.begin(), members.end(), random_);
    handle = engine.SubmitAddProcessSet(members);
  } else if (step.kind == SimStep::Kind::kRemoveSet) {
    handle = engine.SubmitRemoveProcessSet(step.set);
  } else {
    RequestSpec spec;
    spec.collective = Collective::kJoin;
    spec.name = "join" + std::to_string(number);
    handle = engine.Submit(spec);
  }
  ++done_;
  if (handle.ok()) {
    flight->handle = *handle;
    ranks_[number].flights.push_back(std::move(flight));
  } else if (fault_ == Fault::kNone) {
    Fail("rank " + std::to_string(number) +
         " could not submit a fence: " + handle.status().message());
  } else {
    Stop(number);
  }
}

// The rank makes no more submissions and waits for what it has in flight.
void SimWorld::Stop(uint32_t number) {
  ranks_[number].stopped = true;
  ranks_[number].step = program_.steps.size();
  ranks_[number].to_submit.clear();
}

void SimWorld::LookAtFlight(uint32_t number) {
  Rank& rank = ranks_[number];
  const size_t chosen = random_() % rank.flights.size();
  Flight& flight = *rank.flights[chosen];
  if (hosts_.several()) hosts_.Attend(number);
  Result<bool> done = rank.engine->Poll(flight.handle);
  if (!done.ok()) return Fail("a handle was lost: " + done.status().message());
  if (!*done) return;
  Finish(number, flight);
  rank.flights.erase(rank.flights.begin() + static_cast<long>(chosen));
}

// ---- what came out

void SimWorld::Finish(uint32_t number, Flight& flight) {
  ++done_;
  OperationResult result;
  Status status = ranks_[number].engine->Wait(flight.handle, Duration(0), &result);
  if (flight.op != nullptr) {
    CheckOp(number, flight, status, result);
  } else if (!status.ok()) {
    if (fault_ == Fault::kNone) Fail("a fence failed: " + status.message());
    return Stop(number);
  } else {
    const SimStep& step = *flight.step;
    if (step.kind == SimStep::Kind::kAddSet && result.process_set != step.set) {
      Fail("a set got the id " + std::to_string(result.process_set) + ", not " +
           std::to_string(step.set));
    }
    if (step.kind == SimStep::Kind::kJoin) {
      const int32_t last = last_joined_.emplace(&step, result.last_joined_rank).first->second;
      if (last != result.last_joined_rank) Fail("ranks disagree about who joined last");
    }
    ++ranks_[number].step;
    EnterStep(ranks_[number], number);
  }
  for (const OperationResult::Output& output : result.outputs) {
    if (output.made != nullptr) heap_.Free(output.made);
  }
}

// Without faults.
Code SimWorld::ExpectedCode(const SimOp& op) const {
  if (op.odd.has_value()) return Code::kMismatch;
  if (op.never) return Code::kAborted;
  const bool all =
      std::all_of(op.takes_part.begin(), op.takes_part.end(), [](uint8_t t) { return t != 0; });
  const bool needs_all =
      op.collective != Collective::kAllreduce && op.collective != Collective::kBarrier;
  return !all && needs_all ? Code::kMismatch : Code::kOk;
}

void SimWorld::CheckOp(uint32_t number, const Flight& flight, const Status& status,
                       const OperationResult& result) {
  const SimOp& op = *flight.op;
  // A known limit: an operation that one host has given up because its set was removed may be seen
  // by another as ended by a join behind it.
  if (op.never && op.set != 0 && hosts_.Span(op.members)) return;
  CheckVerdict(number, flight, status);
  // Members on other hosts may be seen to come too late.
  const bool removed = op.set != 0 && hosts_.Span(op.members) &&
                       status.message().find("was removed before") != std::string::npos;
  const bool excused = (fault_ != Fault::kNone || removed) && status.code() == Code::kAborted;
  if (status.code() != ExpectedCode(op) && !excused) {
    return Fail("rank " + std::to_string(number) + ": " + TextOf(op) + " ended with " +
                std::to_string(static_cast<int>(status.code())) + ": " + status.message());
  }
  if (status.code() == Code::kAborted && fault_ == Fault::kLeave && !op.never && !removed &&
      victim_ != number && !MayBeCutShort(op)) {
    return Fail("'" + op.name + "' failed although nobody it needs has left: " + status.message());
  }
  if (status.ok()) CheckOutputs(number, flight, result);
}

// Somebody has left who takes part in it; rank 0 has a part in everything between hosts.
bool SimWorld::MayBeCutShort(const SimOp& op) const {
  return victim_ && (op.HasMember(*victim_) || (*victim_ == 0 && hosts_.Span(op.members)));
}

void SimWorld::CheckOutputs(uint32_t number, const Flight& flight, const OperationResult& result) {
  const SimOp& op = *flight.op;
  if (op.collective == Collective::kBarrier) return;
  for (size_t t = 0; t < op.columns.size(); ++t) {
    const std::vector<int64_t> expected = ExpectedOutput(op, number, t);
    std::vector<int64_t> output = flight.outputs[t];
    if (MakesOutput(op.collective)) {
      const auto* made = static_cast<const int64_t*>(result.outputs[t].made);
      output.assign(made, made == nullptr ? made : made + expected.size());
      const std::vector<int64_t>& shape = result.outputs[t].shape;
      if (shape[0] * shape[1] != static_cast<int64_t>(expected.size())) {
        return Fail("'" + op.name + "' gave a wrong shape");
      }
    }
    if (output != expected) {
      return Fail("rank " + std::to_string(number) + ": " + TextOf(op) +
                  " gave a wrong result in tensor " + std::to_string(t) +
                  (victim_ ? "; rank " + std::to_string(*victim_) + " has left" : ""));
    }
  }
  if (op.collective != Collective::kAlltoall) return;
  for (uint32_t m = 0; m < op.members.size(); ++m) {
    if (result.received_splits[m] != op.splits[m][op.MemberOf(number)]) {
      return Fail("'" + op.name + "' gave wrong received splits");
    }
  }
}

// Disagreements are one sentence on all ranks; an operation is complete on all or on none, but for
// who left or broke.
void SimWorld::CheckVerdict(uint32_t number, const Flight& flight, const Status& status) {
  if (victim_ == number || broken_) return;
  auto [entry, first] = verdicts_.try_emplace(flight.op, Verdict{status, number});
  if (first) return;
  const Verdict& before = entry->second;
  if (before.rank == victim_) return;
  // An operation that hosts are at work on when a rank leaves may be over on one and not on the
  // other.
  const bool spans = hosts_.Span(flight.op->members);
  const bool aborted = before.status.code() == Code::kAborted || status.code() == Code::kAborted;
  if (spans && aborted && MayBeCutShort(*flight.op)) return;
  if (before.status.code() != status.code() ||
      (status.code() == Code::kMismatch && before.status.message() != status.message())) {
    Fail("'" + flight.op->name + "' ended with \"" + before.status.message() + "\" on rank " +
         std::to_string(before.rank) + " and with \"" + status.message() + "\" on rank " +
         std::to_string(number));
  }
}

// ---- faults

void SimWorld::StrikeFault() {
  const auto number = static_cast<uint32_t>(random_() % program_.size);
  Rank& rank = ranks_[number];
  if (rank.through) return;
  rank.gone = rank.through = true;
  if (fault_ == Fault::kBreak) {
    broken_ = true;
    const std::string why = "rank " + std::to_string(number) + " died";
    for (const auto& net : nets_) net->Break(why);
    return hosts_.Break(why);
  }
  victim_ = number;
  rank.engine->Close("it left");
  rank.flights.clear();
  NetOf(number).Leave(hosts_.local_of(number));
  hosts_.Leave(number);
}

}  // namespace hvd::test
