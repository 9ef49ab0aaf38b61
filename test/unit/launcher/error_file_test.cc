#include "launcher/driver/error_file.h"

#include <gtest/gtest.h>

#include <csignal>

namespace hvd {
namespace {

TEST(JsonString, EscapesWhatJsonDoesNotTake) {
  EXPECT_EQ(JsonString("a\"b\\c\n\t\r"), R"("a\"b\\c\n\t\r")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f", 2)), R"("\u0000\u001f")");
}

TEST(JsonString, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(JsonString("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  // A lone byte, an overlong form, a surrogate, a cut character, beyond the last one.
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"}) {
    std::string json = JsonString(bad);
    EXPECT_NE(json.find("\xef\xbf\xbd"), std::string::npos) << bad;
  }
}

TEST(ErrorJson, HasTheFirstCause) {
  JobState state(*MakePlan({{"n", 2}}, 2), {});
  Step(state, AgentIsReady{0}, {});
  Step(state, WorkerStarted{0, 100}, {});
  Step(state, WorkerStarted{1, 101}, {});
  Step(state, WorkerExited{1, 101, {true, SIGKILL}, 1, "words", true}, {});
  Step(state, WorkerExited{0, 100, {true, SIGTERM}, 2, "", false}, {});
  std::string json = ErrorJson(state, "id", {"python", "t.py"});
  for (const char* part :
       {R"("version": 1)", R"("job": "id")", R"("command": ["python", "t.py"])",
        R"("exit_code": 137)", R"("kind": "rank")", R"("rank": 1)", R"("pid": 101)",
        R"("signal_name": "SIGKILL")", R"("out_of_memory": true)", R"("stderr": "words")",
        R"("others_ended": 1)",
        R"({"rank": 0, "host": "n", "pid": 100, "state": "ended", "signal": 15})",
        R"({"rank": 1, "host": "n", "pid": 101, "state": "failed", "signal": 9})"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " is not in " << json;
  }
}

}  // namespace
}  // namespace hvd
