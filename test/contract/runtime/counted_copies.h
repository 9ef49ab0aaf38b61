// A sum whose input and result lie elsewhere: what an InterHostComm asks SumCopies for, counted.
#ifndef HVD_TEST_CONTRACT_RUNTIME_COUNTED_COPIES_H_
#define HVD_TEST_CONTRACT_RUNTIME_COUNTED_COPIES_H_

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "test/contract/runtime/inter_host_values.h"

namespace hvd::test {

// Copies between memory of its own and the place of the sum, and counts what it is asked for.
class CountedCopies final : public SumCopies {
 public:
  CountedCopies(const Bytes& from, Bytes* place)
      : from_(from), place_(place), result(from.size()), filled(Count()), taken(Count()) {}
  void Fill(size_t first, size_t count) override {
    std::memcpy(place_->data() + first * 4, from_.data() + first * 4, count * 4);
    for (size_t i = first; i < first + count; ++i) ++filled[i];
  }
  void Deliver(size_t first, size_t count) override {
    std::memcpy(result.data() + first * 4, place_->data() + first * 4, count * 4);
    for (size_t i = first; i < first + count; ++i) taken[i] += filled[i];
  }
  size_t Count() const { return from_.size() / 4; }

 private:
  const Bytes& from_;
  Bytes* place_;

 public:
  Bytes result;
  std::vector<int> filled, taken;  // times, of each element
};

// Makes the sum of one leader by copies, by `make(call, place)`, and looks at what they were asked
// for.
template <typename Make>
void ExpectSumByCopies(InterHostCall call, const SumCut& cut, const Bytes& part,
                       const Bytes& expected, Make make) {
  Bytes place(part.size(), std::byte{0x77});
  CountedCopies copies(part, &place);
  call.cut = cut;
  call.copies = &copies;
  ExpectOk(make(call, place.data()));
  const size_t count = copies.Count();
  EXPECT_TRUE(copies.result == expected) << call.group.leaders.size() << " leaders, " << count;
  EXPECT_EQ(copies.filled, std::vector<int>(count, 1));
  EXPECT_EQ(copies.taken, std::vector<int>(count, 1));
}

}  // namespace hvd::test

#endif  // HVD_TEST_CONTRACT_RUNTIME_COUNTED_COPIES_H_
