#include "runtime/core/request/request.h"

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
  spec.tensor = {DType::kFloat32, memory, memory, kShape};
  return spec;
}

// Ranks 0 to 3 of a world of 4, or other ranks as a set of it.
Group GroupOfFour() {
  Group group;
  group.ranks = {0, 1, 2, 3};
  return group;
}

Status Check(const RequestSpec& spec) { return CheckRequest(spec, GroupOfFour()); }

TEST(CheckRequest, AcceptsWhatCanWork) {
  for (auto collective : {Collective::kAllreduce, Collective::kBroadcast, Collective::kAllgather,
                          Collective::kReducescatter, Collective::kBarrier, Collective::kJoin}) {
    EXPECT_TRUE(Check(Good(collective)).ok()) << NameOf(collective);
  }
  RequestSpec scalar = Good();
  scalar.tensor.shape = {};
  EXPECT_TRUE(Check(scalar).ok());
  EXPECT_EQ(ElementsOf(scalar.tensor.shape), 1u);
  RequestSpec empty = Good();
  const std::vector<int64_t> no_rows{0, 5};
  empty.tensor.shape = no_rows;
  empty.tensor.input = empty.tensor.output = nullptr;
  EXPECT_TRUE(Check(empty).ok()) << "nothing needs no memory";
  EXPECT_EQ(ElementsOf(no_rows), 0u);
  for (auto collective : {Collective::kAllgather, Collective::kReducescatter}) {
    RequestSpec made = Good(collective);
    made.tensor.output = nullptr;
    EXPECT_TRUE(Check(made).ok()) << "the runtime makes the output of " << NameOf(collective);
  }
  const std::vector<int64_t> eight{8}, splits{0, 5, 1, 2}, fewer{0, 1, 1, 0};
  RequestSpec alltoall = Good(Collective::kAlltoall);
  alltoall.tensor.shape = eight;
  EXPECT_TRUE(Check(alltoall).ok()) << "equal shares";
  for (const auto* shares : {&splits, &fewer}) {
    alltoall.splits = *shares;
    EXPECT_TRUE(Check(alltoall).ok());
  }
  // A scalar is refused by all together, see CheckAgreed.
  for (auto collective :
       {Collective::kAllgather, Collective::kAlltoall, Collective::kReducescatter}) {
    RequestSpec none = Good(collective);
    none.tensor.shape = {};
    EXPECT_TRUE(Check(none).ok());
  }
}

TEST(CheckRequest, RefusesInOneSentence) {
  const std::vector<int64_t> negative = {2, -1}, huge = {1 << 30, 1 << 30, 1 << 30}, nine(9, 1);
  const std::vector<int64_t> nine_rows{9}, below{-1, 3, 0, 0}, above{1, 1, 1, 0},
      overflow{1, INT64_MAX, INT64_MAX, 0};
  const std::vector<TensorSpec> two(2, Good().tensor);
  std::vector<TensorSpec> bad_group = two;
  bad_group[1].shape = negative;
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
      {[](auto& s) { s.collective = static_cast<Collective>(77); }, Code::kInvalidArgument,
       "unknown collective 77"},
      {[](auto& s) { s.tensor.dtype = static_cast<DType>(kDTypeCount); }, Code::kInvalidArgument,
       "unknown element type 13 of tensor 'grad'"},
      {[&](auto& s) { s.tensor.shape = nine; }, Code::kInvalidArgument,
       "has 9 dimensions; at most 8"},
      {[&](auto& s) { s.tensor.shape = negative; }, Code::kInvalidArgument,
       "the negative extent -1"},
      {[&](auto& s) { s.tensor.shape = huge; }, Code::kInvalidArgument,
       "more elements than memory can hold"},
      {[](auto& s) { s.tensor.input = nullptr; }, Code::kInvalidArgument,
       "has elements but no memory"},
      {[](auto& s) { s.tensor.output = nullptr; }, Code::kInvalidArgument,
       "has elements but no memory"},
      {[](auto& s) { s.op = static_cast<ReduceOp>(9); }, Code::kInvalidArgument,
       "unknown reduce operation 9"},
      {[](auto& s) { s.op = ReduceOp::kAdasum, s.tensor.dtype = DType::kInt32; },
       Code::kInvalidArgument, "type int32, of which there is no Adasum"},
      {[](auto& s) { s.op = ReduceOp::kAverage, s.tensor.dtype = DType::kBool; },
       Code::kInvalidArgument, "type bool, of which there is no average"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.tensor.shape = nine_rows; },
       Code::kInvalidArgument, "9 rows, which 4 ranks cannot share equally"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.splits = nine_rows; },
       Code::kInvalidArgument, "splits has 1 entries, the process set 4 ranks"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.splits = below; },
       Code::kInvalidArgument, "splits has the entry -1"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.splits = above; },
       Code::kInvalidArgument, "more rows than the 2 of dimension 0"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.splits = overflow; },
       Code::kInvalidArgument, "more rows than the 2 of dimension 0"},
      {[&](auto& s) { s.collective = Collective::kAlltoall, s.group = two; },
       Code::kInvalidArgument, "takes one tensor, not a group"},
      {[&](auto& s) { s.group = bad_group; }, Code::kInvalidArgument, "the negative extent -1"},
      {[](auto& s) { s.collective = Collective::kBroadcast, s.root = 4; }, Code::kInvalidArgument,
       "from rank 4: ranks of this world are 0 to 3"},
      {[](auto& s) { s.collective = Collective::kBroadcast, s.root = static_cast<uint32_t>(-1); },
       Code::kInvalidArgument, "from rank -1"},
      {[&](auto& s) { s.name = shown, s.tensor.input = nullptr; }, Code::kInvalidArgument,
       "sss...'"},
  };
  for (const Case& c : cases) {
    RequestSpec spec = Good();
    c.spoil(spec);
    Status checked = Check(spec);
    EXPECT_EQ(checked.code(), c.code) << c.text;
    EXPECT_THAT(checked.message(), HasSubstr(c.text));
  }
}

TEST(CheckRequest, NamesTheRanksOfASetWhenTheRootIsNone) {
  Group group = GroupOfFour();
  group.id = 5;
  group.ranks = {1, 4, 6};
  RequestSpec spec = Good(Collective::kBroadcast);
  spec.root = 4;
  EXPECT_TRUE(CheckRequest(spec, group).ok()) << "roots are world ranks";
  spec.root = 2;
  EXPECT_THAT(CheckRequest(spec, group).message(),
              HasSubstr("from rank 2: the ranks of process set 5 are [1, 4, 6]"));
}

TEST(CheckAgreed, FindsWhatIsWrongOnEveryRank) {
  const std::vector<int64_t> none;
  for (auto collective :
       {Collective::kAllgather, Collective::kAlltoall, Collective::kReducescatter}) {
    RequestSpec spec = Good(collective);
    EXPECT_TRUE(CheckAgreed("x", DetailOf(spec, 1), false).ok()) << NameOf(collective);
    spec.tensor.shape = none;
    EXPECT_THAT(CheckAgreed("x", DetailOf(spec, 1), false).message(),
                HasSubstr("reshape it to [1]"));
  }
  RequestSpec scalar = Good();
  scalar.tensor.shape = none;
  EXPECT_TRUE(CheckAgreed("x", DetailOf(scalar, 1), false).ok());
  RequestSpec most = Good(Collective::kReducescatter);
  most.op = ReduceOp::kMax;
  EXPECT_EQ(CheckAgreed("x", DetailOf(most, 1), false).message(),
            "reducescatter of tensor 'x' with Max: a reducescatter takes Sum and Average only");
  RequestSpec cuda = Good();
  cuda.device = DeviceKind::kCuda;
  EXPECT_EQ(CheckAgreed("x", DetailOf(cuda, 1), false).code(), Code::kUnsupported);
}

Detail Unusual() {
  return {Collective::kBroadcast,
          ReduceOp::kMax,
          DeviceKind::kCuda,
          7,
          -1,
          0.1,
          -3e300,
          {0, 5, 4095},
          {{DType::kBfloat16, {5, 0, INT64_MAX, 1, 1, 1, 1, 1}, {}}, {DType::kUint8, {}, {3, 0}}}};
}

Detail DetailOfGood() { return DetailOf(Good(), 4); }

TEST(Details, SurviveTheWire) {
  for (const Detail& detail : {Detail{}, DetailOfGood(), Unusual()}) {
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

TEST(Details, CarryTheNamesOfTheirTensorsOrOnlyTheHash) {
  RequestSpec spec = Good();
  spec.names_hash = 7;
  spec.names = "a\nb";
  const Detail detail = DetailOf(spec, 4);
  RequestSpec other = spec;
  other.names_hash = 8;
  EXPECT_TRUE(Describes(detail, spec, 4));
  EXPECT_FALSE(Describes(detail, other, 4));
  for (bool names : {true, false}) {
    Detail decoded;
    std::string_view text;
    ASSERT_TRUE(DecodeDetail(EncodeDetail(detail, "x", names), &decoded, &text).ok());
    EXPECT_EQ(decoded.names_hash, 7u);
    EXPECT_EQ(decoded.names, names ? "a\nb" : "");
    const std::vector<RankDetail> details{{0, &detail}, {1, &decoded}};
    EXPECT_TRUE(CompareDetails("x", details).ok()) << "only the hash counts";
  }
}

TEST(Details, DescribeTheirRequest) {
  RequestSpec spec = Good();
  EXPECT_TRUE(Describes(DetailOf(spec, 4), spec, 4));
  RequestSpec other = spec;
  other.root = 1;
  EXPECT_FALSE(Describes(DetailOf(spec, 4), other, 4));
  std::vector<int64_t> longer{2, 3, 1};
  other = spec;
  other.tensor.shape = longer;
  EXPECT_FALSE(Describes(DetailOf(spec, 4), other, 4));
  const std::vector<TensorSpec> group(2, spec.tensor);
  other = spec;
  other.group = group;
  EXPECT_FALSE(Describes(DetailOf(spec, 4), other, 4));
  EXPECT_TRUE(Describes(DetailOf(other, 4), other, 4));
  const std::vector<int64_t> eight{8}, equal{2, 2, 2, 2}, unequal{2, 2, 3, 1};
  other = Good(Collective::kAlltoall);
  other.tensor.shape = eight;
  const Detail detail = DetailOf(other, 4);
  other.splits = equal;
  EXPECT_TRUE(Describes(detail, other, 4)) << "equal shares need no words";
  other.splits = unequal;
  EXPECT_FALSE(Describes(detail, other, 4));
}

// A field that a detail does not carry may be wrong in a request that it describes.
TEST(CheckRepeated, SaysWhatCheckRequestSaysOfARequestThatIsDescribed) {
  const std::vector<int64_t> nine{9}, eight{8}, twos{2, 2, 2, 2}, three{2, 2, 2};
  for (auto collective : {Collective::kAllreduce, Collective::kAllgather, Collective::kAlltoall}) {
    RequestSpec first = Good(collective);
    first.tensor.shape = collective == Collective::kAlltoall ? nine : kShape;
    if (collective == Collective::kAlltoall) first.splits = twos;
    ASSERT_TRUE(Check(first).ok());
    const Detail detail = DetailOf(first, 4);
    int described = 0, refused = 0;
    for (const auto& splits : {first.splits, std::span<const int64_t>(), std::span(three)}) {
      for (const void* input :
           {static_cast<const void*>(memory), static_cast<const void*>(nullptr)}) {
        for (void* output : {static_cast<void*>(memory), static_cast<void*>(nullptr)}) {
          RequestSpec again = first;
          again.splits = splits;
          again.tensor.input = input;
          again.tensor.output = output;
          if (!Describes(detail, again, 4)) continue;
          const Status checked = Check(again);
          const Status repeated = CheckRepeated(again, GroupOfFour());
          EXPECT_EQ(repeated.message(), checked.message());
          ++described;
          refused += checked.ok() ? 0 : 1;
        }
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(described, refused);
  }
}

TEST(CallsOf, ADetailIsAllButTheMemory) {
  Group group = GroupOfFour();
  group.ranks = {0, 2, 4, 6};
  RequestSpec spec = Good(Collective::kBroadcast);
  spec.root = 4;
  RecordVector<CollectiveCall> calls = CallsOf(DetailOf(spec, 4), group);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].root, 2u);
  EXPECT_EQ(calls[0].count, 6u);
  EXPECT_EQ(calls[0].rows, 2);
  EXPECT_EQ(calls[0].row_count, 3u);
  EXPECT_EQ(calls[0].group, &group);
  spec = Good(Collective::kAddProcessSet);
  calls = CallsOf(DetailOf(spec, 4), group);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].collective, Collective::kBarrier);
  spec = Good();
  const TensorSpec two[] = {spec.tensor, {DType::kInt64, memory, memory, {}}};
  spec.group = two;
  spec.prescale = 2;
  calls = CallsOf(DetailOf(spec, 4), group);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].dtype, DType::kInt64);
  EXPECT_EQ(calls[1].count, 1u);
  EXPECT_EQ(calls[1].rows, 0);
  EXPECT_EQ(calls[1].prescale, 2);
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
  nine.parts = {{DType::kUint8, RecordVector<int64_t>(9, 1), {}}};
  EXPECT_FALSE(DecodeDetail(EncodeDetail(nine, "x"), &detail, &text).ok());
}

// Wanted by the header ("anything EncodeDetail does not write"): a number that is no member of its
// enumeration.
TEST(Details, UnknownEnumeratorsAreRefused) {
  const std::string good = EncodeDetail(Detail{}, "x");
  const size_t after_name = 4 + 1;
  for (size_t field = 0; field < 3; ++field) {  // collective, op, device
    std::string bytes = good;
    bytes[after_name + field] = static_cast<char>(200);
    Detail detail;
    std::string_view text;
    EXPECT_FALSE(DecodeDetail(bytes, &detail, &text).ok()) << "field " << field;
  }
}

// Details of the ranks 0, 2 and 5.
Status Compare(std::string_view name, const Detail& a, const Detail& b, const Detail& c) {
  const RankDetail all[] = {{0, &a}, {2, &b}, {5, &c}};
  return CompareDetails(name, all);
}

Detail WithNames(uint64_t hash, std::string names) {
  Detail detail = DetailOfGood();
  detail.names_hash = hash;
  detail.names = std::move(names);
  return detail;
}

std::string NamesVerdict(const Detail& first, const Detail& second) {
  const std::vector<RankDetail> details{{0, &first}, {3, &second}};
  const Status verdict = CompareDetails("g", details);
  EXPECT_EQ(verdict.code(), Code::kMismatch);
  return verdict.message();
}

TEST(CompareDetails, ShowsBothListsOfNames) {
  EXPECT_EQ(NamesVerdict(WithNames(1, "a\nb\nc"), WithNames(2, "a\nc\nb")),
            "tensor 'g': ranks disagree about what is in it: rank 0 has [a, b, c], rank 3 has [a, "
            "c, b]; the first that differs is number 2; submit the same tensors in the same order "
            "on every rank");
  EXPECT_THAT(NamesVerdict(WithNames(1, "a\nb"), WithNames(2, "a")),
              HasSubstr("rank 0 has [a, b], rank 3 has [a]; the first that differs is number 2"));
  Detail more = WithNames(2, "a\nb\nc");
  more.parts.push_back(more.parts[0]);
  EXPECT_THAT(NamesVerdict(WithNames(1, "a\nb"), more), HasSubstr("rank 3 has [a, b, c]"))
      << "which says more than the number of tensors";
  EXPECT_THAT(NamesVerdict(WithNames(1, "a"), WithNames(0, "")),
              HasSubstr("rank 0 has [a], rank 3 has other ones"));
}

TEST(CompareDetails, ShowsOnlyTheNamesAroundTheFirstThatDiffers) {
  std::string many, other;
  for (int i = 0; i < 1000; ++i) {
    many += (i == 0 ? "" : "\n") + std::string("n") + std::to_string(i);
    other += (i == 0 ? "" : "\n") + std::string(i < 500 ? "n" : "m") + std::to_string(i);
  }
  const std::string verdict = NamesVerdict(WithNames(1, many), WithNames(2, other));
  EXPECT_THAT(verdict, HasSubstr("rank 0 has [..., n496, n497, n498, n499, n500, "));
  EXPECT_THAT(verdict, HasSubstr("rank 3 has [..., n496, n497, n498, n499, m500, "));
  EXPECT_THAT(verdict, HasSubstr(", ...]; the first that differs is number 501"));
  EXPECT_LT(verdict.size(), 500u);
}

TEST(CompareDetails, IsSilentWhenAllAgree) {
  Detail a = Unusual(), b = Unusual();
  EXPECT_TRUE(Compare("x", a, b, a).ok());
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
      {[](Detail& d) { d.parts.push_back(d.parts[0]); }, "number of tensors", "1", "2"},
      {[](Detail& d) { d.parts[0].dtype = DType::kFloat64; }, "element type", "float32", "float64"},
      {[](Detail& d) {
         d.parts[0].shape = {2, 4};
       },
       "shape", "[2, 3]", "[2, 4]"},
      {[](Detail& d) { d.parts[0].shape = {}; }, "shape", "[2, 3]", "[]"},
      {[](Detail& d) { d.op = ReduceOp::kMin; }, "reduce operation", "Sum", "Min"},
      {[](Detail& d) { d.root = 1; }, "root rank", "0", "1"},
      {[](Detail& d) { d.device = DeviceKind::kCuda; }, "device", "cpu", "cuda"},
      {[](Detail& d) { d.prescale = 0.5; }, "prescale factor", "1", "0.5"},
      {[](Detail& d) { d.postscale = 0.25; }, "postscale factor", "1", "0.25"},
  };
  for (const Case& c : cases) {
    Detail same = DetailOfGood(), changed = same;
    c.change(changed);
    Status status = Compare("grad", same, same, changed);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), "tensor 'grad': ranks disagree about its " + c.field +
                                    ": rank 0 has " + c.first + ", rank 5 has " + c.other +
                                    "; submit the same " + c.field + " on every rank");
  }
}

TEST(CompareDetails, NamesTheMemberOfAGroup) {
  Detail same = Unusual(), changed = same;
  changed.parts[1].dtype = DType::kInt8;
  EXPECT_THAT(Compare("g", same, changed, same).message(),
              HasSubstr("tensor 'g', number 2 of 2: ranks disagree about its element type: rank 0 "
                        "has uint8, rank 2 has int8"));
}

TEST(CompareDetails, FirstExtentsAndSplitsMayDifferWhereRowsMove) {
  for (auto collective : {Collective::kAllgather, Collective::kAlltoall}) {
    Detail a = DetailOfGood(), b = a;
    a.collective = b.collective = collective;
    b.parts[0].shape[0] = 17;
    b.parts[0].splits = {17};
    EXPECT_TRUE(Compare("x", a, b, a).ok()) << NameOf(collective);
    b.parts[0].shape[1] = 4;
    EXPECT_THAT(Compare("x", a, b, a).message(), HasSubstr("rank 0 has [*, 3], rank 2 has [*, 4]"));
    b.parts[0].shape = {2};
    EXPECT_FALSE(Compare("x", a, b, a).ok());
  }
  Detail a = DetailOfGood(), b = a;
  a.collective = b.collective = Collective::kReducescatter;
  b.parts[0].shape[0] = 17;
  EXPECT_FALSE(Compare("x", a, b, a).ok());
}

TEST(CompareDetails, ChangesOfProcessSetsHaveNoTensor) {
  Detail a, b;
  a.collective = b.collective = Collective::kAddProcessSet;
  a.members = {0, 1};
  b.members = {0, 2};
  EXPECT_THAT(Compare("sets", a, b, a).message(),
              HasSubstr("a change of the process sets: ranks disagree about its ranks: rank 0 has "
                        "[0, 1], rank 2 has [0, 2]"));
}

// Wanted: two factors that differ in the last bit differ, whatever the digits of the sentence.
TEST(CompareDetails, SeesTheSmallestDifferenceOfAFactor) {
  Detail a = DetailOfGood(), b = a;
  b.prescale = std::nextafter(1.0, 2.0);
  EXPECT_FALSE(Compare("x", a, b, a).ok());
}

TEST(CompareDetails, AFactorThatIsNoNumberAgreesWithItself) {
  Detail a = DetailOfGood();
  a.prescale = std::nan("");
  EXPECT_TRUE(Compare("x", a, a, a).ok());
}

TEST(Names, AreKnownForEveryValueAndNoOther) {
  EXPECT_EQ(NameOf(Collective::kJoin), "join");
  EXPECT_EQ(NameOf(static_cast<Collective>(200)), "unknown");
  EXPECT_EQ(NameOf(ReduceOp::kProduct), "Product");
  EXPECT_EQ(NameOf(static_cast<ReduceOp>(200)), "unknown");
}

}  // namespace
}  // namespace hvd
