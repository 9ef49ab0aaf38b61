// Collectives for CudaMembers: inputs, what each member has to get, and the comparison.
#ifndef HVD_TEST_FAKES_CUDA_CUDA_CASES_H_
#define HVD_TEST_FAKES_CUDA_CUDA_CASES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/host_reduce.h"
#include "test/fakes/adasum_definition.h"
#include "test/fakes/cuda/cuda_members.h"
#include "test/fakes/element_values.h"

namespace hvd::test {

struct Case {
  Collective collective = Collective::kAllreduce;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> rows;
  size_t row_count = 3;
  uint32_t root = 0;
  std::vector<std::vector<int64_t>> splits;
  double prescale = 1, postscale = 1;
  bool in_place = false, made = false;
  std::vector<uint8_t> joined;
  // Members of the process set, by which all else here is counted; empty: all.
  std::vector<uint32_t> set;
  // The devices of its members, by their ordinals; empty: each member's own.
  std::vector<int> devices;

  uint32_t IndexOf(uint32_t m) const {
    return set.empty() ? m : static_cast<uint32_t>(std::ranges::find(set, m) - set.begin());
  }
};

inline double InputAt(const Case& c, uint32_t m, size_t i) {
  if (c.dtype == DType::kBool) return (i * 7 + m * 3) % 3 == 0 ? 1 : 0;
  const bool multiplies = c.op == ReduceOp::kProduct;  // small enough for the small types
  return static_cast<double>((i * 7 + m * 3 + i / 251) % (multiplies ? 2 : 3)) +
         (multiplies ? 1 : 0);
}

inline double Reduced(const Case& c, size_t i) {
  double total = 0;
  uint32_t taking_part = 0;
  for (uint32_t m = 0; m < c.rows.size(); ++m) {
    if (!c.joined.empty() && c.joined[m] != 0) continue;
    const double value = InputAt(c, m, i) * c.prescale;
    const bool first = taking_part++ == 0;
    if (c.op == ReduceOp::kMin && !first) {
      total = std::min(total, value);
    } else if (c.op == ReduceOp::kMax && !first) {
      total = std::max(total, value);
    } else if (c.op == ReduceOp::kProduct && !first) {
      total *= value;
    } else {
      total = first ? value : total + value;
    }
  }
  if (c.dtype == DType::kBool) return total != 0 ? 1 : 0;
  total *= c.postscale;
  total /= DivisorOf(c.op, static_cast<uint32_t>(c.rows.size()), taking_part);
  return HoldsIntegers(c.dtype) ? std::trunc(total) : total;
}

// RowsOf, written down once more.
inline std::pair<int64_t, int64_t> RowsOfMember(int64_t rows, uint32_t m, uint32_t members) {
  const int64_t each = rows / members, more = rows % members;
  return {each * m + std::min<int64_t>(m, more), each + (m < more ? 1 : 0)};
}

inline std::vector<double> ExpectedOf(const Case& c, uint32_t self) {
  std::vector<double> values;
  const auto members = static_cast<uint32_t>(c.rows.size());
  const auto add = [&](uint32_t m, int64_t first, int64_t rows) {
    for (size_t i = 0; i < static_cast<size_t>(rows) * c.row_count; ++i)
      values.push_back(InputAt(c, m, static_cast<size_t>(first) * c.row_count + i));
  };
  const auto reduce = [&](int64_t first, int64_t rows) {
    for (size_t i = 0; i < static_cast<size_t>(rows) * c.row_count; ++i)
      values.push_back(Reduced(c, static_cast<size_t>(first) * c.row_count + i));
  };
  switch (c.collective) {
    case Collective::kAllreduce: reduce(0, c.rows[self]); break;
    case Collective::kBroadcast: add(c.root, 0, c.rows[c.root]); break;
    case Collective::kAllgather:
      for (uint32_t m = 0; m < members; ++m) add(m, 0, c.rows[m]);
      break;
    case Collective::kAlltoall:
      for (uint32_t m = 0; m < members; ++m) {
        const auto& splits = c.splits[m];
        add(m, std::accumulate(splits.begin(), splits.begin() + self, int64_t{0}), splits[self]);
      }
      break;
    default: {
      const auto [first, rows] = RowsOfMember(c.rows[0], self, members);
      reduce(first, rows);
    }
  }
  return values;
}

inline Bytes InputOf(const Case& c, uint32_t m) {
  Bytes input(static_cast<size_t>(c.rows[m]) * c.row_count * SizeOf(c.dtype));
  for (size_t i = 0; i < input.size() / SizeOf(c.dtype); ++i)
    Write(c.dtype, InputAt(c, m, i), input.data() + i * SizeOf(c.dtype));
  return input;
}

inline CudaOperation Make(CudaMembers& members, const Case& c) {
  CudaOperation operation;
  operation.parts.resize(members.size());
  operation.joined = c.joined;
  operation.set = c.set;
  for (uint32_t m = 0; m < members.size(); ++m) {
    if (!operation.Has(m)) continue;
    CudaPart& part = operation.parts[m];
    const uint32_t i = c.IndexOf(m);
    part.call = {.collective = c.collective,
                 .op = c.op,
                 .dtype = c.dtype,
                 .root = c.root,
                 .count = static_cast<size_t>(c.rows[i]) * c.row_count,
                 .prescale = c.prescale,
                 .postscale = c.postscale,
                 .rows = c.rows[i],
                 .row_count = c.row_count};
    if (!c.splits.empty()) part.splits = c.splits[i];
    const size_t output_bytes = ExpectedOf(c, i).size() * SizeOf(c.dtype);
    const int device = c.devices.empty() ? members.OwnDevice(m) : c.devices[i];
    if (!operation.Takes(m)) continue;
    members.Give(m, device, &part, InputOf(c, i), output_bytes, c.in_place, c.made);
  }
  return operation;
}

inline void Compare(const Case& c, uint32_t m, const CudaPart& part) {
  ASSERT_TRUE(part.status.ok()) << part.status.message();
  const std::vector<double> expected = ExpectedOf(c, m);
  ASSERT_EQ(part.output.size(), expected.size() * SizeOf(c.dtype)) << "member " << m;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = Read(c.dtype, part.output.data() + i * SizeOf(c.dtype));
    const double allowed = std::fabs(expected[i]) * Precision(c.dtype);
    if (std::fabs(value - expected[i]) <= allowed) continue;
    FAIL() << "member " << m << ", element " << i << " is " << value << ", expected "
           << expected[i];
  }
  if (c.collective != Collective::kAlltoall) return;
  for (uint32_t from = 0; from < c.rows.size(); ++from)
    EXPECT_EQ(part.result.received_splits[from], c.splits[from][m]);
}

inline void Check(CudaMembers& members, const std::vector<Case>& cases, uint32_t seed) {
  std::vector<CudaOperation> operations;
  operations.reserve(cases.size());
  for (const Case& c : cases) {
    operations.push_back(Make(members, c));
    operations.back().name = "operation " + std::to_string(operations.size());
  }
  members.Run(operations, seed);
  for (size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(k) +
                 ", collective " + std::to_string(static_cast<int>(cases[k].collective)) + ", op " +
                 std::to_string(static_cast<int>(cases[k].op)) + ", " +
                 std::string(NameOf(cases[k].dtype)));
    for (uint32_t m = 0; m < members.size(); ++m) {
      if (operations[k].Takes(m)) Compare(cases[k], cases[k].IndexOf(m), operations[k].parts[m]);
    }
  }
  members.Free(operations);
}

// Adasum of random values, the first member's all 0 in one of them.
struct AdasumCase {
  Case c;
  std::vector<std::vector<double>> inputs;  // by member
};

inline AdasumCase MakeAdasumCase(uint32_t members, DType dtype, int64_t rows,
                                 std::mt19937& random) {
  std::normal_distribution<double> normal;
  AdasumCase made{{.op = ReduceOp::kAdasum,
                   .dtype = dtype,
                   .rows = std::vector<int64_t>(members, rows),
                   .prescale = 0.5,
                   .postscale = 4,
                   .in_place = rows == 50},
                  {}};
  for (uint32_t m = 0; m < members; ++m) {
    std::vector<double>& input = made.inputs.emplace_back(static_cast<size_t>(rows) * 3);
    // Values that each of the types has.
    if (rows != 50 || m != 0)
      for (double& value : input) value = std::ldexp(std::round(normal(random) * 32), -5);
  }
  return made;
}

// `order`: that of the members in the tree.
inline void CompareAdasum(const AdasumCase& made, const CudaOperation& operation,
                          const std::vector<uint32_t>& order) {
  std::vector<std::vector<double>> ordered;
  for (uint32_t m : order) ordered.push_back(made.inputs[m]);
  const std::vector<double> expected = AdasumOf(ordered);
  const DType dtype = made.c.dtype;
  for (const CudaPart& part : operation.parts) {
    ASSERT_TRUE(part.status.ok()) << part.status.message();
    ASSERT_EQ(part.output, operation.parts[0].output) << "the same bits everywhere";
    for (size_t i = 0; i < expected.size(); ++i) {
      const double value = Read(dtype, part.output.data() + i * SizeOf(dtype));
      const double allowed = std::fabs(expected[i]) * 2 * Precision(dtype);
      ASSERT_NEAR(value, 2 * expected[i], allowed + (dtype == DType::kFloat16 ? 0x1p-24 : 1e-11))
          << NameOf(dtype) << " of " << expected.size() << ", element " << i;
    }
  }
}

// All members get the same bits, as the definition has them, in whatever order they come. `order`:
// that of the members in the tree; empty: their own.
inline void CheckAdasum(CudaMembers& members, std::vector<uint32_t> order = {}) {
  for (uint32_t m = 0; order.size() < members.size(); ++m) order.push_back(m);
  std::mt19937 random(5);
  std::vector<AdasumCase> cases;
  std::vector<CudaOperation> operations;
  for (DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (int64_t rows : {1, 50, 1280})
      cases.push_back(MakeAdasumCase(members.size(), dtype, rows, random));
  }
  for (const AdasumCase& made : cases) {
    CudaOperation& operation = operations.emplace_back(Make(members, made.c));
    operation.name = "operation " + std::to_string(operations.size());
    for (uint32_t m = 0; m < members.size(); ++m) {
      for (size_t i = 0; i < made.inputs[m].size(); ++i)
        Write(made.c.dtype, made.inputs[m][i],
              operation.parts[m].input.data() + i * SizeOf(made.c.dtype));
    }
  }
  members.Run(operations, 5);
  for (size_t k = 0; k < cases.size(); ++k) CompareAdasum(cases[k], operations[k], order);
  members.Free(operations);
}

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_CUDA_CUDA_CASES_H_
