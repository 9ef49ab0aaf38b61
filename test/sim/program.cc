#include "test/sim/program.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hvd::test {
namespace {

// Makes one program; holds what the world is like at the step being made.
class Maker {
 public:
  Maker(const SimShape& shape, std::mt19937_64& random) : shape_(shape), random_(random) {
    std::vector<uint32_t> world(shape.size);
    std::iota(world.begin(), world.end(), 0u);
    sets_[0] = world;
  }

  SimProgram Make() {
    SimProgram program;
    program.size = shape_.size;
    for (uint32_t i = 0; i < shape_.steps; ++i) program.steps.push_back(MakeStep());
    return program;
  }

 private:
  uint64_t Pick(uint64_t below) { return random_() % below; }

  SimStep MakeStep() {
    SimStep step;
    switch (Pick(6)) {
      case 0:
        if (AddSet(&step)) return step;
        break;
      case 1:
        if (sets_.size() > 1) return RemoveSet();
        break;
      case 2: return Join();
      default: break;
    }
    for (uint32_t i = 0; i < shape_.ops_per_step; ++i) {
      const bool steady = shape_.steady && Pick(8) != 0;
      step.ops.push_back(steady ? MakeSteadyOp() : MakeOp(false));
    }
    return step;
  }

  SimOp MakeSteadyOp() {
    const uint64_t number = next_steady_++ % shape_.names;
    SimOp op;
    op.name = "steady" + std::to_string(number);
    op.members = sets_[0];
    op.takes_part.assign(op.members.size(), 1);
    op.op = number % 2 == 0 ? ReduceOp::kSum : ReduceOp::kAverage;
    op.columns = {static_cast<int64_t>(1 + number)};
    op.rows = {std::vector<int64_t>(op.members.size(), 3)};
    if (Pick(40) == 0) op.odd = static_cast<uint32_t>(Pick(op.members.size()));
    return op;
  }

  bool AddSet(SimStep* step) {
    step->kind = SimStep::Kind::kAddSet;
    for (uint32_t rank = 0; rank < shape_.size; ++rank) {
      if (Pick(2) == 0) step->members.push_back(rank);
    }
    auto same = [&](const auto& set) { return set.second == step->members; };
    if (step->members.empty() || std::any_of(sets_.begin(), sets_.end(), same)) {
      *step = {};
      return false;
    }
    while (sets_.count(step->set) != 0) ++step->set;
    sets_[step->set] = step->members;
    return true;
  }

  // With operations before it that a member leaves out, so that the removal has something to fail.
  SimStep RemoveSet() {
    SimStep step;
    step.kind = SimStep::Kind::kRemoveSet;
    auto chosen = std::next(sets_.begin(), static_cast<long>(1 + Pick(sets_.size() - 1)));
    step.set = chosen->first;
    for (uint64_t i = Pick(3); i > 0 && chosen->second.size() > 1; --i) {
      SimOp op = MakeOpOn(step.set, true);
      op.takes_part[Pick(op.members.size())] = 0;
      op.odd.reset();
      op.never = true;
      step.ops.push_back(std::move(op));
    }
    sets_.erase(chosen);
    return step;
  }

  SimStep Join() {
    SimStep step;
    step.kind = SimStep::Kind::kJoin;
    for (uint32_t i = 0; i < shape_.ops_per_step; ++i) {
      // Most are what a join is for.
      SimOp op = MakeOp(true, Pick(4) != 0);
      op.odd.reset();
      for (uint8_t& takes_part : op.takes_part) takes_part = Pick(3) != 0 ? 1 : 0;
      step.ops.push_back(std::move(op));
    }
    return step;
  }

  SimOp MakeOp(bool own_name, bool allreduce = false) {
    auto chosen = std::next(sets_.begin(), static_cast<long>(Pick(sets_.size())));
    return MakeOpOn(chosen->first, own_name, allreduce);
  }

  // `own_name`: a name that no other operation has; where ranks leave operations out, names could
  // not be matched.
  SimOp MakeOpOn(int32_t set, bool own_name, bool allreduce = false) {
    constexpr Collective kKinds[] = {Collective::kAllreduce,     Collective::kAllreduce,
                                     Collective::kAllgather,     Collective::kBroadcast,
                                     Collective::kReducescatter, Collective::kAlltoall,
                                     Collective::kBarrier};
    constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                 ReduceOp::kMax};
    SimOp op;
    op.collective = allreduce ? Collective::kAllreduce : kKinds[Pick(std::size(kKinds))];
    op.name = own_name ? "own" + std::to_string(next_name_++)
                       : "name" + std::to_string(Pick(shape_.names));
    op.set = set;
    op.members = sets_[set];
    op.takes_part.assign(op.members.size(), 1);
    op.op = kOps[Pick(op.collective == Collective::kAllreduce ? 4 : 2)];
    op.root = op.members[Pick(op.members.size())];
    op.group = op.collective != Collective::kAlltoall && Pick(4) == 0;
    const uint64_t tensors = op.group ? 1 + Pick(5) : 1;
    for (uint64_t t = 0; t < tensors; ++t) AddTensor(&op);
    if (op.members.size() > 1 && Pick(8) == 0)
      op.odd = static_cast<uint32_t>(Pick(op.members.size()));
    return op;
  }

  void AddTensor(SimOp* op) {
    const bool own_rows =
        op->collective == Collective::kAllgather || op->collective == Collective::kAlltoall;
    op->columns.push_back(static_cast<int64_t>(Pick(8) == 0 ? 40 : Pick(4)));
    std::vector<int64_t> rows(op->members.size(), static_cast<int64_t>(Pick(7)));
    if (own_rows) {
      for (int64_t& each : rows) each = static_cast<int64_t>(Pick(7));
    }
    if (op->collective == Collective::kAlltoall) {
      for (int64_t& each : rows) each = AddSplits(op);
    }
    op->rows.push_back(std::move(rows));
  }

  // Random shares of one member; gives the rows it has, at times more than it hands out.
  int64_t AddSplits(SimOp* op) {
    std::vector<int64_t> splits;
    for (size_t i = 0; i < op->members.size(); ++i) splits.push_back(static_cast<int64_t>(Pick(4)));
    op->splits.push_back(splits);
    return std::accumulate(splits.begin(), splits.end(), static_cast<int64_t>(Pick(3) / 2));
  }

  const SimShape& shape_;
  std::mt19937_64& random_;
  std::map<int32_t, std::vector<uint32_t>> sets_;
  uint64_t next_name_ = 0, next_steady_ = 0;
};

std::vector<int64_t> InputOf(const SimOp& op, uint32_t member, size_t tensor) {
  const auto count = static_cast<size_t>(op.rows[tensor][member] * op.columns[tensor]);
  std::vector<int64_t> input(count);
  for (size_t i = 0; i < count; ++i) input[i] = ValueOf(op.members[member], tensor, i);
  return input;
}

// Elements [first, first + count) of the reduction over those that take part.
std::vector<int64_t> Reduced(const SimOp& op, size_t tensor, size_t first, size_t count) {
  std::vector<int64_t> total;
  uint32_t ranks = 0;
  for (uint32_t member = 0; member < op.members.size(); ++member) {
    if (op.takes_part[member] == 0) continue;
    const std::vector<int64_t> input = InputOf(op, member, tensor);
    if (ranks++ == 0)
      total.assign(input.begin() + static_cast<long>(first),
                   input.begin() + static_cast<long>(first + count));
    else
      for (size_t i = 0; i < count; ++i) {
        const int64_t value = input[first + i];
        if (op.op == ReduceOp::kMin)
          total[i] = std::min(total[i], value);
        else if (op.op == ReduceOp::kMax)
          total[i] = std::max(total[i], value);
        else
          total[i] += value;
      }
  }
  if (op.op == ReduceOp::kAverage) {
    for (int64_t& value : total) value /= static_cast<int64_t>(op.members.size());
  }
  return total;
}

void AppendRows(const std::vector<int64_t>& input, int64_t first, int64_t rows, int64_t columns,
                std::vector<int64_t>* output) {
  auto at = input.begin() + first * columns;
  output->insert(output->end(), at, at + rows * columns);
}

}  // namespace

uint32_t SimOp::MemberOf(uint32_t rank) const {
  return static_cast<uint32_t>(std::lower_bound(members.begin(), members.end(), rank) -
                               members.begin());
}

bool SimOp::HasMember(uint32_t rank) const {
  return std::binary_search(members.begin(), members.end(), rank);
}

int64_t ValueOf(uint32_t rank, size_t tensor, size_t i) {
  return static_cast<int64_t>((rank * 131 + tensor * 17 + i * 3) % 1009) - 100;
}

std::vector<int64_t> ExpectedOutput(const SimOp& op, uint32_t rank, size_t tensor) {
  const uint32_t self = op.MemberOf(rank);
  const int64_t columns = op.columns[tensor];
  const std::vector<int64_t>& rows = op.rows[tensor];
  const auto members = static_cast<int64_t>(op.members.size());
  std::vector<int64_t> output;
  switch (op.collective) {
    case Collective::kAllreduce:
      return Reduced(op, tensor, 0, static_cast<size_t>(rows[self] * columns));
    case Collective::kBroadcast: return InputOf(op, op.MemberOf(op.root), tensor);
    case Collective::kAllgather:
      for (uint32_t m = 0; m < members; ++m) {
        AppendRows(InputOf(op, m, tensor), 0, rows[m], columns, &output);
      }
      return output;
    case Collective::kAlltoall:
      for (uint32_t m = 0; m < members; ++m) {
        const std::vector<int64_t>& splits = op.splits[m];
        const int64_t before = std::accumulate(splits.begin(), splits.begin() + self, int64_t{0});
        AppendRows(InputOf(op, m, tensor), before, splits[self], columns, &output);
      }
      return output;
    case Collective::kReducescatter: {
      const int64_t each = rows[self] / members, more = rows[self] % members;
      const int64_t first = self * each + std::min<int64_t>(self, more);
      const int64_t own = each + (self < more ? 1 : 0);
      return Reduced(op, tensor, static_cast<size_t>(first * columns),
                     static_cast<size_t>(own * columns));
    }
    default: return output;
  }
}

SimProgram MakeProgram(const SimShape& shape, std::mt19937_64& random) {
  return Maker(shape, random).Make();
}

}  // namespace hvd::test
