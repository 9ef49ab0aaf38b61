#include "runtime/core/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace hvd {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t> kShape = {2, 3};
float memory[6];

RequestSpec Good(Collective collective = Collective::kAllreduce) {
  RequestSpec spec;
  spec.collective = collective;
  spec.name = "grad";
  spec.dtype = DType::kFloat32;
  spec.input = spec.output = memory;
  spec.shape = kShape;
  return spec;
}

TEST(CheckRequest, AcceptsAndCounts) {
  size_t count = 99;
  for (auto collective : {Collective::kAllreduce, Collective::kBroadcast}) {
    EXPECT_TRUE(CheckRequest(Good(collective), 2, &count).ok());
    EXPECT_EQ(count, 6u);
  }
  EXPECT_TRUE(CheckRequest(Good(Collective::kBarrier), 2, &count).ok());
  EXPECT_EQ(count, 0u);
  RequestSpec scalar = Good();
  scalar.shape = {};
  EXPECT_TRUE(CheckRequest(scalar, 1, &count).ok());
  EXPECT_EQ(count, 1u);
  RequestSpec empty = Good();
  std::vector<int64_t> no_rows{0, 5};
  empty.shape = no_rows;
  empty.input = empty.output = nullptr;
  EXPECT_TRUE(CheckRequest(empty, 1, &count).ok()) << "nothing needs no memory";
  EXPECT_EQ(count, 0u);
  RequestSpec flags = Good(Collective::kBroadcast);
  flags.dtype = DType::kBool;
  EXPECT_TRUE(CheckRequest(flags, 1, &count).ok()) << "what cannot be reduced can be sent";
}

TEST(CheckRequest, RefusesInOneSentence) {
  const std::vector<int64_t> negative = {2, -1}, huge = {1 << 30, 1 << 30, 1 << 30}, nine(9, 1);
  const std::string long_name(kMaxNameBytes + 1, 'n'), shown(300, 's');
  struct Case {
    std::function<void(RequestSpec&)> spoil;
    Code code;
    std::string text;
  };
  const Case cases[] = {
      {[](auto& s) { s.name = ""; }, Code::kInvalidArgument,
       "a tensor name has 0 bytes; 1 to 16384 are possible"},
      {[&](auto& s) { s.name = long_name; }, Code::kInvalidArgument, "has 16385 bytes"},
      {[](auto& s) { s.collective = Collective::kAllgather; }, Code::kUnsupported,
       "the collective allgather is not available"},
      {[](auto& s) { s.collective = static_cast<Collective>(77); }, Code::kUnsupported, "unknown"},
      {[](auto& s) { s.process_set = 3; }, Code::kInvalidArgument, "process set 3 is unknown"},
      {[](auto& s) { s.dtype = static_cast<DType>(kDTypeCount); }, Code::kInvalidArgument,
       "unknown element type 13 of tensor 'grad'"},
      {[](auto& s) { s.device = DeviceKind::kCuda; }, Code::kUnsupported, "copy it to the CPU"},
      {[&](auto& s) { s.shape = nine; }, Code::kInvalidArgument, "has 9 dimensions; at most 8"},
      {[&](auto& s) { s.shape = negative; }, Code::kInvalidArgument, "the negative extent -1"},
      {[&](auto& s) { s.shape = huge; }, Code::kInvalidArgument,
       "more elements than memory can hold"},
      {[](auto& s) { s.input = nullptr; }, Code::kInvalidArgument, "has elements but no memory"},
      {[](auto& s) { s.output = nullptr; }, Code::kInvalidArgument, "has elements but no memory"},
      {[](auto& s) { s.op = static_cast<ReduceOp>(9); }, Code::kInvalidArgument,
       "unknown reduce operation 9"},
      {[](auto& s) { s.op = ReduceOp::kAdasum; }, Code::kUnsupported, "Adasum is not available"},
      {[](auto& s) { s.dtype = DType::kBool; }, Code::kInvalidArgument,
       "type bool, which cannot be reduced"},
      {[](auto& s) { s.collective = Collective::kBroadcast, s.root = 4; }, Code::kInvalidArgument,
       "from rank 4: ranks of this world are 0 to 3"},
      {[](auto& s) { s.collective = Collective::kBroadcast, s.root = static_cast<uint32_t>(-1); },
       Code::kInvalidArgument, "from rank -1"},
      {[&](auto& s) { s.name = shown, s.input = nullptr; }, Code::kInvalidArgument, "sss...'"},
  };
  for (const Case& c : cases) {
    RequestSpec spec = Good();
    c.spoil(spec);
    size_t count = 0;
    Status checked = CheckRequest(spec, 4, &count);
    EXPECT_EQ(checked.code(), c.code) << c.text;
    EXPECT_THAT(checked.message(), HasSubstr(c.text));
  }
}

Detail Unusual() {
  return {Collective::kBroadcast,
          ReduceOp::kMax,
          DType::kBfloat16,
          DeviceKind::kCuda,
          7,
          -1,
          0.1,
          -3e300,
          {5, 0, INT64_MAX, 1, 1, 1, 1, 1}};
}

TEST(Details, SurviveTheWire) {
  for (const Detail& detail : {Detail{}, DetailOf(Good()), Unusual()}) {
    for (const std::string& name :
         {std::string("x"), std::string(kMaxNameBytes, 'y'), std::string("a\0b", 3)}) {
      std::string bytes = EncodeDetail(detail, name);
      Detail decoded;
      std::string_view text;
      Status status = DecodeDetail(bytes, &decoded, &text);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(decoded, detail);
      EXPECT_EQ(text, name);
    }
  }
}

TEST(Details, DescribeTheirRequest) {
  RequestSpec spec = Good();
  EXPECT_TRUE(Describes(DetailOf(spec), spec));
  RequestSpec other = spec;
  other.root = 1;
  EXPECT_FALSE(Describes(DetailOf(spec), other));
  std::vector<int64_t> longer{2, 3, 1};
  other = spec;
  other.shape = longer;
  EXPECT_FALSE(Describes(DetailOf(spec), other));
}

TEST(Details, EveryPieceOfAMessageIsRefused) {
  std::string bytes = EncodeDetail(Unusual(), "name");
  Detail detail;
  std::string_view text;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeDetail(std::string_view(bytes).substr(0, length), &detail, &text).ok())
        << length;
  }
  EXPECT_FALSE(DecodeDetail(bytes + '\0', &detail, &text).ok()) << "and so is more than a message";
  Detail nine;
  nine.shape.assign(9, 1);
  EXPECT_FALSE(DecodeDetail(EncodeDetail(nine, "x"), &detail, &text).ok());
}

// Wanted by the header ("anything EncodeDetail does not write"): a number that is no member of its enumeration.
TEST(Details, UnknownEnumeratorsAreRefused) {
  const std::string good = EncodeDetail(Detail{}, "x");
  const size_t after_name = 4 + 1;
  for (size_t field = 0; field < 4; ++field) {  // collective, op, dtype, device
    std::string bytes = good;
    bytes[after_name + field] = static_cast<char>(200);
    Detail detail;
    std::string_view text;
    EXPECT_FALSE(DecodeDetail(bytes, &detail, &text).ok()) << "field " << field;
  }
}

TEST(CompareDetails, IsSilentWhenAllAgree) {
  Detail a = Unusual(), b = Unusual();
  const Detail* all[] = {&a, &b, &a};
  EXPECT_TRUE(CompareDetails("x", all).ok());
}

TEST(CompareDetails, NamesTheTensorTheFieldTheRanksAndBothValues) {
  struct Case {
    std::function<void(Detail&)> change;
    std::string field, first, other;
  };
  const Case cases[] = {
      {[](Detail& d) { d.collective = Collective::kBroadcast; }, "collective", "allreduce",
       "broadcast"},
      {[](Detail& d) { d.process_set = 2; }, "process set", "0", "2"},
      {[](Detail& d) { d.dtype = DType::kFloat64; }, "element type", "float32", "float64"},
      {[](Detail& d) {
         d.shape = {2, 4};
       },
       "shape", "[2, 3]", "[2, 4]"},
      {[](Detail& d) { d.shape = {}; }, "shape", "[2, 3]", "[]"},
      {[](Detail& d) { d.op = ReduceOp::kMin; }, "reduce operation", "Sum", "Min"},
      {[](Detail& d) { d.root = 1; }, "root rank", "0", "1"},
      {[](Detail& d) { d.device = DeviceKind::kCuda; }, "device", "cpu", "cuda"},
      {[](Detail& d) { d.prescale = 0.5; }, "prescale factor", "1", "0.5"},
      {[](Detail& d) { d.postscale = 0.25; }, "postscale factor", "1", "0.25"},
  };
  for (const Case& c : cases) {
    Detail same = DetailOf(Good()), changed = same;
    c.change(changed);
    const Detail* all[] = {&same, &same, &changed};
    Status status = CompareDetails("grad", all);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), "tensor 'grad': ranks disagree about its " + c.field +
                                    ": rank 0 has " + c.first + ", rank 2 has " + c.other +
                                    "; submit the same " + c.field + " on every rank");
  }
}

// Wanted: two factors that differ in the last bit differ, whatever the digits of the sentence.
TEST(CompareDetails, SeesTheSmallestDifferenceOfAFactor) {
  Detail a = DetailOf(Good()), b = a;
  b.prescale = std::nextafter(1.0, 2.0);
  const Detail* all[] = {&a, &b};
  EXPECT_FALSE(CompareDetails("x", all).ok());
}

TEST(CompareDetails, AFactorThatIsNoNumberAgreesWithItself) {
  Detail a = DetailOf(Good());
  a.prescale = std::nan("");
  const Detail b = a;
  const Detail* all[] = {&a, &b};
  EXPECT_TRUE(CompareDetails("x", all).ok());
}

TEST(Names, AreKnownForEveryValueAndNoOther) {
  EXPECT_EQ(NameOf(Collective::kJoin), "join");
  EXPECT_EQ(NameOf(static_cast<Collective>(200)), "unknown");
  EXPECT_EQ(NameOf(ReduceOp::kProduct), "Product");
  EXPECT_EQ(NameOf(static_cast<ReduceOp>(200)), "unknown");
}

}  // namespace
}  // namespace hvd
