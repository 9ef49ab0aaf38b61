#include "runtime/backends/nccl/nccl_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/nccl/fake_nccl.h"

namespace hvd {
namespace {

using testing::HasSubstr;

class NcclFeatures : public testing::Test {
 protected:
  NcclLibrary Library(int version, const std::set<std::string>& lacking = {}) {
    nccl_.version = version;
    nccl_.lacking = lacking;
    return nccl_.Library();
  }

  test::FakeCuda cuda_;
  test::FakeNccl nccl_{cuda_};
};

TEST_F(NcclFeatures, ComeWithTheirVersions) {
  for (int i = 0; i < kNcclFeatureCount; ++i) {
    const auto feature = static_cast<NcclFeature>(i);
    const int first = FirstVersionWith(feature);
    EXPECT_TRUE(CheckNcclFeature(Library(first), feature).ok()) << NameOf(feature);
    const Status before = CheckNcclFeature(Library(first - 1), feature);
    EXPECT_EQ(before.code(), Code::kUnsupported);
    EXPECT_EQ(before.message(), "NCCL " + NcclVersionText(first - 1) + " (the fake) has no " +
                                    std::string(NameOf(feature)) + ": they came with " +
                                    NcclVersionText(first));
  }
}

TEST_F(NcclFeatures, AMissingSymbolIsAFeatureThatIsOff) {
  const struct {
    NcclFeature feature;
    std::set<std::string> lacking;
    const char* words;
  } table[] = {
      {NcclFeature::kRegister, {"ncclCommDeregister"}, "because it lacks ncclCommDeregister"},
      {NcclFeature::kAllocate,
       {"ncclMemAlloc", "ncclMemFree"},
       "because it lacks ncclMemAlloc, ncclMemFree"},
  };
  for (const auto& row : table) {
    const NcclLibrary library = Library(23007, row.lacking);
    EXPECT_THAT(CheckNcclFeature(library, row.feature).message(), HasSubstr(row.words));
    for (const auto& other : table) {
      if (other.feature != row.feature) {
        EXPECT_TRUE(CheckNcclFeature(library, other.feature).ok());
      }
    }
  }
}

// A symbol that an older library happens to export under a newer name is left alone.
TEST_F(NcclFeatures, TheVersionDecidesBeforeTheSymbol) {
  NcclLibrary library = Library(21403);
  ForEachOptionalEntry(library.api, [](auto& entry, int) { EXPECT_FALSE(entry) << entry.symbol; });
  library = Library(21900);
  EXPECT_FALSE(static_cast<bool>(library.api.comm_register));
  library = Library(21901);
  EXPECT_TRUE(static_cast<bool>(library.api.comm_register));
}

TEST_F(NcclFeatures, EachSymbolThatEveryVersionHasIsRequired) {
  for (const std::string& symbol : test::FakeNccl::Symbols()) {
    nccl_.lacking = {symbol};
    EXPECT_THAT(
        FillNccl("the fake", [&](const char* s) { return nccl_.Find(s); }).status().message(),
        HasSubstr("has no " + symbol));
  }
}

}  // namespace
}  // namespace hvd
