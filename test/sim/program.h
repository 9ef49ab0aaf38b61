// A random program for a world of ranks: the tensors that each rank submits, and the results that
// have to come out of it. A pure function of the seed. Tests only.
#ifndef HVD_TEST_SIM_PROGRAM_H_
#define HVD_TEST_SIM_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/collective.h"

namespace hvd::test {

// One operation of the world, with what each member brings.
struct SimOp {
  Collective collective = Collective::kAllreduce;
  std::string name;
  int32_t set = 0;
  std::vector<uint32_t> members;    // of the set, world ranks
  std::vector<uint8_t> takes_part;  // per member: submits it
  ReduceOp op = ReduceOp::kSum;
  uint32_t root = 0;                         // world rank
  std::vector<int64_t> columns;              // per tensor: extent of dimension 1
  std::vector<std::vector<int64_t>> rows;    // [tensor][member]
  std::vector<std::vector<int64_t>> splits;  // alltoall: [member][member]
  bool group = false;                        // submitted as a group
  std::optional<uint32_t> odd;               // this member asks for something else
  bool never = false;                        // cannot be complete: a member never submits it

  uint32_t MemberOf(uint32_t rank) const;
  bool HasMember(uint32_t rank) const;
};

struct SimStep {
  enum class Kind { kOps, kAddSet, kRemoveSet, kJoin };
  Kind kind = Kind::kOps;
  std::vector<SimOp> ops;         // kOps and kJoin: submitted before the next step, in any order
  std::vector<uint32_t> members;  // kAddSet
  int32_t set = 0;                // kAddSet: the id it has to get; kRemoveSet
};

struct SimProgram {
  uint32_t size = 1;
  std::vector<SimStep> steps;
};

struct SimShape {
  uint32_t size = 2;
  uint32_t steps = 6;
  uint32_t ops_per_step = 8;
  uint32_t names = 5;
  bool steady = false;  // most are sums of the world that come again as they are
};

SimProgram MakeProgram(const SimShape& shape, std::mt19937_64& random);

// Element i of a rank's tensor.
int64_t ValueOf(uint32_t rank, size_t tensor, size_t i);
// The output that a rank has to get for one tensor; an average counts all members of the set.
std::vector<int64_t> ExpectedOutput(const SimOp& op, uint32_t rank, size_t tensor);

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_PROGRAM_H_
