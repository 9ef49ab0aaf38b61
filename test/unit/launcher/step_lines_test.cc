// The output of a step of many agents, and the invitation that it is given.
#include "launcher/channels/step/step_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/overlay/dial/invitation.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kId = "0123456789abcdef";

TEST(StepLine, HasTheIdOfItsAgentAndPerhapsWords) {
  const std::string begin = std::string("hvdrun-agent ") + kId;
  EXPECT_EQ(ReadStepLine(begin)->agent_job_id, kId);
  EXPECT_EQ(ReadStepLine(begin)->text, "");
  EXPECT_EQ(ReadStepLine(begin + " wants gzip")->text, "wants gzip");
  for (const std::string& wrong :
       {std::string(), std::string("hello"), std::string("hvdrun-agent 12"), begin + "0",
        " " + begin, std::string("hvdrun-agent 0123456789abcdeX")})
    EXPECT_FALSE(ReadStepLine(wrong)) << wrong;
}

TEST(StepLines, AreWholeOnesInWhateverPiecesTheyCome) {
  StepLines lines;
  lines.Add("Welcome to n1\nhvdrun-agent 0123456789");
  EXPECT_FALSE(lines.Next());
  lines.Add("abcdef\nhvdrun-agent 0123456789abcdf0 cannot do it\nhvd");
  EXPECT_EQ(lines.Next()->agent_job_id, kId);
  EXPECT_EQ(lines.Next()->text, "cannot do it");
  EXPECT_FALSE(lines.Next());
  lines.Add(std::string(StepLines::kLongest, 'x'));
  EXPECT_FALSE(lines.Next());
  lines.Add(std::string("\nhvdrun-agent ") + kId + "\n");
  EXPECT_EQ(lines.Next()->agent_job_id, kId) << "a line that is too long hides no other one";
}

TEST(Invitation, IsOneLineAndReadAsItWasWritten) {
  const std::string key(64, 'a');
  const std::string text = InvitationText({kId, key, {"boot.1", {"10.0.0.1:4711", "[::1]:80"}}});
  ASSERT_EQ(text.find('\n'), text.size() - 1);
  const Result<Invitation> read = ParseInvitation(text.substr(0, text.size() - 1));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->job_id, kId);
  EXPECT_EQ(read->key, key);
  EXPECT_EQ(read->door.machine, "boot.1");
  EXPECT_THAT(read->door.endpoints, ElementsAre("10.0.0.1:4711", "[::1]:80"));
}

TEST(Invitation, OfAnotherKindIsASentenceWithoutTheKey) {
  const std::string key(64, 'a'), begin = std::string("hvdrun-invitation ") + kId + " ";
  for (const std::string& wrong :
       {std::string(), std::string("hello"), std::string("hvdrun-invitation x ") + key, begin,
        begin + "short boot.1 10.0.0.1:1", begin + key, begin + key + " boot.1",
        begin + key + " boot.1 nowhere"}) {
    const Result<Invitation> read = ParseInvitation(wrong);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_THAT(read.status().message(), Not(HasSubstr(key)));
  }
}

TEST(UnconnectedText, SayWhy) {
  EXPECT_EQ(ParseUnconnected(UnconnectedText("nobody\nanswers")), R"(nobody\nanswers)");
  EXPECT_FALSE(ParseUnconnected("wants gzip"));
}

}  // namespace
}  // namespace hvd
