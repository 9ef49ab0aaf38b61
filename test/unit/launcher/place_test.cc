// Places that another launcher gives to ranks.
#include "launcher/external/places/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using ::testing::ElementsAre;

std::optional<PlaceNumber> NumberIn(std::map<std::string, std::string> variables) {
  return PlaceNumberOf([&](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Place, IsReadFromTheVariablesOfItsLauncher) {
  EXPECT_EQ(NumberIn({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
            (PlaceNumber{1, 4}));
  EXPECT_EQ(NumberIn({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), (PlaceNumber{0, 2}));
  EXPECT_EQ(NumberIn({{"JSM_NAMESPACE_RANK", "3"}, {"JSM_NAMESPACE_SIZE", "4"}}),
            (PlaceNumber{3, 4}));
  EXPECT_FALSE(NumberIn({}));
  EXPECT_FALSE(NumberIn({{"PMI_RANK", "0"}}));
  EXPECT_FALSE(NumberIn({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}));
  EXPECT_FALSE(NumberIn({{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}}));
}

TEST(Place, IsWrittenAndRead) {
  EXPECT_EQ(ParsePlace(PlaceText({3, 8})), (PlaceNumber{3, 8}));
  for (const char* wrong : {"", "/", "3", "3/", "/8", "8/8", "3/8 ", "-1/8", "0/9999999999"})
    EXPECT_FALSE(ParsePlace(wrong)) << wrong;
}

TEST(Place, EndsAsItsRank) {
  for (const ProcessEnd& end : {ProcessEnd{false, 0}, ProcessEnd{false, 255}, ProcessEnd{true, 9}})
    EXPECT_EQ(ParsePlaceEnd(PlaceEndText(end)), end);
  for (const char* wrong :
       {"", "exit ", "exit 256", "exit -1", "signal 65", "signal 0", "signal 9 ", "9"})
    EXPECT_FALSE(ParsePlaceEnd(wrong)) << wrong;
}

TEST(Place, AddsWhatItsLauncherHasSetAndNothingElse) {
  EXPECT_THAT(
      VariablesOfLauncher({"HOME=/h", "PATH=/login", "OMPI_COMM_WORLD_RANK=1", "A=b=c", "B=2",
                           "PWD=/x", "HVD_JOB_ID=1", "SSH_CLIENT=1", "HYDI_CONTROL_FD=7"},
                          {"HOME=/h", "B=1"}, {"PATH=/login"}),
      ElementsAre("OMPI_COMM_WORLD_RANK=1", "A=b=c", "B=2"));
}

}  // namespace
}  // namespace hvd
