#include "launcher/job/error_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "configs/failure_codes.h"
#include "launcher/job/job.h"
#include "launcher/job/report/failure_code.h"

namespace hvd {
namespace {

using Json = nlohmann::json;

// A job of two ranks on one host, of which rank 1 fails with these last words.
JobState FailedJob(const std::string& last_words) {
  JobState state(*MakePlan({{"n", 2}}, 2), {});
  Step(state, AgentIsReady{0}, {});
  Step(state, WorkerStarted{0, 100}, {});
  Step(state, WorkerStarted{1, 101}, {});
  Step(state, WorkerExited{1, 101, {true, SIGKILL}, 1, last_words, true}, {});
  Step(state, WorkerExited{0, 100, {true, SIGTERM}, 2, "", false}, {});
  return state;
}

Json ErrorOf(const std::string& last_words, const std::vector<std::string>& command = {"true"}) {
  return Json::parse(ErrorJson(FailedJob(last_words), "id", command));
}

TEST(ErrorJson, KeepsEveryTextThatIsUtf8) {
  for (const std::string text :
       {"a\"b\\c\n\t\r", "\x01\x1f", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"})
    EXPECT_EQ(ErrorOf(text)["stderr"], text);
}

TEST(ErrorJson, ReplacesBytesThatAreNoUtf8) {
  // A lone byte, an overlong form, a surrogate, a cut character, beyond the last one.
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"}) {
    const Json error = ErrorOf(bad, {"python", bad});
    EXPECT_NE(error["stderr"].get<std::string>().find("\xef\xbf\xbd"), std::string::npos) << bad;
    EXPECT_NE(error["command"][1].get<std::string>().find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(ErrorJson, HasTheFirstCause) {
  const Json error = ErrorOf("words", {"python", "t.py"});
  const Json expected = Json::parse(R"({
    "version": 1, "job": "id", "command": ["python", "t.py"], "num_proc": 2, "exit_code": 137,
    "kind": "rank", "code": "HVD103",
    "rank": 1, "host": "n", "pid": 101, "signal": 9, "signal_name": "SIGKILL",
    "out_of_memory": true, "inside_world": false, "stderr": "words", "others_ended": 1,
    "ranks": [{"rank": 0, "host": "n", "pid": 100, "state": "ended", "signal": 15},
              {"rank": 1, "host": "n", "pid": 101, "state": "failed", "signal": 9}]})");
  Json rest = error;
  EXPECT_FALSE(rest["report"].get<std::string>().empty());
  EXPECT_FALSE(rest["cause"].get<std::string>().empty());
  rest.erase("report");
  rest.erase("cause");
  EXPECT_EQ(rest, expected) << error.dump(2);
}

TEST(ErrorJson, HasACodeThatTheTableHasWithTheSameKind) {
  using enum JobFailure::Kind;
  for (JobFailure::Kind kind : {kRank, kCommand, kHost, kHosts, kInterrupt, kTimeout, kInternal,
                                kEnding, kRoute, kStall, kLauncher}) {
    JobState state = FailedJob("");
    state.failure = JobFailure{.kind = kind, .signal = SIGINT};
    const Json error = Json::parse(ErrorJson(state, "id", {"true"}));
    const FailureCode* code = FindFailureCode(error["code"].get<std::string>());
    ASSERT_NE(code, nullptr) << error["code"];
    EXPECT_EQ(error["kind"].get<std::string>(), code->kind);
    const std::string line = "  hvdrun explain " + std::string(code->code) + "\n";
    EXPECT_EQ(CodeLine(state), kind == kInterrupt ? "" : line);
  }
}

TEST(ErrorJson, TheCodeOfARankFollowsFromItsEnd) {
  const auto code_of = [](ProcessEnd end, bool out_of_memory) {
    JobState state = FailedJob("");
    static_cast<ProcessEnd&>(*state.ranks[1].end) = end;
    state.ranks[1].end->out_of_memory = out_of_memory;
    if (end.ok()) state.ranks[1].loss = Loss{};
    return FailureCodeOf(state);
  };
  EXPECT_EQ(code_of({false, 3}, false), "HVD101");
  EXPECT_EQ(code_of({true, SIGSEGV}, false), "HVD102");
  EXPECT_EQ(code_of({true, SIGKILL}, true), "HVD103");
  EXPECT_EQ(code_of({false, 0}, false), "HVD104");
  EXPECT_EQ(FailureCodeOf(JobState(*MakePlan({{"n", 1}}, 1), {})), "");
}

}  // namespace
}  // namespace hvd
